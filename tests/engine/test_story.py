"""The story of a refund, one process, real Postgres, real shop: what runs, how often, and what is told."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from approvals import queries
from approvals.actors import Actor
from approvals.enums import RequestStatus
from approvals.errors import AlreadyClosed, Invalid, KeyReused, NotAllowed, Pending, TooLate
from approvals.models import ApprovalRequest, AuditEvent, Decision, Run, ToolExecution, User
from approvals.services import decisions, requests, runs
from tests.engine.conftest import call, refund

DONE = {"text": "done"}


def audit(run, action):
    return AuditEvent.objects.filter(run_id=run.pk, action=action).count()


def test_under_the_limit_it_runs_without_asking(desk):
    run = desk.open({"calls": [refund("A-20931", 1000)]}, DONE)
    assert desk.drive(run) == "finished"
    assert (run.status, run.requests.count(), desk.amounts("A-20931")) == ("success", 0, ["1000.00"])
    assert audit(run, "execution.succeeded") == 1


def test_above_the_limit_one_request_then_one_refund(desk):
    run = desk.open(
        {"calls": [call("lookup_order", order_id="A-20931")]}, {"calls": [refund("A-20931", 1280)]}, DONE
    )
    assert desk.drive(run) == "interrupted"
    assert run.status == "interrupted"
    (request,) = desk.pending(run)
    assert request.title == "Refund CN¥1,280.00"
    assert (request.kind, request.queue) == ("tool_call", "refund-reviewers")
    assert request.allowed_decisions == ["approve", "edit", "reject"]
    assert bytes(request.canonical) == b'{"amount":1280,"currency":"CNY","order_id":"A-20931"}'
    assert desk.effects("A-20931") == []
    desk.decide(request, "approve")
    assert desk.drive(run) == "finished"
    assert (run.status, run.answer, desk.amounts("A-20931")) == ("success", "done", ["1280.00"])
    request.refresh_from_db()
    assert request.status == "approved"
    assert request.applied_at is not None
    assert [audit(run, name) for name in ("request.asked", "request.approved", "execution.succeeded")] == [
        1,
        1,
        1,
    ]
    assert desk.drive(run) == "nothing to do"
    assert desk.amounts("A-20931") == ["1280.00"]


def test_an_edit_runs_the_edited_amount_and_the_model_reads_it(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    desk.decide(request, "edit", args={"order_id": "A-20931", "amount": 640.5, "currency": "CNY"})
    desk.drive(run)
    assert (run.status, desk.amounts("A-20931")) == ("success", ["640.50"])
    ((text,),) = desk.tool_texts(run).values()
    assert "640.5" in text
    assert "human reviewer replaced this tool call" in text
    changes = AuditEvent.objects.get(run_id=run.pk, action="request.edited").data["changes"]
    assert changes == [{"field": "/amount", "old": 1280, "new": 640.5}]


def test_a_rejection_runs_nothing_and_its_reason_reaches_the_model(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    desk.decide(request, "reject", message="The photo shows another lamp.")
    desk.drive(run)
    assert (run.status, desk.effects("A-20931"), ToolExecution.objects.count()) == ("success", [], 0)
    ((text,),) = desk.tool_texts(run).values()
    assert text.startswith(
        "A reviewer rejected this call; it did not run. Reason: The photo shows another lamp."
    )


def test_a_question_is_answered_by_a_person(desk):
    run = desk.open({"calls": [call("ask_staff", question="Which item?")]}, DONE)
    assert desk.drive(run) == "interrupted"
    (request,) = desk.pending(run)
    assert (request.kind, request.allowed_decisions) == ("question", ["respond"])
    assert request.expires_at - request.created_at == timedelta(days=1)
    with pytest.raises(Invalid, match="message"):
        desk.decide(request, "respond", by=desk.sam, message=" ")
    desk.decide(request, "respond", by=desk.sam, message="The lamp.")
    desk.drive(run)
    assert (run.status, list(desk.tool_texts(run).values())) == ("success", [["The lamp."]])


# --- parallel calls (cases 13, 27, 28) -------------------------------------------------------------------------------
def test_opposite_decisions_reach_their_own_calls_whatever_the_order(desk):
    run = desk.open({"calls": [refund("A-20931", 1100), refund("A-20925", 2000)]}, DONE)
    desk.drive(run)
    by_amount = {request.args["amount"]: request for request in desk.pending(run)}
    desk.decide(by_amount[2000], "approve")
    assert desk.drive(run) == "interrupted"
    assert desk.amounts("A-20925") == ["2000.00"]
    desk.decide(by_amount[1100], "reject", message="no")
    assert desk.drive(run) == "finished"
    assert (desk.effects("A-20931"), desk.amounts("A-20925")) == ([], ["2000.00"])
    assert all(len(texts) == 1 for texts in desk.tool_texts(run).values())


def test_three_calls_answered_third_first_second(desk):
    amounts = [1101, 1102, 1103]
    run = desk.open({"calls": [refund("A-20925", amount) for amount in amounts]}, DONE)
    desk.drive(run)
    by_amount = {request.args["amount"]: request for request in desk.pending(run)}
    assert len({request.interrupt_id for request in by_amount.values()}) == 3
    desk.decide(by_amount[1103], "approve")
    desk.decide(by_amount[1101], "reject", message="no")
    desk.decide(by_amount[1102], "edit", args={"order_id": "A-20925", "amount": 1002, "currency": "CNY"})
    assert desk.drive(run) == "finished"
    assert sorted(desk.amounts("A-20925")) == ["1002.00", "1103.00"]
    assert {request.status for request in run.requests.all()} == {"approved", "rejected", "edited"}


def test_a_free_sibling_runs_at_once_and_no_call_dangles(desk):
    run = desk.open(
        {
            "calls": [
                refund("A-20931", 1280),
                refund("A-20925", 2000),
                call("lookup_order", order_id="A-20925"),
            ]
        },
        DONE,
    )
    desk.drive(run)
    assert [step.tool for step in run.steps.filter(kind="tool")] == ["lookup_order"]
    first, second = desk.pending(run)
    desk.decide(first, "reject", message="no")
    desk.decide(second, "approve")
    desk.drive(run)
    assert run.status == "success"
    calls = {c["id"] for step in run.steps.filter(kind="model") for c in step.tool_calls}
    texts = desk.tool_texts(run)
    assert set(texts) == calls
    assert all(len(found) == 1 for found in texts.values())


# --- the click (cases 1, 3, 5) -----------------------------------------------------------------------------------------
def test_the_same_press_twice_is_one_decision(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    first = desk.decide(request, "approve", key="press")
    again = desk.decide(request, "approve", key="press")
    assert (again.is_repeat, again.decision.pk, Decision.objects.count()) == (True, first.decision.pk, 1)
    desk.drive(run)
    assert desk.amounts("A-20931") == ["1280.00"]


def test_reject_after_approve_is_refused(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    desk.decide(request, "approve")
    with pytest.raises(AlreadyClosed) as refused:
        desk.decide(request, "reject", by=desk.chen, message="no")
    assert (refused.value.request.status, refused.value.request.closed_by) == ("approved", "rita")
    desk.drive(run)
    assert desk.amounts("A-20931") == ["1280.00"]


def test_an_approval_on_a_stale_card_runs_nothing(desk):
    run = desk.open({"calls": [refund("A-20925", 1500)]}, {"calls": [refund("A-20925", 3400)]}, DONE)
    desk.drive(run)
    (first,) = desk.pending(run)
    desk.decide(first, "reject", message="no")
    desk.drive(run)
    (second,) = desk.pending(run)
    with pytest.raises(AlreadyClosed):
        desk.decide(first, "approve", by=desk.chen)
    desk.drive(run)
    second.refresh_from_db()
    assert (second.status, desk.effects("A-20925")) == ("pending", [])


def test_undo_before_it_is_sent(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    made = desk.decide(request, "approve", undo_for=timedelta(minutes=5))
    assert desk.drive(run) == "interrupted"
    assert desk.effects("A-20931") == []
    decisions.undo(actor=Actor.of(desk.rita), decision_pk=made.decision.pk)
    request.refresh_from_db()
    assert (request.status, request.final, request.rev) == ("pending", None, 3)
    desk.decide(request, "reject", message="second thoughts")
    desk.drive(run)
    assert (run.status, desk.effects("A-20931")) == ("success", [])


def test_undo_after_it_was_sent_is_too_late(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    made = desk.decide(request, "approve")
    desk.drive(run)
    with pytest.raises(TooLate):
        decisions.undo(actor=Actor.of(desk.rita), decision_pk=made.decision.pk)
    assert desk.amounts("A-20931") == ["1280.00"]


def test_the_same_key_twice_at_once_is_one_decision(desk, monkeypatch):
    run = desk.open({"calls": [refund("A-20931", 1280), refund("A-20925", 1500)]}, DONE)
    desk.drive(run)
    first, second = desk.pending(run)
    real = decisions._claim

    def faster_one(*args):  # another connection stores the same key between our look and our write
        monkeypatch.setattr(decisions, "_claim", real)
        with ThreadPoolExecutor(1) as other:
            other.submit(desk.decide, second, "approve", key="press").result()
            other.submit(lambda: connection.close()).result()
        return real(*args)

    monkeypatch.setattr(decisions, "_claim", faster_one)
    with pytest.raises(KeyReused):
        desk.decide(first, "approve", key="press")
    first.refresh_from_db()
    assert (first.status, Decision.objects.count()) == ("pending", 1)


# --- edits (cases 19, 22, 23) ------------------------------------------------------------------------------------------
GOOD = {"order_id": "A-20931", "amount": 12.5, "currency": "CNY"}


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({**GOOD, "amount": "abc"}, "args/amount"),
        ({"order_id": "A-20931", "currency": "CNY"}, "args/amount"),
        ({}, "args/amount"),
        ({**GOOD, "zzz": 1}, "args/zzz"),
        ({**GOOD, "amount": -5}, "args/amount"),
        ({**GOOD, "amount": 0}, "args/amount"),
        ({**GOOD, "amount": True}, "args/amount"),
        ({**GOOD, "amount": 1280.01}, "args/amount"),
        ({**GOOD, "amount": 1.234}, "args/amount"),
        ({**GOOD, "amount": "１５００"}, "args/amount"),
        ({**GOOD, "order_id": "A-20925"}, "args/order_id"),
        ({**GOOD, "currency": "USD"}, "args/currency"),
        ([], "args"),
        ({"order_id": "A-20931", "amount": 1280, "currency": "CNY"}, "args"),
        ({**GOOD, "reason": "a\x00b"}, "args/reason"),
        ({**GOOD, "customer_note": "a\x1bb"}, "args/customer_note"),
    ],
)
def test_a_bad_edit_names_its_field_and_changes_nothing(desk, args, field):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    with pytest.raises(Invalid) as refused:
        desk.decide(request, "edit", args=args)
    assert field in refused.value.errors
    request.refresh_from_db()
    assert (request.status, request.rev, Decision.objects.count()) == ("pending", 1, 0)


def test_a_check_that_failed_before_the_edit_does_not_bar_it(desk):
    """The order of another customer: its reader saw that in red, and an edit cannot change a locked field."""
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE, customer_id="C-0000", order_id="A-20925")
    desk.drive(run)
    (request,) = desk.pending(run)
    assert [c["field"] for c in request.checks if c["level"] == "fail"] == ["/order_id"]
    desk.decide(request, "edit", args=GOOD)
    desk.drive(run)
    assert desk.amounts("A-20931") == ["12.50"]


def test_a_numeric_text_becomes_its_number(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    desk.decide(request, "edit", args={**GOOD, "amount": "12.50"})
    request.refresh_from_db()
    assert request.final_args["amount"] == 12.5
    desk.drive(run)
    assert desk.amounts("A-20931") == ["12.50"]


@pytest.mark.parametrize("type", ["respond", "grant", "happened", "stop"])
def test_a_decision_type_that_is_not_allowed_is_refused(desk, type):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    with pytest.raises(Invalid) as refused:
        desk.decide(request, type, message="x")
    assert list(refused.value.errors) == ["type"]
    request.refresh_from_db()
    assert request.status == "pending"


# --- who (section 12 of the design) --------------------------------------------------------------------------------------
def test_nobody_decides_a_case_of_their_own_or_of_another_queue(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE, by=desk.rita)
    desk.drive(run)
    (request,) = desk.pending(run)
    for outsider in (desk.rita, desk.sam):
        with pytest.raises(NotAllowed):
            desk.decide(request, "approve", by=outsider)
    desk.decide(request, "approve", by=desk.chen)
    desk.drive(run)
    assert desk.amounts("A-20931") == ["1280.00"]


# --- time, withdrawal, messages (cases 9, 35, 37, 45) -----------------------------------------------------------------------
def test_who_wrote_in_the_case_does_not_decide_it(desk):
    """Four eyes: a colleague's message made the agent ask, whoever opened the case."""
    run = desk.open(DONE)
    desk.drive(run)
    desk.rita.groups.add(Group.objects.get(name="support"))
    rita = User.objects.get(pk=desk.rita.pk)
    message = json.dumps({"script": [{"calls": [refund("A-20931", 1280)]}, DONE]})
    runs.post(actor=Actor.of(rita), thread_pk=run.thread_id, message=message, while_pending=None)
    later = runs.post(actor=Actor.of(desk.sam), thread_pk=run.thread_id, message="{}", while_pending=None)
    desk.drive(run)
    (request,) = ApprovalRequest.objects.filter(status="pending")
    assert request.run_id != later.pk
    with pytest.raises(NotAllowed, match="own_case"):
        desk.decide(request, "approve", by=rita)
    assert list(queries.waiting(rita)) == []
    assert list(queries.waiting(desk.chen)) == [request]
    desk.decide(request, "approve", by=desk.chen)


def test_expiry_is_not_told_as_a_rejection(desk, hints):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    run.requests.update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(AlreadyClosed):
        desk.decide(request, "approve")
    assert requests.expire_due() == 1
    assert requests.expire_due() == 0
    desk.drive(run)
    ((text,),) = desk.tool_texts(run).values()
    assert text.startswith("Nobody decided in time, so this call did not run. This is not a rejection")
    request.refresh_from_db()
    assert (request.status, request.closed_by, desk.effects("A-20931")) == ("expired", "Time to decide", [])
    entry = AuditEvent.objects.get(run_id=run.pk, action="request.expired")
    assert entry.actor_kind == "rule"


def test_withdrawn_then_a_late_approval_is_refused(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    requests.withdraw(actor=Actor.of(desk.sam), request_pk=request.pk, reason="customer called")
    with pytest.raises(AlreadyClosed):
        desk.decide(request, "approve")
    desk.drive(run)
    ((text,),) = desk.tool_texts(run).values()
    assert "withdrew this request" in text
    assert "customer called" in text
    assert (run.status, desk.effects("A-20931")) == ("success", [])


def test_a_message_while_something_waits_needs_a_choice(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    with pytest.raises(Pending):
        runs.post(actor=Actor.of(desk.sam), thread_pk=run.thread_id, message="ok do it", while_pending=None)
    (request,) = desk.pending(run)
    assert request.status == "pending"


def test_a_queued_message_waits_behind_the_decision(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    said = json.dumps({"script": [{"text": "second"}]})
    later = runs.post(actor=Actor.of(desk.sam), thread_pk=run.thread_id, message=said, while_pending="queue")
    assert desk.drive(run) == "interrupted"
    later.refresh_from_db()
    assert later.status == "pending"
    (request,) = desk.pending(run)
    desk.decide(request, "approve")
    assert desk.drive(run) == "finished"
    later.refresh_from_db()
    assert (run.status, later.status, later.answer) == ("success", "success", "second")
    assert desk.amounts("A-20931") == ["1280.00"]


def test_a_message_may_withdraw_what_waits(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    said = json.dumps({"script": [{"text": "second"}]})
    later = runs.post(
        actor=Actor.of(desk.sam), thread_pk=run.thread_id, message=said, while_pending="withdraw"
    )
    with pytest.raises(AlreadyClosed):
        desk.decide(request, "approve")
    desk.drive(run)
    later.refresh_from_db()
    request.refresh_from_db()
    assert (request.status, run.status, later.status) == ("withdrawn", "success", "success")
    assert desk.effects("A-20931") == []
    assert all(len(texts) == 1 for texts in desk.tool_texts(run).values())


def test_a_stopped_run_ends_without_another_model_call(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, {"text": "never said"})
    desk.drive(run)
    runs.cancel(actor=Actor.of(desk.sam), run_pk=run.pk, reason="wrong order")
    desk.drive(run)
    assert run.status == "cancelled"
    assert "never said" not in [step.text for step in run.steps.all()]
    assert desk.effects("A-20931") == []
    later = runs.post(
        actor=Actor.of(desk.sam),
        thread_pk=run.thread_id,
        message=json.dumps({"script": [DONE]}),
        while_pending=None,
    )
    desk.drive(run)
    later.refresh_from_db()
    assert later.status == "success"


def test_a_stop_tells_what_was_done_before_it(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]}, {"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    runs.cancel(actor=Actor.of(desk.sam), run_pk=run.pk, reason="enough")
    desk.drive(run)
    assert "Done before that, and not taken back: Refund CN¥100.00" in run.error
    assert (desk.amounts("A-20877"), desk.amounts("A-20931")) == (["100.00"], [])


def test_a_stop_while_the_question_is_prepared_is_seen(desk, hints, monkeypatch):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, {"text": "never said"})
    real = requests.ask

    def stopped_first(**asked):
        row = real(**asked)
        Run.objects.filter(pk=run.pk).update(cancel_reason="wrong order")
        return row

    monkeypatch.setattr(requests, "ask", stopped_first)
    assert desk.drive(run) == "finished"
    assert (run.status, desk.pending(run), desk.effects("A-20931")) == ("cancelled", [], [])


def test_a_stopped_run_takes_no_decision_any_more(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    Run.objects.filter(pk=run.pk).update(cancel_reason="wrong order")
    with pytest.raises(AlreadyClosed):
        desk.decide(request, "approve")
    assert Decision.objects.count() == 0


def test_undo_after_a_stop_is_too_late(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    made = desk.decide(request, "approve", undo_for=timedelta(minutes=1))
    runs.cancel(actor=Actor.of(desk.sam), run_pk=run.pk, reason="wrong order")
    with pytest.raises(TooLate):
        decisions.undo(actor=Actor.of(desk.rita), decision_pk=made.decision.pk)
    desk.drive(run)
    assert (run.status, desk.effects("A-20931")) == ("cancelled", [])


# --- unknown outcomes (case 40) -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["drop_after", "error_after", "error_before"])
def test_an_unclear_answer_is_asked_and_never_repeated(desk, mode):
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    desk.fault(mode, times=1)
    assert desk.drive(run) == "interrupted"
    committed = len(desk.effects("A-20877"))
    assert committed == (0 if mode == "error_before" else 1)
    execution = desk.execution(run)
    assert (execution.status, execution.attempt) == ("unknown", 1)
    (request,) = desk.pending(run)
    assert request.kind == "unknown_outcome"
    assert desk.drive(run) == "interrupted"
    assert len(desk.effects("A-20877")) == committed
    with pytest.raises(Invalid, match="It did happen" if committed else "Too early"):
        desk.decide(request, "did_not_happen")
    with pytest.raises(Invalid, match="reference"):
        desk.decide(request, "happened")
    with pytest.raises(Invalid, match="cannot be withdrawn"):
        requests.withdraw(actor=Actor.of(desk.sam), request_pk=request.pk, reason="x")


def test_the_question_is_about_the_call_that_was_sent_not_the_one_proposed(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    desk.decide(request, "edit", args={"order_id": "A-20931", "amount": 640.5, "currency": "CNY"})
    desk.fault("error_before", times=1)
    assert desk.drive(run) == "interrupted"
    (question,) = desk.pending(run)
    assert (question.kind, question.args["amount"]) == ("unknown_outcome", 640.5)
    assert question.title == "Did it go through? Refund CN¥640.50"
    assert question.digest == desk.execution(run).digest
    assert desk.drive(run) == "interrupted"  # and it stays the same question


def test_it_happened_continues_with_the_truth(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    desk.fault("drop_after", times=1)
    desk.drive(run)
    (request,) = desk.pending(run)
    (effect,) = desk.effects("A-20877")
    desk.decide(request, "happened", reference=effect["refund_id"])
    assert desk.drive(run) == "finished"
    assert (run.status, len(desk.effects("A-20877")), desk.execution(run).status) == (
        "success",
        1,
        "succeeded",
    )
    ((text,),) = desk.tool_texts(run).values()
    assert json.loads(text)["reference"] == effect["refund_id"]
    assert desk.execution(run).resolved_by == "rita"


def test_it_did_not_happen_sends_it_again_with_the_same_key(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    desk.fault("error_before", times=1)
    desk.drive(run)
    (request,) = desk.pending(run)
    ToolExecution.objects.update(quiet_until=Now() - timedelta(seconds=1))
    key = desk.execution(run).provider_key
    desk.decide(request, "did_not_happen")
    assert desk.drive(run) == "finished"
    execution = desk.execution(run)
    assert (execution.status, execution.attempt, execution.provider_key) == ("succeeded", 2, key)
    assert desk.amounts("A-20877") == ["100.00"]


def test_still_unknown_keeps_the_question_open(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    desk.fault("drop_after", times=1)
    desk.drive(run)
    (request,) = desk.pending(run)
    desk.decide(request, "still_unknown", message="asked the bank")
    request.refresh_from_db()
    assert (request.status, request.rev) == (RequestStatus.PENDING, 2)
    assert requests.remind_due() == 0
    ApprovalRequest.objects.update(remind_at=F("remind_at") - decisions.ASK_AGAIN)
    assert requests.remind_due() == 1
    assert requests.remind_due() == 0
    desk.decide(request, "happened", reference="rf_1")
    desk.drive(run)
    assert (run.status, len(desk.effects("A-20877"))) == ("success", 1)


@pytest.mark.parametrize(("over", "may"), [(1279, False), (1280, True)])
def test_above_an_amount_the_approver_does_not_say_what_became_of_it(desk, settings, over, may):
    settings.SECOND_PERSON_OVER = over
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    desk.decide(desk.pending(run)[0], "approve")
    desk.fault("drop_after", times=1)
    desk.drive(run)
    (question,) = desk.pending(run)
    assert [list(queries.waiting(who)) for who in (desk.rita, desk.chen)] == [[question] * may, [question]]
    if not may:
        with pytest.raises(NotAllowed, match="approver"):
            desk.decide(question, "happened", reference="rf_1")
    desk.decide(question, "happened", reference="rf_1", by=desk.rita if may else desk.chen)
    desk.drive(run)
    assert (run.status, desk.amounts("A-20931")) == ("success", ["1280.00"])


def test_a_definite_refusal_is_told_and_not_unknown(desk):
    run = desk.open({"calls": [refund("A-20877", 900)]}, DONE)
    assert desk.drive(run) == "finished"
    assert (desk.execution(run).status, desk.effects("A-20877")) == ("failed", [])
    ((text,),) = desk.tool_texts(run).values()
    assert text.startswith("The call failed, nothing was done:")

"""Cases: opened, followed, written to, withdrawn; and runs."""

from __future__ import annotations

import uuid

import pytest
from django.db import transaction

from agents.contracts import Message, ToolCall
from approvals.models import ApprovalRequest, Run
from approvals.services import runs, steps
from tests import factories
from tests.pages.conftest import actions, text


def new_case(person, key: str = "", **fields):
    data = {"agent": "refunds", "message": "Please refund order A-20931.", "key": key or str(uuid.uuid4())}
    return person.post("/support/new/", {**data, **fields})


def write(person, run: Run, message: str = "Any news?", key: str = "", **fields):
    data = {"message": message, "key": key or str(uuid.uuid4()), **fields}
    return person.post(f"/support/{run.thread_id}/messages/", data)


def finish(run: Run, status: str = "success", note: str = "") -> None:
    claimed = runs.claim_next(thread_pk=run.thread_id)
    assert claimed is not None
    runs.finish(
        run=claimed, fence=claimed.thread.fence, status=status, note=note, answer="All done.", usage={}
    )


@pytest.fixture
def agent(db):
    factories.make_case()


def test_a_case_is_opened_once_per_form(sam, agent):
    before, key = Run.objects.count(), str(uuid.uuid4())
    first = new_case(sam, key, customer_name="李伟", language="zh-CN")
    again = new_case(sam, key, customer_name="李伟", language="zh-CN")
    assert first.status_code == again.status_code == 302
    assert first["Location"] == again["Location"]
    assert Run.objects.count() == before + 1
    assert "李伟" in text(sam.get(first["Location"]))
    other = new_case(sam, key, customer_name="somebody else")
    assert (other.status_code, "sent before with other words" in text(other)) == (409, True)


@pytest.mark.parametrize("wrong", [{"message": " "}, {"message": ""}, {"agent": "nobody"}, {"language": "xx"},
                                   {"order_id": "x" * 81}, {"message": "a\x00b"}])  # fmt: skip
def test_a_wrong_case_comes_back_as_it_was_typed(sam, agent, wrong):
    before = Run.objects.count()
    sent = new_case(sam, customer_name="Ana", **wrong)
    assert sent.status_code == 422
    assert 'value="Ana"' in sent.content.decode()
    assert 'aria-invalid="true"' in sent.content.decode()
    assert Run.objects.count() == before


def test_a_waiting_request_says_what_who_until_when_and_what_otherwise(sam):
    request = factories.make_request()
    shown = text(sam.get(f"/support/{request.thread_id}/"))
    for part in ("Waiting for a reviewer", "Refund CN¥1,280.00", "Who decides Refund reviewers", "left",
                 "it lapses: the call does not run", "A message here does not decide it", "Withdraw request"):  # fmt: skip
        assert part in shown


def test_ok_do_it_is_not_an_approval(sam):
    request = factories.make_request()
    assert write(sam, request.run, "ok do it").status_code == 409
    sent = write(sam, request.run, "ok do it", while_pending="queue")
    assert sent.status_code == 302
    request.refresh_from_db()
    assert request.is_pending
    shown = text(sam.get(f"/support/{request.thread_id}/"))
    assert "waits until the turn before is over" in shown
    assert "people decide in the inbox" in shown


def test_a_message_may_withdraw_what_waits(sam):
    request = factories.make_request()
    assert write(sam, request.run, "never mind", while_pending="withdraw").status_code == 302
    request.refresh_from_db()
    assert (request.status, request.closed_by) == ("withdrawn", "Sam Ortiz")


def test_a_message_is_sent_once_per_form(sam):
    run = factories.make_case()
    key = str(uuid.uuid4())
    assert [write(sam, run, key=key).status_code for _ in range(2)] == [302, 302]
    assert Run.objects.filter(thread=run.thread).count() == 2
    assert write(sam, run, "other words", key=key).status_code == 409
    assert write(sam, run, "  ").status_code == 422
    assert actions().count("message.posted") == 1


def test_withdrawing_needs_a_reason_and_may_come_too_late(sam, rita):
    request = factories.make_request()
    page = sam.get(f"/support/{request.thread_id}/?withdraw={request.pk}")
    assert "Why do you withdraw it?" in text(page)
    path = f"/support/request/{request.pk}/withdraw/"
    assert sam.post(path, {"reason": " "}).status_code == 422
    rita.decide(request, "approve")
    late = sam.post(path, {"reason": "customer called"})
    assert late.status_code == 409
    assert "Rita Gupta was faster: Approved" in text(late)


def test_withdrawn_in_time(sam):
    request = factories.make_request()
    assert (
        sam.post(f"/support/request/{request.pk}/withdraw/", {"reason": "customer called"}).status_code == 302
    )
    request.refresh_from_db()
    assert request.status == "withdrawn"
    assert "customer called" in request.message


@pytest.mark.parametrize(("status", "words"), [
    ("error", "The run failed"), ("parked", "the agent cannot go on by itself"), ("success", "All done"),
])  # fmt: skip
def test_endings_in_true_words(sam, status, words):
    run = factories.make_case()
    finish(run, status, note="model did not answer")
    shown = text(sam.get(f"/support/{run.thread_id}/"))
    if status != "success":
        assert words in shown
        assert "model did not answer" in shown
    assert (
        text(sam.get("/support/")).count({"error": "Failed", "parked": "Parked", "success": "Done"}[status])
        >= 1
    )


def test_a_reviewer_reads_a_case_of_the_queue_and_cannot_write(rita):
    request = factories.make_request()
    sent = rita.get(f"/support/{request.thread_id}/")
    assert sent.status_code == 200
    assert b'id="composer"' not in sent.content
    assert write(rita, request.run).status_code == 403


def test_a_nudge_fetches_blocks_with_revisions(sam):
    request = factories.make_request()
    path = f"/support/{request.thread_id}/?part=log"
    sent = sam.get(path, htmx=True).content.decode()
    assert "<html" not in sent
    assert f'id="turn-{request.run_id}" data-rev="' in sent
    assert "textarea" not in sent
    factories.decide(request, "approve")
    assert sam.get(path, htmx=True).content.decode() != sent


def test_search_and_paging(sam):
    first = factories.make_case(message="About the blue kettle", customer_name="Ana Souza")
    factories.make_case(message="About the lamp")
    shown = text(sam.get("/support/?q=souza"))
    assert "blue kettle" in shown
    assert "lamp" not in shown
    assert "blue kettle" in text(sam.get(f"/support/?q={first.thread.number}"))
    assert "No case matches" in text(sam.get("/support/?q=zzz"))
    assert sam.get("/support/?before=nonsense&q=%00").status_code == 200


# --- runs -----------------------------------------------------------------------------------------------------------------
@pytest.fixture
def told(db) -> ApprovalRequest:
    """A run with a timeline: a look-up, then the request."""
    run = factories.make_case()
    call = ToolCall("call-1", "lookup_order", {"order_id": "A-20931"})
    messages = [
        Message(id="ai-1", role="ai", text="I will look it up.", tool_calls=(call,), usage={"input_tokens": 1200, "output_tokens": 30}),
        Message(id="tool-1", role="tool", text='{"id": "A-20931", "paid": 1280}', tool="lookup_order", tool_call_id="call-1"),
    ]  # fmt: skip
    with transaction.atomic():
        steps.record(run=run, messages=messages)
    return factories.make_request(run)


def test_the_timeline_tells_it_all(sam, told):
    shown = text(sam.get(f"/runs/{told.run_id}/"))
    for part in ("I will look it up.", "Look up order A-20931", '"paid": 1280', "1,200 tokens in, 30 out",
                 "waits for a person", "1 model call · 1,230 tokens"):  # fmt: skip
        assert part in shown
    listed = text(sam.get("/runs/"))
    assert "1,230" in listed
    for status, there in (("open", True), ("interrupted", True), ("success", False), ("zzz", True)):
        assert (told.run.short_id in text(sam.get(f"/runs/?status={status}"))) is there
    assert sam.get("/runs/?before=x_y").status_code == 200


def test_evidence_says_where_a_value_came_from(rita, told):
    sent = rita.get(f"/inbox/{told.pk}/").content.decode()
    assert 'href="#step-3"' in sent
    assert 'id="step-3"' in sent


def test_stopping_a_run_needs_a_reason_and_withdraws_what_waits(sam, rita, told):
    path = f"/runs/{told.run_id}/cancel/"
    assert rita.post(path, {"reason": "x"}).status_code == 403
    assert sam.post(path, {"reason": ""}).status_code == 422
    assert sam.post(path, {"reason": "wrong order"}).status_code == 302
    told.refresh_from_db()
    assert told.status == "withdrawn"
    assert "Stopping" in text(sam.get(f"/runs/{told.run_id}/"))
    assert sam.post(path, {"reason": "again"}).status_code == 409

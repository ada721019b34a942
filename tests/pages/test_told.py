"""What became of a decision is told where it was made and where it was asked for, in true words, money and language."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import translation

from agents.contracts import Message, ToolCall
from agents.refunds import policy
from agents.refunds.memory import sample_order
from approvals import phrases
from approvals.models import ApprovalRequest, AuditEvent, Decision, Run, ToolExecution
from approvals.services import lookups, runs, steps
from tests import factories
from tests.pages.conftest import Person, fields, text


@pytest.fixture
def waiting(db: None) -> ApprovalRequest:
    return factories.make_request()


def executed(request: ApprovalRequest, status: str, **columns: Any) -> ToolExecution:
    """The ledger row of the request's call."""
    row = {
        "thread": request.thread, "run": request.run, "ai_message_id": request.ai_message_id,
        "tool_call_id": request.tool_call_id, "tool": request.tool, "digest": request.digest,
        "provider_key": uuid.uuid4().hex, "attempt": 1, "fence": 1, "started_at": Now(),
    }  # fmt: skip
    return ToolExecution.objects.create(**{**row, "status": status, **columns})


def sent(request: ApprovalRequest) -> None:
    """The time to undo is over and the answer is with the agent."""
    Decision.objects.filter(request=request).update(send_at=Now(), sent_at=Now())


def finish(run: Run) -> None:
    claimed = runs.claim_next(thread_pk=run.thread_id)
    runs.finish(run=claimed, fence=claimed.thread.fence, status="success", note="", answer="Done.", usage={})


BECAME = {
    "planned": "It is about to be sent.",
    "started": "It was sent; the answer is awaited.",
    "succeeded": "It went through.",
    "failed": "The provider refused it: nothing happened.",
    "unknown": "whether it went through is not known yet",
}


@pytest.mark.parametrize("status", BECAME)
def test_the_notice_tells_what_became_of_the_call(rita, waiting, status):
    rita.decide(waiting, "approve")
    sent(waiting)
    executed(waiting, status, result={"refund_id": "rf_77"} if status == "succeeded" else None)
    for path in ("", "notice/"):
        shown = text(rita.get(f"/inbox/{waiting.pk}/{path}", htmx=bool(path)))
        assert "You approved this." in shown
        assert BECAME[status] in shown
        assert ("Reference: rf_77" in shown) is (status == "succeeded")


def test_an_unknown_outcome_is_one_line_and_leads_to_its_question(rita, sam, waiting):
    rita.decide(waiting, "approve")
    sent(waiting)
    executed(waiting, "unknown")
    call = {"ai_message_id": waiting.ai_message_id, "tool_call_id": waiting.tool_call_id}
    question = factories.make_request(waiting.run, kind="unknown_outcome", attempt=1, expires_in=None, **call)
    page = rita.get(f"/inbox/{waiting.pk}/")
    assert f'href="/inbox/{question.pk}/"' in page.content.decode()
    assert "Say what became of it" in text(page)
    card = page.content.decode().partition('id="run-card"')[2].partition("</section>")[0]
    assert card.count("issue_refund") == 1
    assert "outcome unknown" in card
    assert text(sam.get(f"/support/{waiting.thread_id}/")).count("issue_refund") == 1


def test_a_rejection_is_not_a_green_done(rita, sam, waiting):
    pending = text(rita.decide(waiting, "reject", message="not covered"))
    assert "Rejected: CN¥1,280.00." in pending
    assert re.search(r"The agent is told in \d sec", pending)
    sent(waiting)
    finish(waiting.run)
    case = sam.get(f"/support/{waiting.thread_id}/").content.decode()
    assert re.search(r'class="chip bad">\s*<svg.*?</svg>Rejected</span>', case, re.S)
    assert not re.search(r'class="chip ok">\s*(<svg.*?</svg>)?Done', case, re.S)
    assert "Done · Rejected" in text(sam.get("/runs/"))


def test_the_case_says_that_a_decision_is_about_to_be_sent(rita, sam, waiting):
    rita.decide(waiting, "approve")
    shown = text(sam.get(f"/support/{waiting.thread_id}/"))
    assert re.search(r"Runs in \d sec", shown)
    assert "Until then the reviewer can take it back." in shown
    assert "Approved: Refund CN¥1,280.00" in shown  # in the list
    sent(waiting)
    executed(waiting, "succeeded")
    shown = text(sam.get(f"/support/{waiting.thread_id}/"))
    assert "Runs in" not in shown
    assert "It went through" in shown


def test_a_call_within_the_rule_is_told(sam):
    run = factories.make_case(sam.user)
    args = {**factories.REFUND, "amount": 200}
    call = ToolCall("call-9", "issue_refund", args)
    with transaction.atomic():
        steps.record(run=run, messages=[
            Message(id="ai-9", role="ai", text="", tool_calls=(call,)),
            Message(id="tool-9", role="tool", text="{}", tool="issue_refund", tool_call_id="call-9"),
        ])  # fmt: skip
    ToolExecution.objects.create(
        thread=run.thread, run=run, ai_message_id="ai-9", tool_call_id="call-9", tool="issue_refund", digest="d",
        provider_key="k", status="succeeded", attempt=1, fence=1, result={"refund_id": "rf_5"},
    )  # fmt: skip
    shown = text(sam.get(f"/support/{run.thread_id}/"))
    assert "Refund CN¥200.00 was within the rule: nobody was asked." in shown
    assert "Reference: rf_5" in shown


# --- edits -----------------------------------------------------------------------------------------------------------------
def test_an_edit_is_shown_as_money_and_as_whose_it_is(rita, chen, sam, ada, waiting):
    rita.decide(waiting, "edit", **fields(waiting, amount="98"))
    diff = "<del>CN¥1,280.00</del> <ins>CN¥98.00</ins>"
    mine = rita.get(f"/inbox/{waiting.pk}/")
    assert diff in mine.content.decode()
    assert "edited by you" in text(mine)
    assert "edited by Rita Gupta" in text(chen.get(f"/inbox/{waiting.pk}/"))
    assert diff in sam.get(f"/support/{waiting.thread_id}/").content.decode()
    entry = AuditEvent.objects.get(action="request.edited")
    assert diff in ada.get(f"/audit/{entry.pk}/").content.decode()
    assert "1 field edited" in text(ada.get("/audit/"))


# --- look-ups ---------------------------------------------------------------------------------------------------------------
def lost(shop: Any, *, known: bool) -> ApprovalRequest:
    """A refund whose answer was lost; `known`: the shop has made it."""
    request = factories.make_request(
        kind="unknown_outcome", attempt=1, expires_in=None, quiet_until=Now() - timedelta(seconds=1)
    )
    row = executed(request, "unknown", quiet_until=Now() - timedelta(seconds=1))
    if known:
        shop.refund({"order_id": "A-20931", "amount": "1280.00", "currency": "CNY"}, row.provider_key, 8)
    return request


def test_what_a_look_up_found_needs_no_answer(rita, sam, ada, shop):
    request = lost(shop, known=True)
    assert lookups.settle_due() == 1
    reference = shop.made[0]["refund_id"]
    shown = text(rita.get(f"/inbox/{request.pk}/"))
    assert "Settled by a look-up: the provider knows the call, it did go through." in shown
    assert f"Reference: {reference}" in shown
    assert "did not run" not in shown
    assert "Found by a look-up" in text(rita.get("/inbox/?queue=done"))
    case = text(sam.get(f"/support/{request.thread_id}/"))
    assert "Found by a look-up" in case
    assert "did not run" not in case
    assert "settled by Look-up by key" in text(sam.get(f"/runs/{request.run_id}/"))
    listed = text(ada.get("/audit/"))
    assert "Settled by a look-up" in listed
    assert "Found by its key: it did happen" in listed


def test_a_denial_that_the_provider_contradicts_is_told_beside_its_choice(rita, shop):
    request = lost(shop, known=True)
    answer = rita.decide(request, "did_not_happen")
    assert answer.status_code == 422
    sentence = f"It did happen: the provider knows this call ({shop.made[0]['refund_id']}). Answer so."
    assert text(answer).count(sentence) == 1
    assert sentence in text(answer).partition("It did not go through")[2].partition("Still unknown")[0]
    shop.fault = "down"
    again = rita.decide(request, "did_not_happen")
    assert (again.status_code, "cannot be asked right now" in text(again)) == (422, True)


def test_a_look_up_by_hand_says_what_it_found_and_decides_nothing(rita, otto, shop):
    request = lost(shop, known=False)
    path = f"/inbox/{request.pk}/look-up/"
    assert "Check again now" in text(rita.get(f"/inbox/{request.pk}/"))
    row = ToolExecution.objects.get(thread=request.thread)

    def ask():
        ToolExecution.objects.update(looked_at=None)
        return rita.post(path, {}, htmx=True)

    answer = ask()
    assert "Looked up by its key: not found so far, which proves nothing" in text(answer)
    assert "Looked up by itself, every minute" in text(answer)
    assert b"What did you find?" not in answer.content, "what somebody types there stays as it is"
    shop.fault = "down"
    assert "Looked up by its key: the provider did not answer" in text(ask())
    shop.fault = ""
    request.refresh_from_db()
    assert (request.status, request.rev) == ("pending", 1)
    assert otto.post(path, {}).status_code == 404

    shop.refund({"order_id": "A-20931", "amount": "1280.00", "currency": "CNY"}, row.provider_key, 8)
    rita.post(path, {}, htmx=True)  # too soon: nobody hammers the provider
    request.refresh_from_db()
    assert request.is_pending
    assert "Settled by a look-up" in text(rita.get(ask_plainly(rita, path)))
    said = (
        AuditEvent.objects.filter(action="execution.looked_up")
        .order_by("pk")
        .values_list("data__said", flat=True)
    )
    assert list(said) == ["not_found", "no_answer", "found"]


def ask_plainly(rita, path):
    """Without htmx. The page to look at next."""
    ToolExecution.objects.update(looked_at=None)
    return rita.post(path, {}).url


def test_what_cannot_be_looked_up_offers_no_look_up(rita, shop):
    request = factories.make_request(kind="unknown_outcome", tool="ask_staff", attempt=1, expires_in=None)
    assert "Check again now" not in text(rita.get(f"/inbox/{request.pk}/"))
    answer = rita.post(f"/inbox/{request.pk}/look-up/", {})
    assert (answer.status_code, "cannot be looked up by its key" in text(answer)) == (422, True)


# --- small things -----------------------------------------------------------------------------------------------------------
def test_saving_says_so_in_the_language_chosen_now(rita):
    wanted = {
        "language": "zh-hans",
        "time_zone": "",
        "theme": "system",
        "undo_seconds": "5",
        "single_keys": "on",
    }
    answer = rita.post("/me/", wanted)
    assert "已保存。" in text(rita.get(answer["Location"]))
    assert "已保存。" not in text(rita.get("/me/"))


def test_every_page_tells_in_its_title_what_waits(rita, waiting):
    for path in ("/inbox/", f"/inbox/{waiting.pk}/", "/support/", "/me/"):
        assert "<title>(1) " in rita.get(path).content.decode(), path
    assert "data-badge=mine" in rita.get("/support/", htmx=True).content.decode()


def test_an_agent_has_a_name_in_the_readers_language_and_a_person_keeps_theirs(ada, waiting):
    ada.post("/me/", {"language": "zh-hans", "time_zone": "", "theme": "system", "undo_seconds": "5"})
    entry = AuditEvent.objects.get(action="request.asked")
    assert "退款代理" in text(ada.get(f"/audit/{entry.pk}/"))
    namesake = Person("agent", first_name="Refund", last_name="agent")
    namesake.post("/logout/")
    by_person = AuditEvent.objects.filter(actor_kind="user").latest("pk")
    assert by_person.actor_name == "Refund agent"
    assert "退款代理" not in text(ada.get(f"/audit/{by_person.pk}/", htmx=True))


def test_an_order_number_is_never_broken(rita, waiting):
    assert '<span class="nb">A-20931</span>' in rita.get("/inbox/").content.decode()


def orders() -> list[Any]:
    today = sample_order(delivered_days=0)
    old = sample_order(delivered_days=52)
    on_its_way = sample_order(delivered_days=None)
    return [today, old, on_its_way, {**old, "status": "cancelled"}, {**old, "refundable": "0.00"}]


@pytest.mark.parametrize(
    "reason", ["damaged", "wrong_item", "changed_mind", "late", "not_delivered", "other"]
)
def test_every_explanation_of_the_policy_is_told_in_the_language_of_the_reader(reason):
    for order in orders():
        for asked in ({}, {"amount": Decimal(100)}, {"percent": Decimal(50)}):
            said = policy.compute(order, reason, **asked).explanation
            with translation.override("en"):
                assert phrases.explanation(said).replace("CN¥", "CNY ") == said
            with translation.override("zh-hans"):
                assert not re.search(r"[a-z]{3}", phrases.explanation(said)), said

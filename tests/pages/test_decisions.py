"""The decision pane: what is shown, what each press answers, and that nothing else happens."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from approvals.models import ApprovalRequest, Decision, DecisionDraft
from tests import factories
from tests.pages.conftest import actions, fields, text


@pytest.fixture
def waiting(db) -> ApprovalRequest:
    return factories.make_request()


# --- what is shown ----------------------------------------------------------------------------------------------------
def test_the_whole_call_is_on_the_page(rita, waiting):
    sent = rita.get(f"/inbox/{waiting.pk}/")
    shown = text(sent)
    for part in ("Refund CN¥1,280.00", "A-20931", "CNY", "arrived broken", "Amount over 1,000", "runs once",
                 "It cannot be taken back", "If nobody decides by", waiting.digest[:16], '"amount": 1280'):  # fmt: skip
        assert part in shown
    assert "Approve CN¥1,280.00" in shown


def test_buttons_are_those_the_request_allows(rita):
    request = factories.make_request(allowed_decisions=("approve", "reject"))
    sent = rita.get(f"/inbox/{request.pk}/").content.decode()
    assert "mode=reject" in sent
    assert "mode=edit" not in sent
    assert "args/amount" not in rita.get(f"/inbox/{request.pk}/?mode=edit").content.decode()


def test_htmx_gets_the_pane_and_back_gets_the_page(rita, waiting):
    path = f"/inbox/{waiting.pk}/"
    fragment = rita.get(path, htmx=True).content.decode()
    assert fragment.lstrip().startswith("<title>(1) Refund CN¥1,280.00 · Counterseal</title>")
    assert "<html" not in fragment
    whole = rita.get(path, htmx=True, **{"HX-History-Restore-Request": "true"}).content.decode()
    assert "<title>(1) Refund CN¥1,280.00 · Counterseal</title>" in whole
    assert 'id="queue"' in whole


# --- 200, 303 -----------------------------------------------------------------------------------------------------------
def test_approve_with_htmx(rita, waiting):
    sent = rita.decide(waiting, "approve", message="looks right")
    assert sent.status_code == 200
    assert "Approved: CN¥1,280.00." in text(sent)
    assert "Undo" in text(sent)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.closed_by, waiting.final_digest) == (
        "approved",
        "Rita Gupta",
        waiting.digest,
    )
    assert waiting.standing.message == "looks right"


def test_approve_without_javascript(rita, waiting):
    sent = rita.decide(waiting, "approve", htmx=False)
    assert (sent.status_code, sent["Location"]) == (302, f"/inbox/{waiting.pk}/")
    assert "You approved this." in text(rita.get(sent["Location"]))


def test_the_same_press_twice_is_one_decision(rita, waiting):
    key = str(uuid.uuid4())
    first, second = (rita.decide(waiting, "approve", key=key) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert "You approved this." in text(second)
    assert Decision.objects.count() == 1
    assert actions().count("request.approved") == 1


def test_a_second_press_with_another_key_is_told_what_was_done(rita, waiting):
    rita.decide(waiting, "approve")
    sent = rita.decide(waiting, "approve")
    assert sent.status_code == 409
    assert "You approved this. That was" in text(sent)
    assert Decision.objects.count() == 1


def test_the_key_of_another_answer_is_refused(rita, waiting):
    key = str(uuid.uuid4())
    rita.decide(waiting, "approve", key=key)
    assert rita.decide(waiting, "reject", key=key, message="no").status_code == 409


# --- 400, 422 -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "hidden", [{"digest": "x"}, {"rev": "0"}, {"rev": ""}, {"key": "1"}, {"answer": "sudo"}]
)
def test_a_damaged_form_is_400(rita, waiting, hidden):
    answer = hidden.pop("answer", "approve")
    assert rita.decide(waiting, answer, **hidden).status_code == 400
    waiting.refresh_from_db()
    assert waiting.is_pending


def test_rejecting_needs_a_reason(rita, waiting):
    sent = rita.decide(waiting, "reject", message="  ")
    assert sent.status_code == 422
    assert "Say why" in text(sent)
    assert b'aria-invalid="true"' in sent.content
    sent = rita.decide(waiting, "reject", preset="policy", message="see §3")
    assert sent.status_code == 200
    waiting.refresh_from_db()
    assert waiting.standing.message == "The policy does not cover this: see §3"
    assert "see §3" in waiting.message


WRONG = {
    "abc": "Enter a number", "": "Enter a number", "1,5": "Enter a number", "NaN": "Enter a number",
    "-5": "Enter more than 0", "0": "Enter more than 0", "1e309": "smaller number", "9e300": "smaller number",
    "1500": "more than the CN¥1,280.00 that can still be refunded", "12.345": "more decimals than CNY allows",
}  # fmt: skip


@pytest.mark.parametrize("typed", WRONG)
def test_an_amount_that_cannot_be_is_refused_at_its_field(rita, waiting, typed):
    sent = rita.decide(waiting, "edit", **fields(waiting, amount=typed))
    assert sent.status_code == 422
    assert WRONG[typed] in text(sent)
    shown = sent.content.decode()
    assert f'name="args/amount" value="{typed}"' in shown
    assert 'aria-describedby="f-args-amount-hint f-args-amount-error"' in shown
    waiting.refresh_from_db()
    assert waiting.is_pending


def test_no_decimals_for_yen(rita):
    request = factories.make_request(args={"order_id": "A-30001", "amount": 5000, "currency": "JPY"})
    sent = rita.decide(request, "edit", **fields(request, amount="12.5"))
    assert sent.status_code == 422
    assert "more decimals than JPY allows" in text(sent)


def test_a_numeric_text_becomes_the_number_and_is_shown_so(rita, waiting):
    sent = rita.decide(waiting, "edit", **fields(waiting, amount="12.50"))
    assert sent.status_code == 200
    waiting.refresh_from_db()
    assert waiting.final_args == {**waiting.args, "amount": 12.5}
    assert "Approved with an edit: CN¥12.50." in text(sent)


def test_unknown_and_locked_arguments_are_refused(rita, waiting):
    sent = rita.decide(waiting, "edit", **fields(waiting, amount="12", zzz="1"))
    assert sent.status_code == 422
    sent = rita.decide(waiting, "edit", **fields(waiting, order_id="A-1"))
    assert sent.status_code == 422
    assert "Locked by a rule" in text(sent)
    waiting.refresh_from_db()
    assert waiting.is_pending


def test_an_edit_that_changes_nothing_is_not_one(rita, waiting):
    sent = rita.decide(waiting, "edit", **fields(waiting))
    assert sent.status_code == 422
    assert "Nothing was changed" in text(sent)


def test_untouched_arguments_keep_their_bytes(rita):
    args = {"order_id": "A-20931", "amount": 640.0, "currency": "CNY", "reason": "007\n1e3"}
    request = factories.make_request(args=args)
    posted = fields(request, reason="007\r\n1e3 indeed")
    assert rita.decide(request, "edit", **posted).status_code == 200
    request.refresh_from_db()
    assert bytes(request.final).decode() == (
        '{"amount":640.0,"currency":"CNY","order_id":"A-20931","reason":"007\\n1e3 indeed"}'
    )


@pytest.mark.parametrize("answer", ["respond", "grant", "happened"])
def test_an_answer_that_is_not_allowed_is_refused(rita, waiting, answer):
    sent = rita.decide(waiting, answer, message="x", reference="x", grant="1")
    assert sent.status_code == 422
    waiting.refresh_from_db()
    assert waiting.is_pending


# --- 409 ------------------------------------------------------------------------------------------------------------------
def test_the_slower_person_is_told_who_when_and_why_and_keeps_the_edit(rita, chen, waiting):
    chen.decide(waiting, "reject", message="got a replacement RMA-771")
    sent = rita.decide(
        waiting, "edit", **fields(waiting, amount="980", reason="scratched"), message="my note"
    )
    assert sent.status_code == 409
    shown = text(sent)
    assert "Chen Yu rejected this. That was" in shown
    assert "Nothing you entered was sent." in shown
    assert "got a replacement RMA-771" in shown
    for kept in ("980", "scratched", "my note"):
        assert kept in shown
    assert b"data-decide" not in sent.content
    assert Decision.objects.count() == 1


def test_a_stale_card_decides_nothing_about_the_next_one(rita, chen):
    run = factories.make_case()
    first = factories.make_request(run, args={**factories.REFUND, "amount": 1200})
    chen.decide(first, "reject", message="no")
    second = factories.make_request(run, args={**factories.REFUND, "amount": 1280})
    sent = rita.decide(first, "approve")
    assert sent.status_code == 409
    assert "Chen Yu rejected this" in text(sent)
    second.refresh_from_db()
    assert second.is_pending


def test_a_request_that_changed_asks_to_look_again(rita, waiting):
    sent = rita.decide(waiting, "approve", rev=waiting.rev + 1)
    assert sent.status_code == 409
    assert "The request changed while you looked at it." in text(sent)
    sent = rita.decide(waiting, "approve", digest="0" * 64)
    assert sent.status_code == 409
    waiting.refresh_from_db()
    assert waiting.is_pending


def test_time_is_over_before_anybody_has_closed_it(rita, waiting):
    ApprovalRequest.objects.update(expires_at=Now() - timedelta(seconds=1))
    shown = rita.get(f"/inbox/{waiting.pk}/")
    assert "The time to decide is over." in text(shown)
    assert b"data-decide" not in shown.content
    sent = rita.decide(waiting, "approve")
    assert sent.status_code == 409
    assert "The time to decide is over." in text(sent)


@pytest.mark.parametrize(("status", "words"), [
    ("expired", "No person has looked at it"), ("withdrawn", "Withdrawn before it was decided"),
    ("rejected", "chen rejected this"), ("approved", "chen approved this"), ("edited", "approved this with an edit"),
])  # fmt: skip
def test_a_closed_request_says_how_it_ended(rita, status, words):
    request = factories.make_request(status=status)
    sent = rita.get(f"/inbox/{request.pk}/")
    assert words in text(sent)
    assert "nothing to decide here any more" in text(sent)
    assert b"data-decide" not in sent.content


# --- the notice ------------------------------------------------------------------------------------------------------------
def test_a_nudge_fetches_the_notice_and_never_the_form(rita, chen, waiting):
    path = f"/inbox/{waiting.pk}/notice/?rev={waiting.rev}"
    before = rita.get(path, htmx=True).content.decode()
    assert "<form" not in before
    assert "data-closed" not in before
    chen.decide(waiting, "approve")
    after = rita.get(path, htmx=True).content.decode()
    assert "data-closed" in after
    assert "Chen Yu approved this." in after
    assert 'id="panel-head" hx-swap-oob="true"' in after


def test_a_request_that_came_back_is_not_the_one_on_screen(rita, chen, waiting):
    chen.decide(waiting, "approve")
    chen.post(f"/inbox/decision/{Decision.objects.get().pk}/undo/", htmx=True)
    sent = rita.get(f"/inbox/{waiting.pk}/notice/?rev=1", htmx=True)
    assert "The request changed while you looked at it." in text(sent)
    assert b"data-closed" in sent.content


# --- undo, drafts --------------------------------------------------------------------------------------------------------------
def test_undo_brings_the_request_back(rita, waiting):
    rita.decide(waiting, "approve")
    decision = Decision.objects.get()
    sent = rita.post(f"/inbox/decision/{decision.pk}/undo/", htmx=True)
    assert sent.status_code == 200
    assert b"data-decide" in sent.content
    waiting.refresh_from_db()
    assert (waiting.is_pending, waiting.rev) == (True, 3)
    assert actions()[-1] == "request.undone"


def test_too_late_to_undo(rita, waiting):
    rita.decide(waiting, "approve")
    Decision.objects.update(send_at=Now(), sent_at=Now())
    sent = rita.post(f"/inbox/decision/{Decision.objects.get().pk}/undo/", htmx=True)
    assert sent.status_code == 409
    assert "You approved this." in text(sent)
    waiting.refresh_from_db()
    assert waiting.status == "approved"


def test_nobody_undoes_the_decision_of_somebody_else(rita, chen, waiting):
    chen.decide(waiting, "approve")
    assert rita.post(f"/inbox/decision/{Decision.objects.get().pk}/undo/").status_code == 404


def test_undo_lasts_as_long_as_the_person_chose(rita, waiting):
    type(rita.user).objects.update(undo_seconds=0)
    sent = rita.decide(waiting, "approve")
    assert "Undo" not in text(sent)


def test_a_draft_is_kept_and_shown_again(rita, waiting):
    sent = rita.post(
        f"/inbox/{waiting.pk}/draft/",
        {"answer": "edit", "rev": 1, "args/amount": "98", "key": "k"},
        htmx=True,
    )
    assert sent.status_code == 204
    shown = rita.get(f"/inbox/{waiting.pk}/?mode=edit").content.decode()
    assert 'name="args/amount" value="98"' in shown
    assert "Continue your edit" in text(rita.get(f"/inbox/{waiting.pk}/"))
    assert 'value="1280"' in rita.get(f"/inbox/{waiting.pk}/?mode=edit&fresh=1").content.decode()
    rita.decide(waiting, "edit", **fields(waiting, amount="98"))
    assert not DecisionDraft.objects.exists()


def test_drafts_are_personal(rita, chen, waiting):
    rita.post(f"/inbox/{waiting.pk}/draft/", {"answer": "edit", "rev": 1, "args/amount": "98"})
    assert 'value="1280"' in chen.get(f"/inbox/{waiting.pk}/?mode=edit").content.decode()


# --- other kinds ----------------------------------------------------------------------------------------------------------------
def test_a_question_is_answered(sam):
    request = factories.make_request(
        kind="question", tool="ask_staff", args={"question": "Which lamp?"}, by=sam.user
    )
    shown = sam.get(f"/inbox/{request.pk}/")
    assert "Which lamp?" in text(shown)
    assert sam.decide(request, "respond", message=" ").status_code == 422
    assert sam.decide(request, "respond", message="The blue one.").status_code == 200
    request.refresh_from_db()
    assert (request.status, request.message) == ("responded", "The blue one.")


def limit(**more):
    value = {"type": "limit_grant", "resource": "model_calls", "used": 25, "limit": 25, "max_extra": 35}
    return factories.make_request(
        kind="limit",
        tool="model_calls",
        args=value,
        value=value,
        attempt=26,
        title="Continue past 25 model calls?",
        **more,
    )


def test_a_limit_is_raised_or_kept(rita):
    request = limit()
    shown = text(rita.get(f"/inbox/{request.pk}/"))
    assert "Continue past 25 model calls?" in shown
    assert "At most 35" in shown
    for wrong in ("0", "36", "x", "1.5", ""):
        sent = rita.decide(request, "grant", grant=wrong)
        assert sent.status_code == 422
        assert "Enter a whole number from 1 to 35." in text(sent)
    assert rita.decide(request, "grant", grant="10").status_code == 200
    assert Decision.objects.get().grant == 10
    kept = limit()
    assert rita.decide(kept, "stop").status_code == 200
    kept.refresh_from_db()
    assert kept.status == "rejected"


def unknown(quiet: timedelta):
    from approvals.models import ToolExecution

    request = factories.make_request(
        kind="unknown_outcome", attempt=1, expires_in=None, quiet_until=Now() + quiet
    )
    ToolExecution.objects.create(
        thread=request.thread, run=request.run, ai_message_id=request.ai_message_id, tool_call_id=request.tool_call_id,
        tool="issue_refund", digest=request.digest, provider_key=uuid.uuid4().hex, status="unknown", attempt=1, fence=1,
        error="no answer from the shop within 8 s", started_at=Now() - timedelta(seconds=9), quiet_until=Now() + quiet,
    )  # fmt: skip
    return request


def test_an_unknown_outcome_asks_what_was_found(rita):
    request = unknown(timedelta(minutes=5))
    sent = rita.get(f"/inbox/{request.pk}/")
    shown = text(sent)
    assert "Did it go through? Refund CN¥1,280.00" in shown
    assert "no answer from the shop within 8 s" in shown
    assert "Possible from" in shown
    assert b"checked" not in sent.content.partition(b'class="choices"')[2].partition(b"</fieldset>")[0]
    assert "Did it go through?" in text(rita.get("/inbox/?queue=unknown"))

    nothing = rita.post(f"/inbox/{request.pk}/decide/",
                        {"rev": 1, "digest": request.digest, "key": str(uuid.uuid4())}, htmx=True)  # fmt: skip
    assert (nothing.status_code, "Choose what you found." in text(nothing)) == (422, True)
    assert rita.decide(request, "happened", reference=" ").status_code == 422
    early = rita.decide(request, "did_not_happen")
    assert (early.status_code, "Too early" in text(early)) == (422, True)
    assert rita.decide(request, "still_unknown", message="asked the bank").status_code == 200
    request.refresh_from_db()
    assert (request.is_pending, request.rev) == (True, 2)
    assert "asked the bank" in text(rita.get(f"/inbox/{request.pk}/"))
    assert rita.decide(request, "happened", reference="rf_1").status_code == 200
    assert "rf_1" in text(rita.get(f"/inbox/{request.pk}/"))


def test_it_did_not_happen_once_nothing_can_arrive(rita):
    request = unknown(-timedelta(seconds=1))
    assert "sent once more, with the same key" in text(rita.get(f"/inbox/{request.pk}/"))
    assert rita.decide(request, "did_not_happen").status_code == 200

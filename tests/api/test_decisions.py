"""What a person sends as an answer, and what counts."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from approvals.models import ApprovalRequest, AuditEvent, Decision
from tests import factories
from tests.api.conftest import Caller, caller, fields, refusals


@pytest.fixture
def request_(db):
    return factories.make_request()


def body(request: ApprovalRequest, type: str = "approve", **more):
    return {"type": type, "rev": request.rev, "digest": request.digest, **more}


def path(request: ApprovalRequest) -> str:
    return f"/requests/{request.pk}/decisions"


def untouched(request: ApprovalRequest) -> bool:
    fresh = ApprovalRequest.objects.get(pk=request.pk)
    return (fresh.status, fresh.rev, fresh.decisions.count()) == ("pending", request.rev, 0)


def test_approve(rita, request_, hints, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        sent = rita.post(path(request_), body(request_))
    assert sent.status_code == 201
    answer = sent.json()
    assert (answer["request"]["status"], answer["request"]["decided_by"]) == ("approved", rita.user.name)
    assert answer["request"]["final_args"] == factories.REFUND
    decision = Decision.objects.get()
    assert answer["id"] == str(decision.pk)
    assert (decision.actor, decision.token.user, decision.send_at <= decision.decided_at) == (
        rita.user,
        rita.user,
        True,
    )
    assert [hint.thread_id for hint in hints][-1] == str(request_.thread_id)
    entry = AuditEvent.objects.get(action="request.approved")
    assert (entry.actor_kind, entry.data["shown"]) == ("token", request_.digest)


def test_reject_keeps_the_reason(rita, request_):
    sent = rita.post(path(request_), body(request_, "reject", message="Wrong customer."))
    assert sent.status_code == 201
    assert sent.json()["request"]["status"] == "rejected"
    assert "Wrong customer." in sent.json()["request"]["message"]


def test_case_1_the_same_press_twice_is_one_decision(rita, request_):
    first, again = (rita.post(path(request_), body(request_), key="press") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert Decision.objects.count() == AuditEvent.objects.filter(action="request.approved").count() == 1


def test_case_1_without_a_key_the_second_press_is_told_who_decided(rita, request_):
    rita.post(path(request_), body(request_))
    again = rita.post(path(request_), body(request_))
    assert again.status_code == 409
    assert again.json()["decided_by"] == rita.user.name
    assert Decision.objects.count() == 1


def test_case_3_approve_then_reject(rita, chen, request_):
    rita.post(path(request_), body(request_))
    late = chen.post(path(request_), body(request_, "reject", message="no"))
    assert late.status_code == 409
    problem = late.json()
    assert (problem["decided_by"], problem["request_status"], problem["rev"]) == (
        rita.user.name,
        "approved",
        2,
    )
    assert problem["decided_at"].endswith("Z")
    assert ApprovalRequest.objects.get().status == "approved"


def test_the_same_key_with_another_answer_is_refused(rita, request_):
    rita.post(path(request_), body(request_), key="press")
    assert rita.post(path(request_), body(request_, "reject"), key="press").status_code == 409
    other = factories.make_request(factories.make_case())
    sent = rita.post(path(other), body(other), key="press")
    assert (sent.status_code, untouched(other)) == (409, True)


def test_case_5_a_stale_card_decides_nothing(rita, chen, request_):
    chen.post(path(request_), body(request_, "reject", message="too little"))
    bigger = factories.make_request(request_.run, args=factories.REFUND | {"amount": 99999})
    late = rita.post(path(request_), body(request_))
    assert (late.status_code, late.json()["decided_by"]) == (409, chen.user.name)
    assert untouched(bigger)


def test_case_14_forged_answers(rita, request_, nobody):
    assert nobody.post(path(request_), body(request_)).status_code == 401
    assert Caller(None, "cseal_00000000_forged").post(path(request_), body(request_)).status_code == 401
    stranger = caller("fay", "finance")
    assert stranger.post(path(request_), body(request_)).status_code == 404
    assert rita.post(path(request_), body(request_) | {"digest": "0" * 64}).status_code == 409
    assert rita.post(path(request_), body(request_) | {"rev": 7}).status_code == 409
    assert untouched(request_)


def test_the_digest_of_another_request_does_not_fit(rita, request_):
    other = factories.make_request(factories.make_case())
    assert rita.post(path(request_), body(request_) | {"digest": other.digest}).status_code == 409
    assert untouched(request_)


def test_what_is_over_is_over_even_before_the_sweep(rita, request_):
    ApprovalRequest.objects.filter(pk=request_.pk).update(expires_at=request_.created_at)
    sent = rita.post(path(request_), body(request_))
    assert (sent.status_code, sent.json()["request_status"]) == (409, "pending")
    assert "time is over" in sent.json()["detail"]


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ([{"type": "accept", "args": None}], "body"),
        ([], "body"),
        ("approve", "body"),
        (None, "body"),
        ({"decisions": [{"type": "approve"}]}, "decisions"),
        ({"type": "accept"}, "type"),
        ({"type": ["approve"]}, "type"),
        ({"rev": "1"}, "rev"),
        ({"rev": True}, "rev"),
        ({"rev": 1.0}, "rev"),
        ({"digest": None}, "digest"),
        ({"argz": {}}, "argz"),
        ({"message": {"text": "x"}}, "message"),
        ({"message": "a\x00b"}, "message"),
        ({"grant": "5"}, "grant"),
    ],
)
def test_cases_17_18_wrong_shapes_name_the_field(rita, request_, sent, named):
    shaped = body(request_) | sent if isinstance(sent, dict) else sent
    raw = b"null" if sent is None else None
    found = fields(rita.post(path(request_), raw or shaped))
    assert named in found
    assert untouched(request_)
    assert rita.post(path(request_), body(request_)).status_code == 201


@pytest.mark.parametrize(
    ("raw", "status", "named"),
    [
        (b"", 422, "body"),
        (b"{", 400, None),
        (b"\xff\xfe{}", 400, None),
        (b'{"type":"approve","type":"reject"}', 422, "type"),
        (b'{"args":{"amount":1,"amount":2}}', 422, "args/amount"),
        (b'{"args":{"amount":NaN}}', 422, "args/amount"),
        (b'{"args":{"amount":-Infinity}}', 422, "args/amount"),
        (b'{"args":{"lines":[{"qty":1e400}]}}', 422, "args/lines/0/qty"),
        (b'{"rev":99999999999999999999}', 422, "rev"),
        (b'{"message":"\\ud800"}', 422, "message"),
        (b'{"args":' + b"[" * 40 + b"]" * 40 + b"}", 422, "body"),
        (b'{"args":' + b"[" * 20_000 + b"]" * 20_000 + b"}", 422, "body"),
        (b'{"message":"' + b"x" * 70_000 + b'"}', 413, None),
        (b'{"message":"' + b"x" * 1_100_000 + b'"}', 413, None),
    ],
)
def test_json_without_one_meaning_is_refused(rita, request_, raw, status, named):
    sent = rita.post(path(request_), raw)
    assert sent.status_code == status
    assert named is None or named in fields(sent)
    assert untouched(request_)


def test_only_json_is_read(rita, request_):
    form = f"type=approve&rev={request_.rev}&digest={request_.digest}".encode()
    sent = rita.post(path(request_), form, content_type="application/x-www-form-urlencoded")
    assert (sent.status_code, untouched(request_)) == (415, True)


def test_case_19_a_type_that_is_not_allowed(rita, db):
    fixed = factories.make_request(allowed_decisions=("approve", "reject"))
    found = fields(rita.post(path(fixed), body(fixed, "edit", args=factories.REFUND)))
    assert found == {"type": "edit is not possible here; allowed: approve, reject."}
    for wrong in ("respond", "grant", "happened"):
        assert list(fields(rita.post(path(fixed), body(fixed, wrong, message="done")))) == ["type"]
    assert list(fields(rita.post(path(fixed), body(fixed, args=factories.REFUND)))) == ["args"]
    assert untouched(fixed)


def edited(**changes):
    return {name: value for name, value in (factories.REFUND | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (edited(amount="abc"), "args/amount"),
        (edited(amount=...), "args/amount"),
        ({}, "args/amount"),
        (edited(zzz=1), "args/zzz"),
        (edited(amount=True), "args/amount"),
        (edited(amount=None), "args/amount"),
        (edited(amount="１２"), "args/amount"),
        (edited(order_id="A-1"), "args/order_id"),
        (edited(currency="USD"), "args/currency"),
        ([], "args"),
        (None, "args"),
        ("text", "args"),
    ],
)
def test_case_22_wrong_arguments_name_the_field(rita, request_, args, named):
    assert named in fields(rita.post(path(request_), body(request_, "edit", args=args)))
    assert untouched(request_)


def test_case_22_a_number_as_text_becomes_the_number_it_spells(rita, request_):
    sent = rita.post(path(request_), body(request_, "edit", args=edited(amount="12.50")))
    assert sent.status_code == 201
    assert sent.json()["request"]["final_args"]["amount"] == 12.5


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (-5, ""),
        (0, ""),
        (1280.01, "can still be refunded"),
        (99_999, "can still be refunded"),
        (1.005, "decimals"),
    ],
)
def test_case_23_right_type_wrong_business(rita, request_, amount, said):
    found = fields(rita.post(path(request_), body(request_, "edit", args=edited(amount=amount))))
    assert said in found["args/amount"]
    assert untouched(request_)


def test_case_23_a_currency_without_decimals(rita, db):
    yen = {"order_id": "A-30001", "amount": 5000, "currency": "JPY"}
    request = factories.make_request(args=yen)
    found = fields(rita.post(path(request), body(request, "edit", args=yen | {"amount": 10.5})))
    assert "JPY" in found["args/amount"]
    assert rita.post(path(request), body(request, "edit", args=yen | {"amount": 10})).status_code == 201


def test_an_edit_is_refused_while_the_shop_cannot_be_asked(rita, request_, shop):
    shop.fault = "down"
    found = fields(rita.post(path(request_), body(request_, "edit", args=edited(amount=12))))
    assert "Nothing was decided" in found["args"]
    assert untouched(request_)


def test_an_edit_for_another_customers_order_is_refused(rita):
    request = factories.make_request(factories.make_case(customer_id="C-9", customer_name="Somebody Else"))
    found = fields(rita.post(path(request), body(request, "edit", args=edited(amount=12))))
    assert "belongs to Li Wei" in found["args/order_id"]
    assert untouched(request)


def test_untouched_values_of_an_edit_keep_their_type(rita, db):
    args = {
        "order_id": "A-20931",
        "amount": 1280.0,
        "currency": "CNY",
        "reason": "007",
        "customer_note": "1e3",
    }
    request = factories.make_request(args=args)
    sent = rita.post(path(request), body(request, "edit", args=args | {"amount": 12}))
    assert sent.status_code == 201
    raw = sent.content.decode()
    assert json.loads(raw)["request"]["final_args"] == args | {"amount": 12}
    assert '"amount": 1280.0' in raw
    changes = AuditEvent.objects.get(action="request.edited").data["changes"]
    assert changes == [{"field": "/amount", "old": 1280.0, "new": 12}]


def test_no_edit_brings_in_a_character_that_nobody_sees(rita, request_):
    sent = rita.post(path(request_), body(request_, "edit", args=edited(reason="a\x00b", amount=12)))
    assert (sent.status_code, list(fields(sent))) == (422, ["args/reason"])


def test_text_that_postgres_cannot_hold_as_json(rita):
    proposed = {**factories.REFUND, "reason": "a\x00b"}
    ask = factories.make_request(args=proposed)
    sent = rita.post(path(ask), body(ask, "edit", args={**proposed, "amount": 12}))
    assert sent.status_code == 201
    assert sent.json()["request"]["final_args"]["reason"] == "a\x00b"


@pytest.mark.parametrize("word", ["rejected", "withdrawn", "expired", "approved"])
def test_what_is_closed_stays_closed(rita, word):
    request = factories.make_request(status=word)
    assert rita.post(path(request), body(request)).status_code == 409
    assert ApprovalRequest.objects.get().status == word


def test_a_question_is_answered_by_staff(sam, rita):
    ask = factories.make_request(
        kind="question", tool="ask_staff", args={"question": "Which?"}, title="Question"
    )
    assert list(fields(sam.post(path(ask), body(ask, "respond", message=" ")))) == ["message"]
    sent = sam.post(path(ask), body(ask, "respond", message="The blue one."))
    assert (sent.status_code, sent.json()["request"]["status"]) == (201, "responded")


def test_a_limit_is_granted_within_bounds(rita):
    ask = factories.make_request(
        kind="limit", tool="issue_refund", args={}, value={"max_extra": 5}, title="More?"
    )
    for wrong in (None, 0, 6):
        assert list(fields(rita.post(path(ask), body(ask, "grant", grant=wrong)))) == ["grant"]
    sent = rita.post(path(ask), body(ask, "grant", grant=5))
    assert (sent.status_code, sent.json()["request"]["status"]) == (201, "approved")


def test_it_happened_needs_a_reference(rita):
    ask = factories.make_request(kind="unknown_outcome", title="Did it go through?", attempt=1)
    assert list(fields(rita.post(path(ask), body(ask, "happened")))) == ["reference"]
    sent = rita.post(path(ask), body(ask, "still_unknown"))
    assert (sent.status_code, sent.json()["request"]["status"]) == (201, "pending")


def test_staff_who_see_a_request_do_not_decide_it(sam, request_):
    sent = sam.post(path(request_), body(request_))
    assert sent.status_code == 403
    assert refusals("sam") == [("decide", f"/api/v1{path(request_)}")]
    assert untouched(request_)


def test_nobody_decides_their_own_case(rita):
    mine = factories.make_request(factories.make_case(rita.user))
    sent = rita.post(path(mine), body(mine))
    assert sent.status_code == 403
    assert "another person" in sent.json()["detail"]
    assert refusals("rita") == [("decide", f"/api/v1{path(mine)}")]
    entry = AuditEvent.objects.get(action="access.refused")
    assert (entry.object_id, entry.thread_id, entry.run_id) == (str(mine.pk), mine.thread_id, mine.run_id)
    assert untouched(mine)


def test_an_account_without_rights_learns_nothing(otto, request_):
    sent = otto.post(path(request_), body(request_))
    assert sent.status_code == 404
    assert refusals("otto") == [("see", f"/api/v1{path(request_)}")]


@pytest.mark.parametrize("scope", ["cases", "read", "audit", "admin"])
def test_a_token_without_the_scope_does_not_decide(db, request_, scope):
    weak = caller("chen", "refund-reviewers", scopes=(scope,))
    sent = weak.post(path(request_), body(request_))
    assert (sent.status_code, sent.json()["type"].rpartition(":")[2]) == (403, "scope")
    assert refusals("chen") == [("scope decide", f"/api/v1{path(request_)}")]
    assert untouched(request_)


def test_withdraw(sam, rita, request_):
    where = f"/requests/{request_.pk}/withdraw"
    assert rita.post(where, {"reason": "x"}).status_code == 403
    assert fields(sam.post(where, {"why": "x"})) == {"why": "There is no such field here: remove it."}
    sent = sam.post(where, {"reason": "Customer called."})
    assert (sent.status_code, sent.json()["status"]) == (200, "withdrawn")
    late = sam.post(where, {"reason": "again"})
    assert (late.status_code, late.json()["request_status"]) == (409, "withdrawn")


class TestSession:
    """A signed-in browser: cookie and CSRF token."""

    @pytest.fixture
    def browser(self, db):
        client = Client(enforce_csrf_checks=True)
        client.force_login(factories.make_user("rita", "refund-reviewers"))
        return client

    def test_reading_needs_the_cookie_only(self, browser, request_):
        assert browser.get(f"/api/v1/requests/{request_.pk}").status_code == 200

    def test_deciding_needs_the_csrf_token(self, browser, request_):
        sent = browser.post(f"/api/v1{path(request_)}", body(request_), content_type="application/json")
        assert (sent.status_code, sent.json()["type"].rpartition(":")[2]) == (403, "csrf")
        assert untouched(request_)

    def test_a_person_may_take_it_back_for_a_while(self, browser, request_):
        browser.cookies["csrftoken"] = "x" * 32
        sent = browser.post(
            f"/api/v1{path(request_)}",
            body(request_),
            content_type="application/json",
            headers={"X-CSRFToken": "x" * 32},
        )
        assert sent.status_code == 201
        decision = Decision.objects.get()
        assert (decision.send_at - decision.decided_at).total_seconds() == pytest.approx(5, abs=0.1)

    def test_a_bad_token_is_not_saved_by_a_good_cookie(self, browser, request_):
        sent = browser.get(f"/api/v1/requests/{request_.pk}", headers={"Authorization": "Bearer cseal_x_y"})
        assert sent.status_code == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_case_15_only_a_post_decides(rita, request_, method):
    for where in (path(request_), path(request_) + f"?type=approve&rev=1&digest={request_.digest}"):
        sent = rita.send(method, where, headers={"User-Agent": "SafeLinks-Scanner", "Purpose": "prefetch"})
        assert (sent.status_code, sent["Allow"]) == (405, "POST")
    assert untouched(request_)

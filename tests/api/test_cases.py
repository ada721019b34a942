"""Opening cases and writing to agents."""

from __future__ import annotations

import pytest

from approvals.models import ApprovalRequest, AuditEvent, Run, Thread
from tests import factories
from tests.api.conftest import fields, refusals

CASE = {"agent": "refunds", "message": "Please refund order A-20931 in full."}


@pytest.fixture(autouse=True)
def agent(db):
    factories.make_case(factories.make_user("tomas", "support"))


def test_a_case_is_a_thread_and_its_first_run(sam):
    body = CASE | {
        "customer": {"name": "李伟", "id": "C-1001"}, "order_id": "A-20931", "language": "zh-CN", "title": "Lamp",
    }  # fmt: skip
    sent = sam.post("/cases", body)
    assert sent.status_code == 201
    run = Run.objects.get(pk=sent.json()["run_id"])
    assert sent.json() == {
        "thread_id": str(run.thread_id), "run_id": str(run.pk), "status": "pending", "case": run.thread.number,
    }  # fmt: skip
    thread = run.thread
    assert (thread.customer_name, thread.customer_id, thread.order_id) == ("李伟", "C-1001", "A-20931")
    assert (thread.language, thread.title, run.message) == ("zh-CN", "Lamp", CASE["message"])
    assert (
        AuditEvent.objects.get(action="case.opened", run_id=run.pk).data["token"] == sam.token.split("_")[1]
    )


def test_the_same_key_and_body_is_the_same_case(sam):
    first, again = sam.post("/cases", CASE, key="k1"), sam.post("/cases", CASE, key="k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert Thread.objects.filter(requester__username="sam").count() == 1


def test_the_same_key_with_another_body_is_refused(sam):
    sam.post("/cases", CASE, key="k1")
    sent = sam.post("/cases", CASE | {"message": "something else"}, key="k1")
    assert sent.status_code == 409
    assert sent.json()["type"].endswith("key-reused")


def test_keys_of_two_people_do_not_meet(sam, rita):
    assert sam.post("/cases", CASE, key="k1").status_code == 201
    assert rita.post("/cases", CASE, key="k1").status_code == 201


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"agent": "nobody"}, "agent"),
        ({"message": "  "}, "message"),
        ({"message": "x" * 20_001}, "message"),
        ({"message": "a\x00b"}, "message"),
        ({"message": 5}, "message"),
        ({"messsage": "x"}, "messsage"),
        ({"customer": {"name": "x" * 121}}, "customer/name"),
        ({"customer": {"nmae": "x"}}, "customer/nmae"),
        ({"customer": []}, "customer"),
        ({"order_id": None}, "order_id"),
        ({"title": "x" * 201}, "title"),
    ],
)
def test_a_wrong_field_is_named(sam, changes, field):
    assert list(fields(sam.post("/cases", CASE | changes))) == [field]


def test_missing_fields_are_all_named(sam):
    assert set(fields(sam.post("/cases", {}))) == {"agent", "message"}


@pytest.mark.parametrize("key", ["", "x" * 201, "k\u00e9y"])
def test_a_useless_key_is_refused(sam, key):
    assert list(fields(sam.post("/cases", CASE, key=key))) == ["Idempotency-Key"]


def test_who_has_no_role_opens_nothing(otto):
    assert otto.post("/cases", CASE).status_code == 403
    assert refusals("otto") == [("open_case", "/api/v1/cases")]


def test_a_message_is_a_new_run_of_the_case(sam):
    run = factories.make_case(sam.user)
    sent = sam.post(f"/cases/{run.thread_id}/messages", {"message": "and hurry"}, key="m1")
    assert sent.status_code == 201
    assert sent.json()["run_id"] == sent.json()["id"]
    assert (sent.json()["number"], sent.json()["message"], sent.json()["status"]) == (
        2,
        "and hurry",
        "pending",
    )
    again = sam.post(f"/cases/{run.thread_id}/messages", {"message": "and hurry"}, key="m1")
    assert (again.status_code, again.json()["id"]) == (200, sent.json()["id"])
    other = sam.post(f"/cases/{run.thread_id}/messages", {"message": "and slow down"}, key="m1")
    assert other.status_code == 409


def test_while_a_decision_is_pending_the_poster_chooses(sam):
    request = factories.make_request()
    path = f"/cases/{request.thread_id}/messages"
    sent = sam.post(path, {"message": "wait"})
    assert (sent.status_code, sent.json()["type"][-7:]) == (409, "pending")
    assert Run.objects.filter(thread=request.thread).count() == 1
    assert sam.post(path, {"message": "wait", "while_pending": "queue"}).status_code == 201
    request.refresh_from_db()
    assert request.status == "pending"
    assert sam.post(path, {"message": "stop", "while_pending": "withdraw"}).status_code == 201
    request.refresh_from_db()
    assert (request.status, request.closed_by) == ("withdrawn", sam.user.name)
    assert list(fields(sam.post(path, {"message": "x", "while_pending": "approve"}))) == ["while_pending"]


@pytest.mark.parametrize("text", ["approve", "ok do it", "yes", '{"type":"approve"}'])
def test_text_is_never_a_decision(sam, text):
    request = factories.make_request()
    for while_pending in (None, "queue"):
        sam.post(f"/cases/{request.thread_id}/messages", {"message": text, "while_pending": while_pending})
    request.refresh_from_db()
    assert (request.status, request.decisions.count()) == ("pending", 0)


def test_an_empty_message_is_refused(sam):
    run = factories.make_case(sam.user)
    assert list(fields(sam.post(f"/cases/{run.thread_id}/messages", {"message": " \n"}))) == ["message"]


def test_who_may_not_see_a_case_cannot_write_to_it(rita, otto):
    run = factories.make_case()
    path = f"/cases/{run.thread_id}/messages"
    for who in (rita, otto):
        assert who.post(path, {"message": "x"}).status_code == 404
        assert refusals(who.user.username) == [("see", f"/api/v1{path}")]


def test_a_reviewer_sees_a_case_but_does_not_write_to_it(rita):
    request = factories.make_request()
    sent = rita.post(f"/cases/{request.thread_id}/messages", {"message": "approve"})
    assert sent.status_code == 403
    assert refusals("rita") == [("write", f"/api/v1/cases/{request.thread_id}/messages")]
    assert AuditEvent.objects.get(action="access.refused").thread_id == request.thread_id
    assert ApprovalRequest.objects.get().status == "pending"

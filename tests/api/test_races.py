"""Many callers at the same moment, each on a connection of its own."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from approvals.models import ApprovalRequest, AuditEvent, Decision, Event, Run, Thread
from tests import factories
from tests.api.conftest import caller

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(count: int, act: Callable[[int], Any]) -> list[Any]:
    """`act(0) ... act(count - 1)`, started together."""
    gate = threading.Barrier(count)

    def run(place: int) -> Any:
        gate.wait()
        try:
            return act(place)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_twenty_posts_with_one_key_open_one_case():
    factories.make_case()
    tomas = caller("tomas", "support")
    body = {"agent": "refunds", "message": "Please refund A-20931."}
    sent = at_once(20, lambda _: tomas.post("/cases", body, key="one"))
    assert Counter(answer.status_code for answer in sent) == {201: 1, 200: 19}
    assert len({answer.content for answer in sent}) == 1
    assert Thread.objects.filter(requester=tomas.user).count() == Run.objects.filter(key="one").count() == 1
    assert AuditEvent.objects.filter(action="case.opened", actor=tomas.user).count() == 1


def test_twenty_messages_with_one_key_are_one_run():
    run = factories.make_case()
    sam = caller("sam", "support")
    sent = at_once(
        20, lambda _: sam.post(f"/cases/{run.thread_id}/messages", {"message": "hurry"}, key="one")
    )
    assert Counter(answer.status_code for answer in sent) == {201: 1, 200: 19}
    assert {answer.json()["id"] for answer in sent} == {str(Run.objects.get(key="one").pk)}
    assert AuditEvent.objects.filter(action="message.posted").count() == 1


def test_twenty_messages_without_a_key_are_twenty_runs():
    run = factories.make_case()
    sam = caller("sam", "support")
    sent = at_once(20, lambda place: sam.post(f"/cases/{run.thread_id}/messages", {"message": f"m{place}"}))
    assert {answer.status_code for answer in sent} == {201}
    assert sorted(Run.objects.values_list("number", flat=True)) == list(range(1, 22))


def test_twenty_four_deciders_one_decision():
    request = factories.make_request()
    people = [caller(f"reviewer{n}", "refund-reviewers") for n in range(4)]
    kinds = ("approve", "reject", "edit")

    def decide(place: int) -> Any:
        kind = kinds[place % 3]
        body = {"type": kind, "rev": request.rev, "digest": request.digest, "message": f"{place}"}
        if kind == "edit":
            body["args"] = factories.REFUND | {"amount": 100 + place}
        return people[place % 4].post(f"/requests/{request.pk}/decisions", body)

    sent = at_once(24, decide)
    assert Counter(answer.status_code for answer in sent) == {201: 1, 409: 23}
    (winner,) = (answer.json() for answer in sent if answer.status_code == 201)
    decision = Decision.objects.get()
    assert winner["id"] == str(decision.pk)
    losers = [answer.json() for answer in sent if answer.status_code == 409]
    assert {loser["decided_by"] for loser in losers} == {decision.actor_name}
    assert {loser["request_status"] for loser in losers} == {ApprovalRequest.objects.get().status}
    acts = AuditEvent.objects.filter(action__in=["request.approved", "request.rejected", "request.edited"])
    assert acts.count() == 1
    assert Event.objects.filter(kind="decided", topic="inbox").count() == 1


def test_twenty_presses_with_one_key_are_one_decision():
    request = factories.make_request()
    rita = caller("rita", "refund-reviewers")
    body = {"type": "approve", "rev": request.rev, "digest": request.digest}
    sent = at_once(20, lambda _: rita.post(f"/requests/{request.pk}/decisions", body, key="press"))
    assert Counter(answer.status_code for answer in sent) == {201: 1, 200: 19}
    assert len({answer.json()["id"] for answer in sent}) == Decision.objects.count() == 1


def test_withdraw_against_approve():
    sam, rita = caller("sam", "support"), caller("rita", "refund-reviewers")
    for _ in range(10):
        request = factories.make_request(factories.make_case(sam.user))
        body = {"type": "approve", "rev": request.rev, "digest": request.digest}
        acts = [
            lambda r=request, b=body: rita.post(f"/requests/{r.pk}/decisions", b),
            lambda r=request: sam.post(f"/requests/{r.pk}/withdraw", {"reason": "x"}),
        ]
        approve, withdraw = (answer.status_code for answer in at_once(2, lambda place: acts[place]()))  # noqa: B023
        request.refresh_from_db()
        assert (approve, withdraw, request.status) in [(201, 409, "approved"), (409, 200, "withdrawn")]


def test_numbers_of_events_have_no_gap_after_all_that():
    factories.make_case()
    sam = caller("sam", "support")
    at_once(12, lambda n: sam.post("/cases", {"agent": "refunds", "message": f"m{n}"}))
    numbers = list(Event.objects.order_by("seq").values_list("seq", flat=True))
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))

"""Nobody is believed who says "it did not happen" while the provider knows the call."""

from __future__ import annotations

import json
from datetime import timedelta

import httpx
import pytest
from django.db.models.functions import Now

from approvals.actors import Actor
from approvals.errors import Invalid
from approvals.models import AuditEvent, Decision, ToolExecution
from approvals.services import lookups, requests, runs
from tests.engine.conftest import refund

DONE = {"text": "done"}
PAST = timedelta(seconds=1)


def asked(desk, mode):
    """A refund of 100 whose answer was lost; its quiet period is over."""
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    desk.fault(mode, times=1)
    desk.drive(run)
    ToolExecution.objects.update(quiet_until=Now() - PAST)
    return run, desk.pending(run)[0]


def lands_late(desk, run):
    """The request of the first attempt reaches the shop after all."""
    body = {"order_id": "A-20877", "amount": "100.00", "currency": "CNY", "reason": ""}
    key = desk.execution(run).provider_key
    httpx.post(f"{desk.shop.url}/refunds", json=body, headers={"Idempotency-Key": key}).raise_for_status()


def test_a_denial_is_refused_while_the_shop_knows_the_call(desk):
    run, request = asked(desk, "drop_after")
    (effect,) = desk.effects("A-20877")
    with pytest.raises(Invalid, match=effect["refund_id"]):
        desk.decide(request, "did_not_happen")
    request.refresh_from_db()
    assert (request.status, desk.execution(run).status, Decision.objects.count()) == ("pending", "unknown", 0)


def test_a_denial_is_refused_while_the_shop_cannot_be_asked(desk):
    _run, request = asked(desk, "error_before")
    desk.shop.stop()
    with pytest.raises(Invalid, match="must be looked up first"):
        desk.decide(request, "did_not_happen")
    request.refresh_from_db()
    assert request.status == "pending"


def test_a_look_up_settles_what_nobody_knew(desk, hints):
    run, request = asked(desk, "drop_after")
    (effect,) = desk.effects("A-20877")
    assert lookups.settle_due() == 1
    assert lookups.settle_due() == 0
    request.refresh_from_db()
    assert (request.status, request.closed_by) == ("handled_elsewhere", "Look-up by key")
    assert {str(hint.thread_id) for hint in hints} == {str(run.thread_id)}
    assert desk.drive(run) == "finished"
    ((text,),) = desk.tool_texts(run).values()
    assert json.loads(text)["refund_id"] == effect["refund_id"]
    execution = desk.execution(run)
    assert (execution.status, execution.attempt, execution.resolved_by) == ("succeeded", 1, "Look-up by key")
    assert len(desk.effects("A-20877")) == 1
    actions = AuditEvent.objects.filter(run_id=run.pk).values_list("action", "actor_kind")
    assert {("request.found", "rule"), ("execution.found", "rule")} <= set(actions)


def test_a_look_up_waits_for_the_quiet_period_and_is_not_hurried(desk):
    run, request = asked(desk, "error_before")
    ToolExecution.objects.update(quiet_until=Now() + timedelta(minutes=1))
    lands_late(desk, run)
    assert lookups.settle_due() == 0
    assert desk.execution(run).looked_at is None
    ToolExecution.objects.update(quiet_until=Now() - PAST, looked_at=Now())
    assert lookups.settle_due() == 0
    ToolExecution.objects.update(looked_at=Now() - lookups.EVERY - PAST)
    assert lookups.settle_due() == 1


def test_not_found_proves_nothing(desk):
    run, request = asked(desk, "error_before")
    assert lookups.settle_due() == 0
    request.refresh_from_db()
    assert (request.status, desk.execution(run).status) == ("pending", "unknown")


def test_a_late_effect_is_found_before_it_is_sent_again(desk):
    run, request = asked(desk, "error_before")
    desk.decide(request, "did_not_happen")
    lands_late(desk, run)
    assert desk.drive(run) == "finished"
    assert (desk.execution(run).status, desk.amounts("A-20877")) == ("succeeded", ["100.00"])


def test_a_late_effect_of_a_stopped_run_comes_to_light(desk):
    run, request = asked(desk, "error_before")
    desk.decide(request, "did_not_happen")
    runs.cancel(actor=Actor.of(desk.sam), run_pk=run.pk, reason="enough")
    desk.drive(run)
    assert (run.status, desk.execution(run).status) == ("cancelled", "planned")
    lands_late(desk, run)
    ToolExecution.objects.update(looked_at=None)
    assert lookups.settle_due() == 1
    assert desk.execution(run).status == "succeeded"
    assert AuditEvent.objects.filter(run_id=run.pk, action="execution.found").count() == 1


def test_an_answer_given_meanwhile_wins_over_the_look_up(desk, monkeypatch):
    run, request = asked(desk, "drop_after")
    (effect,) = desk.effects("A-20877")
    real = lookups._lookup

    def slow(tool):
        def look(key):
            found = real(tool)(key)
            desk.decide(request, "happened", reference="by hand")
            return found

        return look

    monkeypatch.setattr(lookups, "_lookup", slow)
    assert lookups.settle_due() == 0
    assert desk.execution(run).resolved_by == "rita"
    assert AuditEvent.objects.filter(action__in=["request.found", "execution.found"]).count() == 0
    assert effect["amount"] == "100.00"


def test_found_before_anybody_was_asked(desk, monkeypatch):
    """The worker dies between the lost answer and its question; the look-up comes before the next drive."""
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    desk.fault("drop_after", times=1)
    with monkeypatch.context() as dying:
        dying.setattr(requests, "ask", lambda **_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            desk.drive(run)
    ToolExecution.objects.update(quiet_until=Now() - PAST)
    assert lookups.settle_due() == 1
    assert desk.drive(run) == "finished"
    (request,) = run.requests.all()
    assert (request.status, request.closed_by) == ("handled_elsewhere", "Look-up by key")
    assert (run.status, desk.amounts("A-20877")) == ("success", ["100.00"])

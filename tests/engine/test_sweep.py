"""Whatever was lost on the way is found in the rows: what the sweep wakes, and what it leaves alone."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from approvals.actors import Actor
from approvals.models import Decision, Run
from approvals.services import decisions, requests, runs
from tests.engine.conftest import refund

DONE = {"text": "done"}
AGO = timedelta(minutes=10)


def swept(hints):
    """Thread ids that one sweep wakes when every open run is stale."""
    Run.objects.update(touched_at=Now() - AGO, hints=0)
    hints.clear()
    runs.hint_stuck()
    return [hint.thread_id for hint in hints]


def paused(desk):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    return run, desk.pending(run)[0]


def test_a_run_whose_first_hint_was_lost_is_woken(desk, hints):
    run = desk.open(DONE)
    assert swept(hints) == [str(run.thread_id)]


def test_a_run_that_was_just_touched_is_left_alone(desk, hints):
    desk.open(DONE)
    hints.clear()
    assert (runs.hint_stuck(), hints) == (0, [])


def test_hints_for_one_run_get_rarer(desk, hints, settings):
    run = desk.open(DONE)
    stale = timedelta(seconds=settings.STALE_SECONDS)
    for sent, factor in enumerate((1, 2, 4, 8, 8)):
        Run.objects.filter(pk=run.pk).update(touched_at=Now() - stale * factor * 0.9)
        assert runs.hint_stuck() == 0, sent
        Run.objects.filter(pk=run.pk).update(touched_at=Now() - stale * factor * 1.1)
        assert runs.hint_stuck() == 1, sent


def test_a_run_that_waits_for_a_person_is_left_alone(desk, hints):
    paused(desk)
    assert swept(hints) == []


def test_a_decision_whose_hint_was_lost_is_woken(desk, hints):
    run, request = paused(desk)
    desk.decide(request, "approve")
    assert swept(hints) == [str(run.thread_id)]
    desk.drive(run)
    assert (swept(hints), desk.amounts("A-20931")) == ([], ["1280.00"])


def test_a_decision_that_can_still_be_undone_is_left_alone(desk, hints):
    run, request = paused(desk)
    made = desk.decide(request, "approve", undo_for=timedelta(minutes=5))
    assert swept(hints) == []
    Decision.objects.filter(pk=made.decision.pk).update(send_at=Now() - timedelta(seconds=1))
    assert swept(hints) == [str(run.thread_id)]


def test_one_decided_call_wakes_the_run_although_another_still_waits(desk, hints):
    run = desk.open({"calls": [refund("A-20931", 1280), refund("A-20925", 2000)]}, DONE)
    desk.drive(run)
    first, _second = desk.pending(run)
    desk.decide(first, "reject", message="no")
    assert swept(hints) == [str(run.thread_id)]
    desk.drive(run)
    assert swept(hints) == []


def test_an_expired_request_wakes_its_run_also_after_an_undo(desk, hints):
    run, request = paused(desk)
    made = desk.decide(request, "approve", undo_for=timedelta(minutes=5))
    decisions.undo(actor=Actor.of(desk.rita), decision_pk=made.decision.pk)
    run.requests.update(expires_at=Now() - timedelta(seconds=1))
    assert requests.expire_due() == 1
    assert swept(hints) == [str(run.thread_id)]
    desk.drive(run)
    assert (run.status, desk.effects("A-20931")) == ("success", [])


def test_a_run_whose_worker_died_is_woken(desk, hints):
    run = desk.open(DONE)
    Run.objects.filter(pk=run.pk).update(status="running", attempts=1)
    assert swept(hints) == [str(run.thread_id)]


def test_an_interrupted_run_without_a_question_is_woken(desk, hints):
    """Killed between saving the interrupt and writing the rows."""
    run, request = paused(desk)
    request.delete()
    assert swept(hints) == [str(run.thread_id)]
    desk.drive(run)
    assert len(desk.pending(run)) == 1


def test_a_message_queued_behind_a_question_is_left_alone(desk, hints):
    run, _request = paused(desk)
    said = json.dumps({"script": [DONE]})
    runs.post(actor=Actor.of(desk.sam), thread_pk=run.thread_id, message=said, while_pending="queue")
    assert swept(hints) == []


@pytest.mark.parametrize("status", ["success", "error", "cancelled", "parked"])
def test_ended_runs_are_left_alone(desk, hints, status):
    run = desk.open(DONE)
    Run.objects.filter(pk=run.pk).update(status=status)
    assert swept(hints) == []

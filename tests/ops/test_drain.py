"""Workers that are told to stop end between two steps, with everything saved; whoever comes next goes on."""

from __future__ import annotations

import time

import pytest
from django.core.management import call_command

from agents import runtime
from approvals import stopping
from approvals.actors import SYSTEM, Actor
from approvals.models import AuditEvent, Run
from approvals.services import runs, work
from tests.engine.conftest import call, refund
from tests.services import wait_until

DONE = {"text": "the end"}
LOOK = {"calls": [call("lookup_order", order_id="A-20931")], "sleep": 0.5}


def steps(run):
    return run.steps.filter(kind="model").count()


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_a_worker_that_gets_sigterm_ends_between_two_steps(office, pool):
    worker = office.hire(pool=pool).wait_ready()
    run = office.open(*[LOOK] * 20, {"calls": [refund("A-20877", 240)]}, DONE)
    wait_until(lambda: steps(run) >= 2, 30, "it did not begin")
    assert worker.stop(seconds=30) == 0
    run.refresh_from_db()
    assert (run.status, run.attempts) == ("pending", 0)
    assert steps(run) < 20
    office.hire().wait_ready()
    office.until(run, "success")
    assert office.amounts("A-20877") == ["240.00"]
    assert run.answer == "the end"
    assert all(len(texts) == 1 for texts in office.tool_texts(run).values())


def test_a_drained_installation_takes_no_work_until_it_may_again(office, capsys):
    office.hire().wait_ready()
    at_work = office.open(*[LOOK] * 12, DONE)
    wait_until(lambda: steps(at_work) >= 1, 30, "it did not begin")
    call_command("drain")
    assert "Nothing is at work" in capsys.readouterr().out
    at_work.refresh_from_db()
    assert (at_work.status, work.in_flight()) == ("pending", [])
    before = steps(at_work)
    late = office.open(DONE)
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 1.5, 5)  # long enough for a worker that would take it
    late.refresh_from_db()
    assert (late.status, steps(at_work)) == ("pending", before)
    call_command("drain", "--off")
    wait_until(lambda: Run.objects.filter(status="success").count() == 2, 30, "work did not go on")
    found = AuditEvent.objects.filter(action__startswith="work.").order_by("pk")
    assert list(found.values_list("action", flat=True)) == ["work.drained", "work.resumed"]


def test_work_that_was_stopped_before_it_began_is_given_back(desk, hints, monkeypatch):
    run = desk.open(DONE)
    begun = runs.claim_next

    def claim_then_drain(**names):
        found = begun(**names)
        work.drain(actor=SYSTEM)
        return found

    monkeypatch.setattr(runs, "claim_next", claim_then_drain)
    assert desk.drive(run) == "released"
    assert (run.status, run.attempts, steps(run)) == ("pending", 0, 0)


def test_a_question_is_shown_even_when_work_stops_meanwhile(desk, hints, monkeypatch):
    """What the agent asks is not held back by a deploy."""
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    seen = []
    read = runtime.question_of
    monkeypatch.setattr(runtime, "question_of", lambda *given: seen.append(1) or read(*given))
    monkeypatch.setattr(stopping, "is_wanted", lambda: bool(seen))  # told to stop when the question is read
    desk.drive(run)
    assert (run.status, len(desk.pending(run))) == ("interrupted", 1)


def test_people_decide_while_work_is_stopped(desk, hints):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    (request,) = desk.pending(run)
    assert (work.drain(actor=SYSTEM), work.drain(actor=SYSTEM)) == (True, False)
    desk.decide(request, "approve")
    assert desk.drive(run) == "nothing to do"
    assert (runs.hint_stuck(), desk.effects("A-20931")) == (0, [])
    hints.clear()
    assert (work.resume(actor=SYSTEM), work.resume(actor=SYSTEM)) == (True, False)
    assert [hint.thread_id for hint in hints] == [str(run.thread_id)]
    desk.drive(run)
    assert desk.amounts("A-20931") == ["1280.00"]


def test_a_run_that_was_released_can_be_stopped_by_its_requester(desk, hints):
    run = desk.open(LOOK, DONE)
    Run.objects.filter(pk=run.pk).update(status="running")
    runs.release(run=Run.objects.get(pk=run.pk), fence=0)
    runs.cancel(actor=Actor.of(desk.sam), run_pk=run.pk, reason="not needed")
    desk.drive(run)
    assert run.status == "cancelled"

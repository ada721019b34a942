"""Retention: checkpoints of cases at rest go, what proves anything stays, and the conversation can go on."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now

from approvals.actors import Actor
from approvals.adapters.session import locked
from approvals.models import (
    Agent,
    AuditEvent,
    Decision,
    Event,
    Run,
    StackPicture,
    Step,
    Thread,
    ToolExecution,
    Trial,
)  # fmt: skip
from approvals.services import events, runs
from tests.engine.conftest import refund

DONE = {"text": "done"}
KEPT = (Decision, Run, Step, ToolExecution)


def checkpoints(run):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM checkpoints WHERE thread_id = %s", [str(run.thread_id)])
        return cursor.fetchone()[0]


def age(days):
    Thread.objects.update(updated_at=Now() - timedelta(days=days))


@pytest.fixture
def finished(desk, hints):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, {"text": "the end"})
    desk.drive(run)
    desk.decide(desk.pending(run)[0], "approve")
    desk.drive(run)
    assert run.status == "success"
    return run


def test_a_case_at_rest_keeps_its_last_checkpoint_and_all_that_counts(desk, finished):
    before = {model: model.objects.count() for model in KEPT}
    trail = AuditEvent.objects.count()
    assert checkpoints(finished) > 3
    age(31)
    call_command("prune")
    assert checkpoints(finished) == 1
    assert {model: model.objects.count() for model in KEPT} == before
    assert AuditEvent.objects.count() == trail + 1
    last = AuditEvent.objects.latest("pk")
    assert (last.action, last.data["threads"]) == ("work.pruned", 1)


def test_the_conversation_goes_on_after_it(desk, finished):
    age(31)
    call_command("prune")
    said = json.dumps({"script": [{"calls": [refund("A-20877", 100)]}, DONE]})
    run = runs.post(actor=Actor.of(desk.sam), thread_pk=finished.thread_id, message=said, while_pending=None)
    desk.drive(run)
    assert (run.status, desk.amounts("A-20877"), desk.amounts("A-20931")) == (
        "success",
        ["100.00"],
        ["1280.00"],
    )
    with locked(str(run.thread_id)) as session:
        state = session.saver.get_tuple({"configurable": {"thread_id": str(run.thread_id)}})
    humans = [m for m in state.checkpoint["channel_values"]["messages"] if m.type == "human"]
    assert len(humans) == 2, "what was said before is remembered"


def test_forgetting_drops_the_last_one_too_and_the_case_can_begin_again(desk, finished):
    age(400)
    call_command("prune", "--days", "365", "--forget")
    assert checkpoints(finished) == 0
    said = json.dumps({"script": [DONE]})
    run = runs.post(actor=Actor.of(desk.sam), thread_pk=finished.thread_id, message=said, while_pending=None)
    desk.drive(run)
    assert (run.status, desk.amounts("A-20931")) == ("success", ["1280.00"])


@pytest.mark.parametrize("status", ["pending", "running", "interrupted", "parked"])
def test_what_may_still_go_on_is_left_alone(finished, status):
    Run.objects.filter(pk=finished.pk).update(status=status)
    age(31)
    before = checkpoints(finished)
    call_command("prune")
    assert checkpoints(finished) == before


def test_young_cases_and_those_being_driven_are_left_alone(finished, capsys):
    before = checkpoints(finished)
    age(29)
    call_command("prune")
    assert checkpoints(finished) == before
    age(31)
    with other_session(finished.thread_id):
        call_command("prune")
        assert "1 were being worked on" in capsys.readouterr().out
        assert checkpoints(finished) == before
    call_command("prune")
    assert checkpoints(finished) == 1
    call_command("prune")
    assert "Pruned 0 cases" in capsys.readouterr().out.splitlines()[-1]


def other_session(thread_id):
    """A drive of another process: its session holds the lock."""
    import contextlib

    import psycopg

    from approvals.adapters.session import lock_key

    @contextlib.contextmanager
    def held():
        given = connection.get_connection_params()
        names = {name: given[name] for name in ("host", "port", "user", "dbname") if name in given}
        with psycopg.connect(**names, autocommit=True) as session:
            session.execute("SELECT pg_advisory_lock(%s)", [lock_key(str(thread_id))])
            yield

    return held()


def test_old_live_updates_go_and_browsers_that_were_away_start_anew(finished):
    topics = [finished.thread.topic]
    assert not events.replay(topics, since=0).resync
    Event.objects.update(created_at=Now() - timedelta(days=8))
    call_command("prune")
    assert Event.objects.count() == 0
    assert events.replay(topics, since=1).resync
    assert not events.replay(topics, since=events.current_seq()).resync


def test_old_trials_and_pictures_of_stacks_go(db):
    agent = Agent.objects.create(slug="a", title="A")
    for message in ("old", "new"):
        Trial.objects.create(agent=agent, spec={}, message=message, started_by="ada")
        StackPicture.objects.create(key=message, middleware=[])
    Trial.objects.filter(message="old").update(created_at=Now() - timedelta(days=31))
    StackPicture.objects.filter(key="old").update(asked_at=Now() - timedelta(days=31))
    call_command("prune")
    assert [trial.message for trial in Trial.objects.all()] == ["new"]
    assert [row.key for row in StackPicture.objects.all()] == ["new"]

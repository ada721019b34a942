"""A change is its row, its entry on the trail and its event, in one transaction: if one cannot be written, none is."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import transaction

from approvals.actors import SYSTEM, Actor
from approvals.models import AuditEvent, Event, EventCounter
from approvals.services import agents, cases, decisions, executions, requests, runs
from middleware.ports import CallId
from tests import factories
from tests.engine.conftest import scripted_spec


class Broken(RuntimeError):
    pass


def break_trail(patch):
    patch.setattr(AuditEvent, "save", fail)


def break_events(patch):
    patch.setattr(EventCounter.objects, "filter", fail)
    patch.setattr(Event.objects, "bulk_create", fail)


def fail(*_, **__):
    raise Broken


def everything():
    """Every row of the application, as the database has it."""
    return {
        model.__name__: sorted(map(repr, model._base_manager.values_list()))
        for model in apps.get_app_config("approvals").get_models()
    }


def sam():
    return Actor.of(factories.make_user("sam", "support"))


def decided():
    request = factories.make_request()
    return factories.decide(request, "approve", undo_for=timedelta(minutes=1))


def sent():
    run = runs.claim_next(thread_pk=factories.make_case().thread_id)
    call = CallId(str(run.thread_id), "ai", "call")
    row = executions.plan(run=run, actor=SYSTEM, fence=1, call=call, tool="issue_refund", digest="d")
    return executions.start(row=row, actor=SYSTEM, fence=1, idempotent=True)


def case_of_sam():
    run = factories.make_case()
    return runs.claim_next(thread_pk=run.thread_id)


def overdue():
    return factories.make_request(expires_in=timedelta(seconds=-1))


def to_be_reminded():
    row = factories.make_request()
    type(row).objects.filter(pk=row.pk).update(remind_at=row.created_at)
    return row


def ask_again(row):
    question = requests.Ask(
        kind=row.kind, ai_message_id="another", tool_call_id="call", attempt=0, interrupt_id="i", tool=row.tool,
        title=row.title, canonical=bytes(row.canonical), digest="d", allowed_decisions=("approve",),
        queue=row.queue, args_schema={}, locked=(), expires_in=None,
    )  # fmt: skip
    with transaction.atomic():
        return requests.ask(run=row.run, ask=question, actor=SYSTEM, checks=[])


CHANGES = {  # what -> (what has to be there before, the change)
    "a case is opened": (
        lambda: factories.make_case(),
        lambda _: cases.open_case(actor=sam(), case=cases.NewCase(agent="refunds", message="Refund A-20931")),
    ),
    "a message is posted": (
        factories.make_case,
        lambda run: cases.post_message(
            actor=sam(), thread_pk=run.thread_id, message="and?", while_pending=None
        ),
    ),
    "a run ends": (case_of_sam, lambda run: runs.finish(run=run, fence=run.thread.fence, status="success", usage={})),
    "a run is stopped": (factories.make_case, lambda run: runs.cancel(actor=sam(), run_pk=run.pk, reason="no")),
    "a person is asked": (factories.make_request, lambda row: ask_again(row)),
    "nobody decided in time": (overdue, lambda _: requests.expire_due()),
    "somebody is reminded": (to_be_reminded, lambda _: requests.remind_due()),
    "a request is approved": (factories.make_request, lambda row: factories.decide(row, "approve")),
    "a request is rejected": (factories.make_request, lambda row: factories.decide(row, "reject", message="no")),
    "a decision is undone": (
        decided,
        lambda row: decisions.undo(actor=Actor.of(row.actor), decision_pk=row.pk),
    ),
    "a request is withdrawn": (
        factories.make_request,
        lambda row: requests.withdraw(actor=sam(), request_pk=row.pk, reason="not needed"),
    ),
    "a call gets a definite no": (sent, lambda row: executions.refuse(row=row, actor=SYSTEM, fence=1, error="no")),
    "a call succeeded": (sent, lambda row: executions.succeed(row=row, actor=SYSTEM, fence=1, result={})),
    "an agent is published": (
        factories.make_case,
        lambda _: agents.publish(actor=SYSTEM, spec=scripted_spec(title="Another")),
    ),
}  # fmt: skip
SILENT = ("an agent is published", break_events)  # no page shows it live


@pytest.mark.parametrize(
    ("what", "part"),
    [(what, part) for what in CHANGES for part in (break_trail, break_events) if (what, part) != SILENT],
)
def test_if_one_part_cannot_be_written_nothing_is(transactional_db, hints, monkeypatch, what, part):
    before, change = CHANGES[what]
    subject = before()
    sam()
    factories.make_user("chen", "refund-reviewers")
    rows = everything()
    hints.clear()
    with monkeypatch.context() as patch, suppress(Broken):  # the sweep logs it and goes on with the next row
        part(patch)
        change(subject)
    assert everything() == rows
    assert hints == []
    change(subject)
    assert everything() != rows

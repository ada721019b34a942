"""The timeline: a projection of the thread's messages, one step per finished block. Written only by the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Max

from agents.contracts import Message
from approvals import cleaning
from approvals.enums import StepKind
from approvals.models import Run, Step
from approvals.services import events

KIND = {"human": StepKind.MESSAGE, "ai": StepKind.MODEL, "tool": StepKind.TOOL}


def record(*, run: Run, messages: Sequence[Message]) -> int:
    """Append what is new, in order, and follow what was rewritten: a middleware masks or replaces a text after it was
    shown. Inside a transaction; idempotent by message id. Returns how many were new."""
    known = dict(run.steps.values_list("message_id", "text"))
    fresh = [m for m in messages if m.id not in known and m.role in KIND]
    texts = {m.id: cleaning.text(m.text) for m in messages if m.id in known}
    rewritten = {message_id: text for message_id, text in texts.items() if text != known[message_id]}
    for message_id, text in rewritten.items():
        run.steps.filter(message_id=message_id).update(text=text)
    if not fresh:
        if rewritten:
            events.record(run.topic, run.thread.topic, kind="step", object_id=run.pk)
        return 0
    last = run.steps.aggregate(last=Max("position"))["last"] or 0
    Step.objects.bulk_create(
        _step(run, last + place, message) for place, message in enumerate(fresh, start=1)
    )
    events.record(run.topic, run.thread.topic, kind="step", object_id=run.pk, rev=last + len(fresh))
    return len(fresh)


def note(*, run: Run, notes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """What a middleware did to steps that are there already: message id -> notes. Idempotent; inside a transaction."""
    changed = 0
    for step in run.steps.filter(message_id__in=notes):
        fresh = [said for said in cleaning.json(list(notes[step.message_id])) if said not in step.notes]
        if fresh:
            changed += run.steps.filter(pk=step.pk).update(notes=[*step.notes, *fresh])
    if changed:
        events.record(run.topic, run.thread.topic, kind="step", object_id=run.pk)


def reconcile(*, run: Run, messages: Sequence[Message]) -> None:
    """After a crash the checkpoint may lack a message that was shown already: the checkpoint is right. A step that was
    once confirmed stays, even when a middleware has since summarised its message away."""
    saved = {m.id for m in messages}
    lost, _ = (
        run.steps.filter(is_confirmed=False, kind__in=[StepKind.MODEL, StepKind.TOOL])
        .exclude(message_id__in=saved)
        .delete()
    )
    record(run=run, messages=messages)
    run.steps.filter(is_confirmed=False, message_id__in=saved).update(is_confirmed=True)
    if lost:
        events.record(run.topic, run.thread.topic, kind="step", object_id=run.pk)


def _step(run: Run, position: int, message: Message) -> Step:
    calls = [
        {"id": call.id, "name": call.name, "args": cleaning.json(dict(call.args))}
        for call in message.tool_calls
    ]
    return Step(
        run=run,
        position=position,
        kind=KIND[message.role],
        message_id=message.id,
        tool=message.tool,
        tool_call_id=message.tool_call_id,
        text=cleaning.text(message.text),
        is_error=message.is_error,
        tool_calls=calls,
        usage=dict(message.usage),
        notes=cleaning.json(list(message.notes)),
    )

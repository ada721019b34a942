"""The effect ledger: planned -> started -> succeeded | failed | unknown. Every arrow is one conditional UPDATE,
its event and its audit entry, committed on its own.

* `fence` refuses an owner that has been replaced; `attempt` binds an answer to the very question it was given to.
* Only a definite refusal of a first attempt is `failed`. Time-out, reset and 5xx are `unknown`.
* `unknown` is left only by a person's UPDATE of this row (`resolve`) or by a look-up that found the effect.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from approvals import transitions
from approvals.actors import Actor
from approvals.enums import ExecutionStatus as Status
from approvals.models import ApprovalRequest, Run, ToolExecution
from approvals.services import audit, events
from middleware.ports import CallId, Conflict, SessionLost

KEY_LIFE = timedelta(hours=23)  # providers promise 24 h; later the same key is a new request
MAX_SENDS = 3  # automatic resends of one key, then a person is asked


def plan(*, run: Run, actor: Actor, fence: int, call: CallId, tool: str, digest: str) -> ToolExecution:
    """The row of this call, made on first sight. Its provider key is stored before anything is sent."""
    identity = {
        "thread_id": run.thread_id,
        "ai_message_id": call.ai_message_id,
        "tool_call_id": call.tool_call_id,
    }
    with transaction.atomic():
        row, created = ToolExecution.objects.get_or_create(
            **identity,
            defaults={
                "run": run,
                "tool": tool,
                "digest": digest,
                "provider_key": uuid.uuid4().hex,
                "fence": fence,
            },
        )
        if row.digest != digest:
            raise Conflict(f"execution {row.pk} was planned with other arguments")
        if created:
            _say(row, actor, "execution.planned", {"tool": tool, "digest": digest, "key": row.provider_key})
    return row


def start(*, row: ToolExecution, actor: Actor, fence: int, idempotent: bool) -> ToolExecution | None:
    """Claim the next attempt. None: already sent, and no living key makes a resend safe."""
    resend = (
        Q(status=Status.STARTED, retry_until__gt=Now(), attempt__lt=MAX_SENDS) if idempotent else Q(pk=None)
    )
    claim = ToolExecution.objects.filter(Q(status=Status.PLANNED) | resend, pk=row.pk, fence__lte=fence)
    with transaction.atomic():
        ToolExecution.objects.filter(pk=row.pk, status=Status.PLANNED, fence__lte=fence).update(
            retry_until=Now() + KEY_LIFE
        )
        changed = claim.update(
            status=Status.STARTED, attempt=F("attempt") + 1, fence=fence, started_at=Now(), finished_at=None
        )
        if not changed:
            return None
        row = _fresh(row)
        _say(row, actor, "execution.started", {"attempt": row.attempt, "key": row.provider_key})
    return row


def adopt(*, row: ToolExecution, fence: int) -> ToolExecution:
    """Take over a started attempt of a dead owner without sending anything."""
    mine = ToolExecution.objects.filter(pk=row.pk, status=Status.STARTED, fence__lte=fence)
    if not mine.update(fence=fence):
        raise SessionLost(f"execution {row.pk} moved on without us")
    return _fresh(row)


def not_sent(*, row: ToolExecution, actor: Actor, fence: int) -> ToolExecution:
    """Undo `start` of an attempt that provably was not sent."""
    return _move(row, fence, "not_sent", actor, "execution.not_sent", {})


def succeed(*, row: ToolExecution, actor: Actor, fence: int, result: Mapping[str, Any]) -> ToolExecution:
    return _move(
        row, fence, "succeed", actor, "execution.succeeded", {"result": dict(result)}, result=dict(result)
    )


def refuse(*, row: ToolExecution, actor: Actor, fence: int, error: str) -> ToolExecution:
    """The provider said no to the only attempt so far."""
    return _move(row, fence, "refuse", actor, "execution.failed", {"error": error}, error=error)


def lose(*, row: ToolExecution, actor: Actor, fence: int, quiet: timedelta, why: str) -> ToolExecution:
    """Nobody knows. Until `quiet` after the start of the attempt an old owner's request may still land."""
    mine = ToolExecution.objects.filter(pk=row.pk, status=Status.STARTED, fence__lte=fence)
    with transaction.atomic():
        changed = mine.update(
            status=Status.UNKNOWN, fence=fence, quiet_until=F("started_at") + quiet, error=why
        )
        row = _fresh(row)
        if changed:
            _say(row, actor, "execution.unknown", {"attempt": row.attempt, "why": why})
    return row


def resolve(*, request: ApprovalRequest, actor: Actor, happened: bool, reference: str = "") -> bool:
    """A person's answer about one attempt. Inside the transaction that also closes the request.

    False: too early, already answered, or about another attempt. "It happened" is accepted at any time, "it did not"
    only once no late answer can arrive (`quiet_until`, database clock).
    """
    asked = ToolExecution.objects.filter(
        thread_id=request.thread_id,
        ai_message_id=request.ai_message_id,
        tool_call_id=request.tool_call_id,
        attempt=request.attempt,
        status=Status.UNKNOWN,
    )
    if happened:
        result = {"reference": reference, "confirmed_by": actor.name}
        changed = asked.update(
            status=Status.SUCCEEDED, resolved_by=actor.name, result=result, error="", finished_at=Now()
        )
    else:
        changed = asked.filter(quiet_until__lte=Now()).update(
            status=Status.PLANNED, resolved_by=actor.name, error=""
        )
    return bool(changed)


def found(*, row: ToolExecution, actor: Actor, result: Mapping[str, Any]) -> bool:
    """The provider knows the key: it did happen, whoever said what. False: the row moved on meanwhile.

    `planned` only after a first attempt: an effect can land later than anybody thought possible.
    """
    lost = Q(status=Status.UNKNOWN) | Q(status=Status.PLANNED, attempt__gte=1)
    with transaction.atomic():
        changed = ToolExecution.objects.filter(lost, pk=row.pk, attempt=row.attempt).update(
            status=transitions.target("execution", row.status, "succeed"),
            result=dict(result),
            error="",
            resolved_by=actor.name,
            finished_at=Now(),
        )
        if changed:
            _say(_fresh(row), actor, "execution.found", {"attempt": row.attempt, "result": dict(result)})
    return bool(changed)


def of_request(request: ApprovalRequest, *, lock: bool = False) -> ToolExecution | None:
    """The ledger row of the call a request is about."""
    rows = _of(request)
    return (rows.select_for_update() if lock else rows).first()


def _of(request: ApprovalRequest) -> QuerySet[ToolExecution]:
    return ToolExecution.objects.filter(
        thread_id=request.thread_id, ai_message_id=request.ai_message_id, tool_call_id=request.tool_call_id
    )


def _move(
    row: ToolExecution,
    fence: int,
    event: str,
    actor: Actor,
    action: str,
    data: dict[str, Any],
    **columns: Any,
) -> ToolExecution:
    status = transitions.target("execution", Status.STARTED, event)
    mine = ToolExecution.objects.filter(pk=row.pk, status=Status.STARTED, attempt=row.attempt, fence=fence)
    finished = None if status == Status.PLANNED else Now()
    with transaction.atomic():
        if not mine.update(status=status, finished_at=finished, **columns):
            raise SessionLost(f"execution {row.pk} moved on without us")
        row = _fresh(row)
        _say(row, actor, action, {"attempt": row.attempt, **data})
    return row


def _fresh(row: ToolExecution) -> ToolExecution:
    return ToolExecution.objects.select_related("run", "thread").get(pk=row.pk)


def _say(row: ToolExecution, actor: Actor, action: str, data: dict[str, Any]) -> None:
    run = row.run
    events.record(row.thread.topic, run.topic, kind=action, object_id=row.pk, rev=row.attempt)
    audit.record(action, actor=actor, subject=row, run=run, data=data)

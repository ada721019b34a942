"""Approval requests: asked by the engine, and every ending that is not a person's decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from approvals import access, dispatch, transitions
from approvals.actors import EXPIRY_RULE, SYSTEM, Actor
from approvals.enums import RequestKind
from approvals.enums import RequestStatus as Status
from approvals.errors import AlreadyClosed, Invalid
from approvals.models import ApprovalRequest, Run
from approvals.services import audit, batches, events, wording


@dataclass(frozen=True)
class Ask:
    """Everything a request is made of. `identity` names the question, the rest what is shown and who decides."""

    kind: str
    ai_message_id: str
    tool_call_id: str
    attempt: int
    interrupt_id: str
    tool: str
    title: str
    canonical: bytes
    digest: str
    allowed_decisions: tuple[str, ...]
    queue: str
    args_schema: Mapping[str, Any] = field(default_factory=dict)
    value: Mapping[str, Any] = field(default_factory=dict)
    locked: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    rule: str = ""
    expires_in: timedelta | None = None
    remind_in: timedelta | None = None
    escalate_to: str = ""
    default_answer: str = ""
    quiet_until: Any = None

    @property
    def identity(self) -> dict[str, Any]:
        names = ("kind", "ai_message_id", "tool_call_id", "attempt")
        return {name: getattr(self, name) for name in names}


def find(*, run: Run, ask: Ask) -> ApprovalRequest | None:
    """The row of this question if it was projected before, with its address of today."""
    row = ApprovalRequest.objects.filter(thread_id=run.thread_id, **ask.identity).first()
    if row is not None and row.interrupt_id != ask.interrupt_id:
        ApprovalRequest.objects.filter(pk=row.pk).update(interrupt_id=ask.interrupt_id)
        row.interrupt_id = ask.interrupt_id
    return row


def ask(*, run: Run, ask: Ask, actor: Actor, checks: list[dict[str, Any]]) -> ApprovalRequest:
    """Make the row of an open question: row, event, audit entry. Inside the caller's transaction; idempotent."""
    if known := find(run=run, ask=ask):
        return known
    row = ApprovalRequest.objects.create(
        thread_id=run.thread_id,
        run=run,
        **ask.identity,
        interrupt_id=ask.interrupt_id,
        tool=ask.tool,
        title=ask.title[:300],
        canonical=ask.canonical,
        digest=ask.digest,
        allowed_decisions=list(ask.allowed_decisions),
        queue=ask.queue,
        args_schema=dict(ask.args_schema),
        value=dict(ask.value),
        locked=list(ask.locked),
        path=list(ask.path),
        rule=ask.rule,
        checks=checks,
        checked_at=Now(),
        expires_at=Now() + ask.expires_in if ask.expires_in else None,
        remind_at=Now() + ask.remind_in if ask.remind_in else None,
        escalate_to=ask.escalate_to,
        default_answer=ask.default_answer,
        quiet_until=ask.quiet_until,
    )
    row.refresh_from_db()
    events.record(
        events.INBOX, row.topic, run.thread.topic, run.topic, kind="asked", object_id=row.pk, rev=row.rev
    )
    shown = {"digest": row.digest, "rule": row.rule, "queue": row.queue, "tool": row.tool}
    audit.record("request.asked", actor=actor, subject=row, run=run, data=shown)
    return row


def close_others(*, run: Run, open_ids: list[str]) -> None:
    """A question that is no longer open has been taken by the graph (decided) or overtaken by events (pending)."""
    gone = ApprovalRequest.objects.filter(run=run, applied_at=None).exclude(interrupt_id__in=open_ids)
    for row in gone.filter(status=Status.PENDING).select_related("run", "run__thread"):
        close(
            request=row,
            event="supersede",
            actor=SYSTEM,
            message=wording.superseded(),
            action="request.superseded",
        )
    gone.exclude(status=Status.PENDING).update(applied_at=Now())


def close(
    *,
    request: ApprovalRequest,
    event: str,
    actor: Actor,
    message: str,
    action: str,
    only: QuerySet[ApprovalRequest] | None = None,
    data: Mapping[str, Any] | None = None,
) -> bool:
    """End a pending request without a decision: conditional UPDATE, event, audit entry, hint. False: already closed."""
    open_rows = (only if only is not None else ApprovalRequest.objects.all()).filter(
        pk=request.pk, status=Status.PENDING
    )
    with transaction.atomic():
        changed = open_rows.update(
            status=transitions.target("request", Status.PENDING, event),
            rev=F("rev") + 1,
            message=message,
            closed_by=actor.name,
            closed_at=Now(),
        )
        if not changed:
            return False
        request.refresh_from_db(fields=["status", "rev", "message", "closed_by", "closed_at"])
        announce(request, kind=request.status)
        audit.record(action, actor=actor, subject=request, run=request.run, data=data)
        dispatch.resume_on_commit(request.thread_id)
    return True


def announce(request: ApprovalRequest, *, kind: str) -> None:
    topics = (events.INBOX, request.topic, f"thread:{request.thread_id}", f"run:{request.run_id}")
    events.record(*topics, kind=kind, object_id=request.pk, rev=request.rev)


def withdrawable() -> QuerySet[ApprovalRequest]:
    """Pending requests that can be taken back. An effect that may have happened cannot be."""
    return ApprovalRequest.objects.filter(status=Status.PENDING).exclude(kind=RequestKind.UNKNOWN_OUTCOME)


def withdraw(*, actor: Actor, request_pk: Any, reason: str) -> ApprovalRequest:
    """Support staff take a request back. Raises `AlreadyClosed` if somebody was faster."""
    request = access.request_to_withdraw(actor.person, request_pk)
    if request.kind == RequestKind.UNKNOWN_OUTCOME:
        raise Invalid(
            {"request": "This may have happened already and cannot be withdrawn: say what you found instead."}
        )
    done = close(
        request=request,
        event="withdraw",
        actor=actor,
        message=wording.withdrawn(reason),
        action="request.withdrawn",
        data={"reason": reason},
    )
    if not done:
        request.refresh_from_db()
        raise AlreadyClosed(request)
    return request


# --- what time does: the database's clock; safe to run twice, beside a person's decision and beside each other ----------
def expire_due(*, limit: int = 100) -> int:
    """What nobody decided in time goes to the next group if there is one, else it ends. Returns how many it moved."""
    due = ApprovalRequest.objects.filter(status=Status.PENDING, expires_at__lte=Now())
    rows = due.select_related("run", "run__thread").order_by("expires_at")
    return batches.each(rows, lambda row: _escalate(row) or _expire(row, due), limit=limit)


def _expire(row: ApprovalRequest, due: QuerySet[ApprovalRequest]) -> bool:
    return close(
        request=row,
        event="expire",
        actor=EXPIRY_RULE,
        message=wording.expired(row.default_answer),
        action="request.expired",
        only=due,
        data={"default_answer": row.default_answer} if row.default_answer else None,
    )


def _escalate(row: ApprovalRequest) -> bool:
    """Ask the next group, once, and give it as much time as the first one had. False: there is none."""
    overdue = ApprovalRequest.objects.filter(
        pk=row.pk, status=Status.PENDING, expires_at__lte=Now(), escalated_from=""
    ).exclude(escalate_to="")
    changed = overdue.update(
        queue=F("escalate_to"),
        escalated_from=F("queue"),
        expires_at=Now() + (F("expires_at") - F("created_at")),
        rev=F("rev") + 1,
    )
    if not changed:
        return False
    row.refresh_from_db(fields=["queue", "escalated_from", "expires_at", "rev"])
    announce(row, kind="escalated")
    told = {"from": {"queue": row.escalated_from}, "to": {"queue": row.queue}}
    audit.record("request.escalated", actor=EXPIRY_RULE, subject=row, run=row.run, data=told)
    return True


def remind_due(*, limit: int = 100) -> int:
    """Say once that something has been waiting for long. Not a change of the request: open forms stay valid."""
    due = ApprovalRequest.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        status=Status.PENDING,
        reminded_at=None,
        remind_at__lte=Now(),
    )
    rows = due.select_related("run", "run__thread").order_by("remind_at")
    return batches.each(rows, lambda row: _remind(row, due), limit=limit)


def _remind(row: ApprovalRequest, due: QuerySet[ApprovalRequest]) -> bool:
    if not due.filter(pk=row.pk).update(reminded_at=Now()):
        return False
    announce(row, kind="reminded")
    audit.record("request.reminded", actor=EXPIRY_RULE, subject=row, run=row.run, data={"queue": row.queue})
    return True

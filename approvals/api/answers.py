"""What callers get: one model per kind of answer, built from rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Model
from pydantic import BaseModel

from approvals import access
from approvals.models import (
    AgentVersion,
    ApprovalRequest,
    AuditEvent,
    Decision,
    Run,
    Step,
    ToolExecution,
    User,
)
from approvals.services import audit


class Page[T](BaseModel):
    items: list[T]
    next: str | None  # send it as `after`; null: that was all


def page[T, R: Model](
    rows: Sequence[R], limit: int, build: Callable[[Sequence[R]], list[T]], cursor: Callable[[R], object]
) -> Page[T]:
    """A page of `limit` rows; the caller fetched one more to learn whether there is a next page."""
    shown = rows[:limit]
    more = str(cursor(shown[-1])) if len(rows) > limit else None
    return Page[Any](items=build(shown), next=more)


def each[T, R: Model](build: Callable[[R], T]) -> Callable[[Sequence[R]], list[T]]:
    return lambda rows: [build(row) for row in rows]


class Opened(BaseModel):
    thread_id: UUID
    run_id: UUID
    status: str
    case: int  # the number people use


def opened(run: Run) -> Opened:
    return Opened(thread_id=run.thread_id, run_id=run.pk, status=run.status, case=run.thread.number)


class RunAnswer(BaseModel):
    id: UUID
    thread_id: UUID
    case: int
    number: int
    agent: str
    agent_version: int
    status: str
    error: str
    answer: str
    message: str
    requests: list[UUID]
    usage: dict[str, Any]
    requested_by: str
    stopping: bool
    created_at: datetime
    finished_at: datetime | None


def run_answers(user: User, found: Sequence[Run]) -> list[RunAnswer]:
    """Several runs, with the requests that `user` may see, in one query for all of them."""
    asked: dict[UUID, list[UUID]] = {}
    visible = access.requests(user).filter(run__in=found).order_by("created_at", "pk")
    for run_id, pk in visible.values_list("run_id", "pk"):
        asked.setdefault(run_id, []).append(pk)
    return [_run_answer(run, asked.get(run.pk, [])) for run in found]


def run_answer(user: User, run: Run) -> RunAnswer:
    return run_answers(user, [run])[0]


def _run_answer(run: Run, asked: list[UUID]) -> RunAnswer:
    return RunAnswer(
        id=run.pk,
        thread_id=run.thread_id,
        case=run.thread.number,
        number=run.number,
        agent=run.thread.agent_id,
        agent_version=run.version.number,
        status=run.status,
        error=run.error,
        answer=run.answer,
        message=run.message,
        requests=asked,
        usage=run.usage,
        requested_by=run.requested_by.username,
        stopping=run.is_open and run.cancel_reason is not None,
        created_at=run.created_at,
        finished_at=run.finished_at,
    )


class PostedAnswer(RunAnswer):
    run_id: UUID


def posted(user: User, run: Run) -> PostedAnswer:
    return PostedAnswer(**run_answer(user, run).model_dump(), run_id=run.pk)


class StepAnswer(BaseModel):
    position: int
    kind: str
    message_id: str
    tool: str
    tool_call_id: str
    text: str
    is_error: bool
    tool_calls: list[Any]
    usage: dict[str, Any]
    notes: list[Any]
    created_at: datetime


def step_answer(step: Step) -> StepAnswer:
    return StepAnswer.model_validate(step, from_attributes=True)


class DecisionAnswer(BaseModel):
    id: UUID
    type: str
    actor: str
    actor_name: str
    by_token: bool
    args: Any
    message: str
    grant: int | None
    reference: str
    decided_at: datetime
    send_at: datetime
    sent_at: datetime | None
    undone_at: datetime | None


def decision_answer(decision: Decision) -> DecisionAnswer:
    return DecisionAnswer(
        id=decision.pk,
        type=decision.type,
        actor=decision.actor.username,
        actor_name=decision.actor_name,
        by_token=decision.token_id is not None,
        args=parsed(decision.args),
        message=decision.message,
        grant=decision.grant,
        reference=decision.reference,
        decided_at=decision.decided_at,
        send_at=decision.send_at,
        sent_at=decision.sent_at,
        undone_at=decision.undone_at,
    )


class CheckAnswer(BaseModel):
    level: str
    field: str
    text: str


class RequestAnswer(BaseModel):
    id: UUID
    rev: int
    digest: str
    kind: str
    status: str
    title: str
    tool: str
    args: Any  # exactly as proposed
    args_schema: dict[str, Any]
    final_args: Any  # what may run: as proposed or as edited; null while nothing may
    allowed_decisions: list[str]
    locked: list[Any]
    queue: str
    rule: str
    value: dict[str, Any]
    thread_id: UUID
    run_id: UUID
    ai_message_id: str
    tool_call_id: str
    attempt: int
    path: list[Any]
    checks: list[CheckAnswer]
    decisions: list[DecisionAnswer]
    message: str
    may_decide: bool
    created_at: datetime
    expires_at: datetime | None
    quiet_until: datetime | None
    decided_by: str | None
    decided_at: datetime | None


def request_answer(user: User, row: ApprovalRequest) -> RequestAnswer:
    """`row` comes with thread, run and decisions (with actors) loaded."""
    return RequestAnswer(
        id=row.pk,
        rev=row.rev,
        digest=row.digest,
        kind=row.kind,
        status=row.status,
        title=row.title,
        tool=row.tool,
        args=row.args,
        args_schema=row.args_schema,
        final_args=row.final_args,
        allowed_decisions=row.allowed_decisions,
        locked=row.locked,
        queue=row.queue,
        rule=row.rule,
        value=row.value,
        thread_id=row.thread_id,
        run_id=row.run_id,
        ai_message_id=row.ai_message_id,
        tool_call_id=row.tool_call_id,
        attempt=row.attempt,
        path=row.path,
        checks=[_check(check) for check in row.checks],
        decisions=[decision_answer(decision) for decision in row.decisions.all()],
        message=row.message,
        may_decide=row.is_pending and access.can_decide(user, row),
        created_at=row.created_at,
        expires_at=row.expires_at,
        quiet_until=row.quiet_until,
        decided_by=row.closed_by or None,
        decided_at=row.closed_at,
    )


def _check(found: dict[str, Any]) -> CheckAnswer:
    return CheckAnswer(
        level=found["level"], field=found.get("field", ""), text=found["text"] % dict(found.get("params", {}))
    )


class ExecutionAnswer(BaseModel):
    id: UUID
    status: str
    attempt: int
    provider_key: str
    result: Any
    error: str
    started_at: datetime | None
    finished_at: datetime | None


class RequestDetail(RequestAnswer):
    execution: ExecutionAnswer | None  # the ledger row of the call, once there is one


def request_detail(user: User, row: ApprovalRequest, execution: ToolExecution | None) -> RequestDetail:
    ledger = ExecutionAnswer.model_validate(execution, from_attributes=True) if execution else None
    return RequestDetail(**dict(request_answer(user, row)), execution=ledger)


class DecidedAnswer(BaseModel):
    id: UUID
    request: RequestDetail


class AuditAnswer(BaseModel):
    id: int
    at: datetime
    act: UUID
    action: str
    label: str
    actor_kind: str
    actor: str  # user name; "" where no person is behind it
    actor_name: str
    object_kind: str
    object_id: str
    object_name: str
    thread_id: UUID | None
    run_id: UUID | None
    data: dict[str, Any]


def audit_answer(row: AuditEvent) -> AuditAnswer:
    return AuditAnswer(
        id=row.pk,
        at=row.at,
        act=row.act,
        action=row.action,
        label=audit.label(row.action),
        actor_kind=row.actor_kind,
        actor=row.actor.username if row.actor else "",
        actor_name=row.actor_name,
        object_kind=row.object_kind,
        object_id=row.object_id,
        object_name=row.object_name,
        thread_id=row.thread_id,
        run_id=row.run_id,
        data=row.data,
    )


class AgentAnswer(BaseModel):
    slug: str
    title: str
    description: str
    is_paused: bool
    version: int | None
    fingerprint: str | None


class VersionAnswer(BaseModel):
    number: int
    fingerprint: str
    published_by: str
    published_at: datetime


def version_answer(version: AgentVersion) -> VersionAnswer:
    return VersionAnswer.model_validate(version, from_attributes=True)


class ToolAnswer(BaseModel):
    name: str
    title: str
    description: str
    effect: str
    reversible: bool
    idempotent: bool
    locked: list[str]
    args_schema: dict[str, Any]


class AgentDetail(AgentAnswer):
    spec: dict[str, Any] | None
    tools: list[ToolAnswer]
    versions: list[VersionAnswer]
    shop_url: str | None = None  # demo mode only


class MeAnswer(BaseModel):
    username: str
    name: str
    groups: list[str]
    queues: list[str]
    may_open_cases: bool
    may_see_audit: bool
    scopes: list[str] | None  # null: signed in with a session, which has every scope
    token: str | None  # its prefix
    token_expires_at: datetime | None


def parsed(data: bytes | memoryview | None) -> Any:
    return None if data is None else json.loads(bytes(data))

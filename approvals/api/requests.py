"""Approval requests: what waits for a person, and the person's answer."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from ninja import Query, Router, Status

from approvals import access
from approvals.actors import Actor
from approvals.api import answers
from approvals.api.auth import NO_NUL, READING, caller, needs
from approvals.api.bodies import DecisionBody, ReasonBody
from approvals.api.cases import IdempotencyKey
from approvals.api.paging import Limit, newest_first
from approvals.enums import DecisionType, RequestKind, RequestStatus, Scope
from approvals.models import ApprovalRequest, Decision, User
from approvals.services import decisions, executions
from approvals.services import requests as service

router = Router(tags=["requests"])

DECISIONS = Prefetch("decisions", Decision.objects.select_related("actor").order_by("decided_at", "pk"))
RELATED = ("thread", "thread__agent", "thread__requester", "run", "run__version")


@router.get("/requests", auth=needs(*READING), response=answers.Page[answers.RequestAnswer])
def list_requests(
    request: HttpRequest,
    status: Annotated[Literal[tuple(RequestStatus.values)] | None, Query(None)] = None,  # type: ignore[valid-type]
    kind: Annotated[Literal[tuple(RequestKind.values)] | None, Query(None)] = None,  # type: ignore[valid-type]
    thread: Annotated[UUID | None, Query(None)] = None,
    run: Annotated[UUID | None, Query(None)] = None,
    queue: Annotated[str | None, Query(None, max_length=150, pattern=NO_NUL)] = None,
    after: Annotated[UUID | None, Query(None)] = None,
    limit: Limit = 50,
) -> answers.Page[answers.RequestAnswer]:
    """Requests that the caller may see, newest first."""
    user = caller(request).person
    access.require(user, access.may_see_runs(user), "see_work")
    wanted = {"status": status, "kind": kind, "thread": thread, "run": run, "queue": queue}
    rows = access.requests(user).filter(
        **{name: value for name, value in wanted.items() if value is not None}
    )
    found = newest_first(_loaded(rows), after, limit)
    return answers.page(
        found, limit, answers.each(lambda row: answers.request_answer(user, row)), lambda row: row.pk
    )


@router.get("/requests/{uuid:request_id}", auth=needs(*READING), response=answers.RequestDetail)
def read_request(request: HttpRequest, request_id: UUID) -> answers.RequestDetail:
    """One request with everything a decision needs: arguments, schema, `rev` and `digest`."""
    return _detail(caller(request).person, request_id)


@router.post(
    "/requests/{uuid:request_id}/decisions",
    auth=needs(Scope.DECIDE),
    response={200: answers.DecidedAnswer, 201: answers.DecidedAnswer},
)
def decide(
    request: HttpRequest, request_id: UUID, answer: DecisionBody, key: IdempotencyKey = None
) -> Status[answers.DecidedAnswer]:
    """Decide on what was read: the first decision on this `rev` and `digest` counts, every other one is a 409."""
    actor = caller(request)
    done = decisions.decide(
        actor=actor,
        request_pk=request_id,
        answer=_answer(answer),
        seen=decisions.Seen(rev=answer.rev, digest=answer.digest, key=key or uuid.uuid4().hex),
        undo_for=undo_time(actor),
    )
    said = answers.DecidedAnswer(id=done.decision.pk, request=_detail(actor.person, request_id))
    return Status(200 if done.is_repeat else 201, said)


@router.post("/requests/{uuid:request_id}/withdraw", auth=needs(Scope.CASES), response=answers.RequestDetail)
def withdraw(request: HttpRequest, request_id: UUID, body: ReasonBody) -> answers.RequestDetail:
    """Take a request back before it is decided."""
    actor = caller(request)
    service.withdraw(actor=actor, request_pk=request_id, reason=body.reason)
    return _detail(actor.person, request_id)


def undo_time(actor: Actor) -> timedelta:
    """People may take a click back; programs mean what they send."""
    return timedelta() if actor.token else timedelta(seconds=actor.person.undo_seconds)


def _answer(body: DecisionBody) -> decisions.Answer:
    return decisions.Answer(
        type=DecisionType(body.type),
        args=body.args,
        message=body.message,
        grant=body.grant,
        reference=body.reference,
    )


def _loaded(rows: QuerySet[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
    return rows.select_related(*RELATED).prefetch_related(DECISIONS)


def _detail(user: User, pk: Any) -> answers.RequestDetail:
    row = access.request_for(user, pk)
    return answers.request_detail(user, row, executions.of_request(row))

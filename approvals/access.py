"""Fetching is authorising: what a person may see and do. Predicates, querysets, and getters that refuse."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.enums import RequestKind, Role
from approvals.errors import Attempt, NotAllowed
from approvals.models import Agent, ApprovalRequest, AuditEvent, Decision, Run, Thread, User


class Hidden(NotAllowed):
    """The object does not exist for this person (404)."""


def refuse(user: Any, right: str, subject: Any = None, *, hidden: bool = False, why: str = "") -> NotAllowed:
    """The exception to raise. The page, the API and the trail read `attempt`."""
    kind = Hidden if hidden else NotAllowed
    error = kind(why or right)
    error.attempt = Attempt(
        right, subject._meta.model_name if subject else "", str(subject.pk) if subject else ""
    )
    return error


def roles(user: User) -> frozenset[str]:
    """Names of the person's groups; read once per user object."""
    known: frozenset[str] | None = getattr(user, "_role_names", None)
    if known is None:
        known = (
            frozenset(user.groups.values_list("name", flat=True)) if user.is_authenticated else frozenset()
        )
        user._role_names = known  # type: ignore[attr-defined]
    return known


def is_support(user: User) -> bool:
    return Role.SUPPORT in roles(user)


def is_administrator(user: User) -> bool:
    return user.is_superuser or Role.ADMINISTRATORS in roles(user)


def is_auditor(user: User) -> bool:
    return Role.AUDITORS in roles(user)


NOT_QUEUES = frozenset({Role.SUPPORT, Role.ADMINISTRATORS, Role.AUDITORS})


def queues(user: User) -> frozenset[str]:
    """The queues whose requests the person decides: every group that is not one of the fixed roles."""
    return frozenset(roles(user) - {str(role) for role in NOT_QUEUES})


def is_reviewer(user: User) -> bool:
    return bool(queues(user))


def may_open_cases(user: User) -> bool:
    return is_support(user) or is_reviewer(user) or is_administrator(user)


def may_see_audit(user: User) -> bool:
    return is_administrator(user) or is_auditor(user)


def may_see_runs(user: User) -> bool:
    return bool(roles(user))


def may_see_agents(user: User) -> bool:
    return is_administrator(user) or is_auditor(user)


def may_set_up(user: User) -> bool:
    return is_administrator(user)


def sees_everything(user: User) -> bool:
    return is_administrator(user) or is_auditor(user)


# --- querysets -------------------------------------------------------------------------------------------------------
def threads(user: User) -> QuerySet[Thread]:
    """Support works as one team; a reviewer sees the cases that ask their queues, and their own."""
    everything = Thread.objects.all()
    if sees_everything(user) or is_support(user):
        return everything
    mine = Q(requester=user)
    if is_reviewer(user):
        mine |= Q(Exists(ApprovalRequest.objects.filter(_for_reviewers(user), thread=OuterRef("pk"))))
    return everything.filter(mine) if roles(user) else everything.none()


def runs(user: User) -> QuerySet[Run]:
    everything = Run.objects.all()
    if sees_everything(user) or is_support(user):
        return everything
    return everything.filter(Exists(threads(user).filter(pk=OuterRef("thread_id"))))


def requests(user: User) -> QuerySet[ApprovalRequest]:
    everything = ApprovalRequest.objects.all()
    if sees_everything(user) or is_support(user):
        return everything
    if not roles(user):
        return everything.none()
    mine = Q(thread__requester=user)
    return everything.filter(mine | _for_reviewers(user) if is_reviewer(user) else mine)


def _for_reviewers(user: User) -> Q:
    """What a reviewer may be asked, or was asked in vain: their queues, and questions, which any colleague may answer."""
    mine = queues(user)
    return Q(queue__in=mine) | Q(escalated_from__in=mine) | Q(kind=RequestKind.QUESTION)


def audit_events(user: User) -> QuerySet[AuditEvent]:
    return AuditEvent.objects.all() if may_see_audit(user) else AuditEvent.objects.none()


# --- what a person may do to one object ---------------------------------------------------------------------------------
def why_not_decide(user: User, request: ApprovalRequest) -> str:
    """The reason, in words for the person; "" if they may decide. Independent of the request's status."""
    asks_staff = request.kind == RequestKind.QUESTION
    if asks_staff and (is_support(user) or is_reviewer(user)):
        return ""
    if request.queue not in roles(user):
        return "queue"
    if user.pk == request.thread.requester_id or request.thread.runs.filter(requested_by=user).exists():
        return "own_case"  # four eyes: who asked for it, or said anything in its case, may not approve it
    if request.value.get("second_person") and approved_call(user).filter(pk=request.pk).exists():
        return "approver"  # whoever let a large call run does not also say what became of it
    return ""


def approved_call(user: User) -> QuerySet[ApprovalRequest]:
    """Questions about a call that this person approved."""
    mine = Decision.objects.filter(
        actor=user,
        undone_at=None,
        request__kind=RequestKind.TOOL_CALL,
        request__thread=OuterRef("thread"),
        request__ai_message_id=OuterRef("ai_message_id"),
        request__tool_call_id=OuterRef("tool_call_id"),
    )
    return ApprovalRequest.objects.filter(Exists(mine), kind=RequestKind.UNKNOWN_OUTCOME)


def can_decide(user: User, request: ApprovalRequest) -> bool:
    return not why_not_decide(user, request)


def can_withdraw(user: User, request: ApprovalRequest) -> bool:
    return is_support(user) or is_administrator(user) or user.pk == request.thread.requester_id


def can_write(user: User, thread: Thread) -> bool:
    return is_support(user) or is_administrator(user) or user.pk == thread.requester_id


# --- getters: authorise, and lock where the caller is going to write -----------------------------------------------------
def thread_for(user: User, pk: UUID | str) -> Thread:
    found = threads(user).select_related("agent", "requester").filter(pk=pk).first()
    if found is None:
        raise _missing(user, Thread, pk)
    return found


def run_for(user: User, pk: UUID | str) -> Run:
    found = (
        runs(user).select_related("thread", "thread__agent", "version", "requested_by").filter(pk=pk).first()
    )
    if found is None:
        raise _missing(user, Run, pk)
    return found


def request_for(user: User, pk: UUID | str) -> ApprovalRequest:
    related = ("thread", "thread__agent", "thread__requester", "run", "run__version")
    found = requests(user).select_related(*related).filter(pk=pk).first()
    if found is None:
        raise _missing(user, ApprovalRequest, pk)
    return found


def request_to_decide(user: User, pk: UUID | str) -> ApprovalRequest:
    request = request_for(user, pk)
    if why := why_not_decide(user, request):
        raise refuse(user, "decide", request, why=why)
    return request


def thread_to_write(user: User, pk: UUID | str) -> Thread:
    thread = thread_for(user, pk)
    if not can_write(user, thread):
        raise refuse(user, "write", thread)
    return thread


def run_to_cancel(user: User, pk: UUID | str) -> Run:
    run = run_for(user, pk)
    if not can_write(user, run.thread):
        raise refuse(user, "cancel", run)
    return run


def run_to_retry(user: User, pk: UUID | str) -> Run:
    run = run_for(user, pk)
    if not is_administrator(user):
        raise refuse(user, "retry", run)
    return run


def request_to_withdraw(user: User, pk: UUID | str) -> ApprovalRequest:
    request = request_for(user, pk)
    if not can_withdraw(user, request):
        raise refuse(user, "withdraw", request)
    return request


def audit_event_for(user: User, pk: int) -> AuditEvent:
    found = audit_events(user).filter(pk=pk).first()
    if found is None:
        raise _missing(user, AuditEvent, pk)
    return found


def agent_for(user: User, slug: str) -> Agent:
    """For looking at how it is set up."""
    require(user, may_see_agents(user), "see_agents")
    found = Agent.objects.filter(pk=slug).first()
    if found is None:
        raise _missing(user, Agent, slug)
    return found


def agent_to_set_up(user: User, slug: str) -> Agent:
    agent = agent_for(user, slug)
    if not may_set_up(user):
        raise refuse(user, "set_up", agent)
    return agent


def require(user: User, allowed: bool, right: str) -> None:
    if not allowed:
        raise refuse(user, right)


def _missing(user: User, model: type[Any], pk: object) -> NotAllowed:
    error = refuse(user, "see", hidden=True)
    error.attempt = Attempt("see", model._meta.model_name, str(pk))
    return error


def may_follow(user: User, topics: list[str]) -> list[str]:
    """The live topics this person may hear about."""
    return [topic for topic in topics if _may_follow_one(user, topic)]


def visible_ids(user: User, ids: Collection[str]) -> frozenset[str]:
    """Which of these cases, runs and requests the person may see."""
    if sees_everything(user) or is_support(user):
        return frozenset(ids)
    known = [pk for pk in ids if _is_uuid(pk)]
    found = (
        rows.filter(pk__in=known).values_list("pk", flat=True)
        for rows in (requests(user), threads(user), runs(user))
    )
    return frozenset(str(pk) for pks in found for pk in pks)


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _may_follow_one(user: User, topic: str) -> bool:
    kind, _, pk = topic.partition(":")
    if kind == "inbox":
        return bool(roles(user)) and not pk
    if not _is_uuid(pk):
        return False
    found: dict[str, QuerySet[Any]] = {"thread": threads(user), "run": runs(user), "request": requests(user)}
    return kind in found and found[kind].filter(pk=pk).exists()

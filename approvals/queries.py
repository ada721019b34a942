"""What pages read: filters, orders and counts on top of what `access` lets a person see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from approvals import access
from approvals.enums import ActorKind, RequestKind, RequestStatus, RunStatus, StepKind
from approvals.models import (
    OPEN,
    ApprovalRequest,
    AuditEvent,
    Decision,
    DecisionDraft,
    Run,
    Step,
    Thread,
    ToolExecution,
    User,
)

PAGE = 50
MANY = 1_000
LATELY = 1_000  # entries of the trail
ALL = 1_000  # what a person may list of a queue at once
GHOSTS_FOR = timedelta(minutes=30)
QUEUES = ("mine", "team", "unknown", "done")


# --- inbox ----------------------------------------------------------------------------------------------------------
def decidable(user: User) -> Q:
    """Requests whose decision is this person's to give: the same rule as `access.why_not_decide`."""
    spoke = Run.objects.filter(thread=OuterRef("thread"), requested_by=user)
    approved = access.approved_call(user).filter(value__second_person=True).values("pk")
    mine = (
        Q(queue__in=access.roles(user)) & ~Q(thread__requester=user) & ~Q(Exists(spoke)) & ~Q(pk__in=approved)
    )
    if access.is_support(user) or access.is_reviewer(user):
        mine |= Q(kind=RequestKind.QUESTION)
    return mine


def waiting(user: User, queue: str = "mine") -> QuerySet[ApprovalRequest]:
    """Pending requests of a queue."""
    pending = access.requests(user).filter(status=RequestStatus.PENDING)
    if queue == "mine":
        return pending.filter(decidable(user))
    if queue == "unknown":
        return pending.filter(kind=RequestKind.UNKNOWN_OUTCOME)
    return pending


def counts(user: User) -> dict[str, int]:
    """How many wait in each queue, in one query."""
    unknown = Q(kind=RequestKind.UNKNOWN_OUTCOME)
    return waiting(user, "team").aggregate(
        mine=Count("pk", filter=decidable(user)), team=Count("pk"), unknown=Count("pk", filter=unknown)
    )


def inbox_rows(user: User, queue: str, *, ghosts: bool, limit: int = PAGE) -> list[ApprovalRequest]:
    """Due first. With `ghosts`, what was closed lately too, for lists that show it already."""
    if queue == "done":
        closed = access.requests(user).exclude(status=RequestStatus.PENDING)
        return list(_for_rows(closed).order_by("-closed_at")[:PAGE])
    due = _for_rows(waiting(user, queue)).order_by(F("expires_at").asc(nulls_last=True), "id")
    rows = list(due[:limit])
    if ghosts:
        closed = access.requests(user).filter(closed_at__gt=Now() - GHOSTS_FOR)
        rows += _for_rows(closed).order_by("-closed_at")[:PAGE]
    return rows


def _for_rows(found: QuerySet[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
    """With everything a row shows: no row asks the database again."""
    return found.select_related("thread", "thread__agent", "run", "run__version").defer("args_schema")


def own_cases(user: User, rows: Iterable[ApprovalRequest]) -> set[UUID]:
    """Those threads of the rows in which the person asked for something: as in `access.why_not_decide`."""
    listed = {row.thread_id for row in rows}
    return set(Run.objects.filter(thread__in=listed, requested_by=user).values_list("thread_id", flat=True))


def next_waiting(user: User, after: ApprovalRequest) -> ApprovalRequest | None:
    """What to decide next: the first that is due and not the one on screen."""
    others = waiting(user).exclude(pk=after.pk)
    return others.order_by(F("expires_at").asc(nulls_last=True), "id").only("id").first()


def draft_of(user: User, request: ApprovalRequest) -> DecisionDraft | None:
    return DecisionDraft.objects.filter(user=user, request=request).first()


def open_question(row: ToolExecution) -> ApprovalRequest | None:
    """What asks people whether this call went through, while nobody knows."""
    asked = ApprovalRequest.objects.filter(
        thread_id=row.thread_id,
        ai_message_id=row.ai_message_id,
        tool_call_id=row.tool_call_id,
        kind=RequestKind.UNKNOWN_OUTCOME,
        status=RequestStatus.PENDING,
    )
    return asked.first()


def decisions_of(request: ApprovalRequest) -> list[Decision]:
    return list(request.decisions.select_related("actor", "token").order_by("decided_at"))


def log_of(request: ApprovalRequest) -> list[AuditEvent]:
    """The entries about this request, oldest first."""
    return list(
        AuditEvent.objects.filter(object_kind="approvalrequest", object_id=str(request.pk)).order_by("id")
    )


# --- runs and cases ---------------------------------------------------------------------------------------------------
def steps_of(run: Run) -> list[Step]:
    return list(run.steps.order_by("position"))


def cases(user: User, *, before: datetime | None = None, search: str = "") -> list[Thread]:
    """Newest activity first, each with its runs and what waits."""
    found = access.threads(user).select_related("agent", "requester")
    if before:
        found = found.filter(updated_at__lt=before)
    if search:
        named = (
            Q(title__icontains=search) | Q(customer_name__icontains=search) | Q(order_id__icontains=search)
        )
        found = found.filter(named | Q(number=int(search)) if _is_number(search) else named)
    asked = ApprovalRequest.objects.order_by("created_at").defer("args_schema")
    pending = asked.filter(status=RequestStatus.PENDING)
    columns = ("id", "thread", "number", "status", "answer", "error", "cancel_reason")
    calls = asked.filter(kind=RequestKind.TOOL_CALL)
    runs = (
        Run.objects.order_by("number")
        .only(*columns)
        .prefetch_related(Prefetch("requests", calls, to_attr="asked"))
    )
    ready = found.prefetch_related(
        Prefetch("requests", pending, to_attr="waiting"), Prefetch("runs", runs, to_attr="turns")
    )
    return list(ready.order_by("-updated_at")[: PAGE + 1])


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def turns_of(thread: Thread) -> list[Run]:
    """The conversation: every run with its steps, its requests and its ledger rows."""
    runs = thread.runs.select_related("version", "requested_by").order_by("number")
    return list(
        runs.prefetch_related(
            Prefetch("steps", Step.objects.order_by("position")),
            Prefetch(
                "requests", ApprovalRequest.objects.select_related("thread", "run").order_by("created_at")
            ),
            "executions",
        )
    )


def runs(user: User, *, status: str = "", before: tuple[datetime, UUID] | None = None) -> list[Run]:
    """Newest first; `before` is the last row of the page before."""
    found = access.runs(user).select_related("thread", "thread__agent", "version", "requested_by")
    if status in RunStatus.values:
        found = found.filter(status=status)
    elif status == "open":
        found = found.filter(status__in=OPEN)
    if before:
        moment, pk = before
        found = found.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=pk))
    model_steps = Step.objects.filter(kind=StepKind.MODEL).only("run", "kind", "tool", "usage")
    asked = ApprovalRequest.objects.order_by("created_at").only(
        "run", "kind", "status", "rev", "tool_call_id"
    )
    ready = found.prefetch_related(
        Prefetch("steps", model_steps, to_attr="model_steps"), Prefetch("requests", asked, to_attr="asked")
    )
    return list(ready.order_by("-created_at", "-pk")[: PAGE + 1])


def audit_entry_of(run: Run) -> AuditEvent | None:
    return AuditEvent.objects.filter(run_id=run.pk).order_by("id").first()


def answers_unsent(run: Run) -> bool:
    """Whether a decision on this run can still be undone."""
    unsent = Decision.objects.filter(request=OuterRef("pk"), sent_at=None, undone_at=None)
    return run.requests.filter(Exists(unsent)).exists()


# --- audit trail ----------------------------------------------------------------------------------------------------------
WHAT: dict[str, tuple[str, ...]] = {
    "decisions": ("request.",),
    "effects": ("execution.", "gate."),
    "runs": ("run.", "case.", "message."),
    "access": ("session.", "access.", "token."),
    "setup": ("agent.", "draft.", "settings."),
}
WHO: dict[str, tuple[str, ...]] = {
    "people": (ActorKind.USER,),
    "tokens": (ActorKind.TOKEN,),
    "agents": (ActorKind.AGENT,),
    "rules": (ActorKind.RULE,),
    "system": (ActorKind.SYSTEM,),
}


@dataclass(frozen=True)
class AuditFilter:
    """What the URL of the audit trail says."""

    q: str = ""
    who: str = ""
    what: str = ""
    since: date | None = None
    until: date | None = None
    case: int | None = None
    run: UUID | None = None
    before: int | None = None
    after: int | None = None

    @property
    def is_active(self) -> bool:
        return bool(self.q or self.who or self.what or self.since or self.until or self.case or self.run)


def audit_events(user: User, wanted: AuditFilter) -> QuerySet[AuditEvent]:
    """Entries that match, without paging."""
    found = access.audit_events(user)
    if wanted.who:
        kinds = WHO.get(wanted.who)
        found = found.filter(actor_kind__in=kinds) if kinds else found.filter(actor_name=wanted.who)
    if wanted.what:
        found = found.filter(
            _any(Q(action__startswith=prefix) for prefix in WHAT.get(wanted.what, (wanted.what,)))
        )
    if wanted.since:
        found = found.filter(at__gte=_midnight(wanted.since))
    if wanted.until:
        found = found.filter(at__lt=_midnight(wanted.until + timedelta(days=1)))
    if wanted.case is not None:
        found = found.filter(thread_id__in=Thread.objects.filter(number=wanted.case).values("pk"))
    if wanted.run:
        found = found.filter(run_id=wanted.run)
    if wanted.q:
        found = found.filter(_matches(wanted.q))
    return found


def audit_page(user: User, wanted: AuditFilter) -> tuple[list[AuditEvent], bool, bool]:
    """Up to 50 entries, newest first, and whether there are older and newer ones."""
    found = audit_events(user, wanted)
    if wanted.after is not None:
        rows = list(found.filter(pk__gt=wanted.after).order_by("pk")[: PAGE + 1])
        return rows[:PAGE][::-1], True, len(rows) > PAGE
    page = found.filter(pk__lt=wanted.before) if wanted.before is not None else found
    rows = list(page.order_by("-pk")[: PAGE + 1])
    return rows[:PAGE], len(rows) > PAGE, wanted.before is not None


def _matches(text: str) -> Q:
    """A name, an id, an order: wherever a person would expect it to be found."""
    found = Q(object_name__icontains=text) | Q(actor_name__icontains=text) | Q(object_id=text)
    cases = Thread.objects.filter(
        Q(title__icontains=text) | Q(customer_name__icontains=text) | Q(order_id__icontains=text)
    )
    found |= Q(thread_id__in=cases.values("pk")) | Q(action=text)
    if pk := _uuid(text):
        found |= Q(run_id=pk) | Q(thread_id=pk) | Q(act=pk)
    if _is_number(text):
        found |= Q(thread_id__in=Thread.objects.filter(number=int(text)).values("pk")) | Q(pk=int(text))
    return found


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def same_run(entry: AuditEvent) -> list[AuditEvent]:
    """What else happened in the run of this entry."""
    if entry.run_id is None:
        return []
    return list(AuditEvent.objects.filter(run_id=entry.run_id).order_by("id")[:200])


def actors(user: User) -> list[str]:
    """Names of people on the trail lately, for the filter."""
    kinds = (ActorKind.USER, ActorKind.TOKEN)
    lately = access.audit_events(user).order_by("-pk").values("actor_kind", "actor_name")[:LATELY]
    return sorted({entry["actor_name"] for entry in lately if entry["actor_kind"] in kinds})


def count_up_to(found: QuerySet[Any], most: int = MANY) -> int:
    """How many there are, or `most + 1`: nobody needs the exact number of very many, and counting reads them all."""
    return found.order_by()[: most + 1].count()


def _any(parts: Iterable[Q]) -> Q:
    found = Q(pk=None)
    for part in parts:
        found |= part
    return found


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()), timezone.get_current_timezone())


def named(pks: Iterable[Any]) -> dict[str, ApprovalRequest]:
    """Requests by id, for links from the trail."""
    found = ApprovalRequest.objects.filter(pk__in=list(pks)).select_related("thread", "run")
    return {str(row.pk): row for row in found}


# --- groups that are asked --------------------------------------------------------------------------------------------
def queue_names() -> list[str]:
    """The groups that may decide requests."""
    return list(
        Group.objects.exclude(name__in=access.NOT_QUEUES).order_by("name").values_list("name", flat=True)
    )


def staffed(names: Iterable[str]) -> set[str]:
    """Those of these groups that have somebody in them who can sign in."""
    return set(
        Group.objects.filter(name__in=list(names), user__is_active=True).values_list("name", flat=True)
    )

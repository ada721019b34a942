"""Runs: started by people, moved by the engine. One function per change of state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from approvals import access, cleaning, dispatch, stopping, transitions
from approvals.actors import SYSTEM, Actor
from approvals.enums import RequestStatus, StepKind, ThreadStatus
from approvals.enums import RunStatus as Status
from approvals.errors import AgentPaused, Pending, TooLate
from approvals.models import OPEN, Agent, AgentVersion, ApprovalRequest, Run, Step, Thread, ToolExecution
from approvals.models.tool_execution import IN_FLIGHT
from approvals.services import audit, events, requests, wording

WhilePending = Literal["queue", "withdraw"]
THREAD_STATUS = {
    Status.SUCCESS: ThreadStatus.IDLE,
    Status.CANCELLED: ThreadStatus.IDLE,
    Status.ERROR: ThreadStatus.ERROR,
    Status.PARKED: ThreadStatus.ERROR,
}
FINISHING = {"success": "succeed", "error": "fail", "cancelled": "cancel", "parked": "park"}
ACTION = {
    "success": "run.finished",
    "error": "run.failed",
    "cancelled": "run.cancelled",
    "parked": "run.parked",
}


def create(
    *,
    thread: Thread,
    version: AgentVersion,
    actor: Actor,
    message: str,
    key: str | None = None,
    key_digest: str = "",
) -> Run:
    """A new turn at the end of the thread's queue, with its first step. Inside the caller's transaction.

    Raises `AgentPaused`; whoever pauses waits for this transaction, so nothing begins behind a pause.
    """
    if Agent.objects.select_for_update(no_key=True).get(pk=thread.agent_id).is_paused:
        raise AgentPaused()
    last = thread.runs.aggregate(last=Max("number"))["last"] or 0
    run = Run.objects.create(
        thread=thread,
        number=last + 1,
        version=version,
        requested_by=actor.person,
        token=actor.token,
        message=message,
        key=key,
        key_digest=key_digest,
    )
    Step.objects.create(
        run=run, position=1, kind=StepKind.MESSAGE, message_id=str(run.pk), text=cleaning.text(message)
    )
    busy = Thread.objects.filter(pk=thread.pk).exclude(status=ThreadStatus.INTERRUPTED)
    busy.update(status=ThreadStatus.BUSY)
    Thread.objects.filter(pk=thread.pk).update(updated_at=Now())
    dispatch.start_on_commit(thread.pk)
    return run


def post(
    *,
    actor: Actor,
    thread_pk: Any,
    message: str,
    while_pending: WhilePending | None,
    key: str | None = None,
    key_digest: str = "",
) -> Run:
    """Say something to the agent. While something waits for a person, the poster chooses: the message queues behind
    it, or withdraws it first. Nothing is ever orphaned silently. Raises `Pending` if the choice is missing."""
    thread = access.thread_to_write(actor.person, thread_pk)
    with transaction.atomic():
        thread = Thread.objects.select_for_update().select_related("agent").get(pk=thread.pk)
        if while_pending is None and thread.requests.filter(status=RequestStatus.PENDING).exists():
            raise Pending(
                "A request of this case waits for a decision: choose to queue the message or to withdraw it."
            )
        if while_pending == "withdraw":
            for request in requests.withdrawable().filter(thread=thread).select_related("run", "run__thread"):
                requests.close(
                    request=request,
                    event="withdraw",
                    actor=actor,
                    message=wording.withdrawn("a new message came in"),
                    action="request.withdrawn",
                    data={"reason": "new message"},
                )
        version = thread.agent.current
        if version is None:
            raise TooLate("This agent has no published version.")
        run = create(
            thread=thread, version=version, actor=actor, message=message, key=key, key_digest=key_digest
        )
        events.record(thread.topic, run.topic, kind="posted", object_id=run.pk)
        audit.record(
            "message.posted", actor=actor, subject=thread, run=run, data={"while_pending": while_pending}
        )
    return run


def claim_next(*, thread_pk: Any) -> Run | None:
    """The run to drive: the oldest open one. Counts the attempt before the work, and replaces older owners (fence)."""
    with transaction.atomic():
        thread = Thread.objects.select_for_update().get(pk=thread_pk)
        run = thread.runs.filter(status__in=OPEN).order_by("number").first()
        if run is None:
            return None
        Thread.objects.filter(pk=thread.pk).update(fence=F("fence") + 1, status=ThreadStatus.BUSY)
        was = run.status
        run.status = transitions.target("run", was, "claim")
        Run.objects.filter(pk=run.pk).update(
            status=run.status, attempts=F("attempts") + 1, hints=0, touched_at=Now()
        )
        if was != run.status:
            events.record(run.topic, thread.topic, kind=run.status, object_id=run.pk)
    return Run.objects.select_related("thread", "thread__agent", "version", "requested_by").get(pk=run.pk)


def pause(*, run: Run, fence: int) -> None:
    """Every open question is asked; nothing more to do until a person answers."""
    _leave(run, fence, Status.INTERRUPTED, ThreadStatus.INTERRUPTED)


def release(*, run: Run, fence: int) -> None:
    """Back to the queue between two steps, because this worker ends: the next one goes on, without losing an attempt."""
    _leave(run, fence, transitions.target("run", Status.RUNNING, "release"), ThreadStatus.BUSY)
    dispatch.start_on_commit(run.thread_id)


def finish(
    *, run: Run, fence: int, status: str, note: str = "", answer: str = "", usage: Mapping[str, int]
) -> None:
    """End a run for good."""
    target = transitions.target("run", Status.RUNNING, FINISHING[status])
    more = Run.objects.filter(thread_id=run.thread_id, status__in=OPEN).exclude(pk=run.pk).exists()
    thread_status = ThreadStatus.BUSY if more else THREAD_STATUS[Status(target)]
    columns = {
        "error": cleaning.text(note),
        "answer": cleaning.text(answer),
        "usage": dict(usage),
        "finished_at": Now(),
    }
    actor = SYSTEM if status == "parked" else Actor.agent(run.thread.agent.title)
    _leave(run, fence, target, thread_status, action=ACTION[status], actor=actor, note=note, **columns)


def _leave(
    run: Run,
    fence: int,
    status: str,
    thread_status: str,
    *,
    action: str = "",
    actor: Actor = SYSTEM,
    note: str = "",
    **columns: Any,
) -> None:
    with transaction.atomic():
        mine = Thread.objects.select_for_update().filter(pk=run.thread_id, fence=fence)
        if not mine.exists():
            return  # another owner has taken over: the end of this run is its business
        changed = Run.objects.filter(pk=run.pk, status=Status.RUNNING).update(
            status=status, attempts=0, last_error="", touched_at=Now(), **columns
        )
        if not changed:
            return
        Thread.objects.filter(pk=run.thread_id).update(status=thread_status, updated_at=Now())
        events.record(run.topic, run.thread.topic, events.INBOX, kind=status, object_id=run.pk)
        if action:
            audit.record(action, actor=actor, subject=run, run=run, data={"note": note} if note else {})


def note_failure(*, run: Run, error: str) -> None:
    """The last attempt ended with an exception; the sweep tries again."""
    Run.objects.filter(pk=run.pk).update(last_error=cleaning.text(error)[:2000], touched_at=Now())


def cancel(*, actor: Actor, run_pk: Any, reason: str) -> Run:
    """Ask the agent to stop at the next safe point. Its pending requests are withdrawn at once. Raises `TooLate`."""
    run = access.run_to_cancel(actor.person, run_pk)
    with transaction.atomic():
        waiting = Run.objects.filter(pk=run.pk, cancel_reason=None)
        parked = waiting.filter(status=Status.PARKED)
        again = {
            "status": transitions.target("run", Status.PARKED, "unpark"),
            "attempts": 0,
            "finished_at": None,
        }
        if not (
            waiting.filter(status__in=OPEN).update(cancel_reason=reason)
            or parked.update(cancel_reason=reason, **again)
        ):
            raise TooLate("The run has ended already.")
        for request in requests.withdrawable().filter(run=run):
            requests.close(
                request=request,
                event="withdraw",
                actor=actor,
                message=wording.cancelled(reason),
                action="request.withdrawn",
                data={"reason": reason},
            )
        events.record(run.topic, run.thread.topic, kind="cancelling", object_id=run.pk)
        audit.record("run.cancel_requested", actor=actor, subject=run, run=run, data={"reason": reason})
        dispatch.resume_on_commit(run.thread_id)
    run.refresh_from_db()
    return run


def retry(*, actor: Actor, run_pk: Any) -> Run:
    """Put a parked run back to work, after an administrator has looked. Raises `TooLate` if it is not parked."""
    run = access.run_to_retry(actor.person, run_pk)
    with transaction.atomic():
        parked = Run.objects.filter(pk=run.pk, status=Status.PARKED)
        fresh = {"attempts": 0, "last_error": "", "error": "", "finished_at": None, "touched_at": Now()}
        if not parked.update(status=transitions.target("run", Status.PARKED, "unpark"), **fresh):
            raise TooLate("Only a parked run can be put back to work.")
        events.record(run.topic, run.thread.topic, kind="unparked", object_id=run.pk)
        audit.record("run.unparked", actor=actor, subject=run, run=run)
        dispatch.start_on_commit(run.thread_id)
    run.refresh_from_db()
    return run


def context_of(run: Run) -> dict[str, Any]:
    """What tools, checks and prompts may know about the case."""
    thread = run.thread
    return {
        "case": thread.number,
        "customer_name": thread.customer_name,
        "customer_id": thread.customer_id,
        "customer": {"id": thread.customer_id, "name": thread.customer_name},  # as business checks read it
        "order_id": thread.order_id,
        "language": thread.language,
        "requester": run.requested_by.username,
        "roles": sorted(access.roles(run.requested_by)),
    }


def stopped_unfinished() -> QuerySet[Run]:
    """Paused runs that a person has stopped and nothing holds open: an effect in doubt would."""
    doubtful = ToolExecution.objects.filter(run=OuterRef("pk"), status__in=IN_FLIGHT)
    return Run.objects.filter(status=Status.INTERRUPTED, cancel_reason__isnull=False).exclude(
        Exists(doubtful)
    )


def hint_stuck(*, limit: int = 100) -> int:
    """Send a hint for every thread that should have moved. Hints for one run get rarer (x1, x2, x4, x8), else a long
    queue is filled faster than it is worked off. Safe to run twice, at any rate, from any number of places."""
    stale = Q()
    for hints, factor in enumerate((1, 2, 4, 8)):
        age = timedelta(seconds=settings.STALE_SECONDS * factor)
        level = Q(hints=hints) if hints < 3 else Q(hints__gte=3)
        stale |= level & Q(touched_at__lt=Now() - age)
    asked = ApprovalRequest.objects.filter(run=OuterRef("pk"))
    due = Q(decisions__undone_at=None, decisions__send_at__lte=Now()) | ~Q(decisions__undone_at=None)
    ready = asked.exclude(status=RequestStatus.PENDING).filter(Q(decisions=None) | due, applied_at=None)
    open_questions = asked.filter(applied_at=None)  # pending ones among them
    waits_behind = Run.objects.filter(thread=OuterRef("thread"), status=Status.INTERRUPTED)
    wakes = (
        Q(status=Status.RUNNING)
        | Q(status=Status.PENDING) & ~Exists(waits_behind)
        | Q(status=Status.INTERRUPTED) & (Exists(ready) | ~Exists(open_questions))
        | Q(pk__in=stopped_unfinished())
    )
    if stopping.is_drained():
        return 0
    with transaction.atomic():
        stuck = Run.objects.filter(stale, wakes, status__in=OPEN).order_by("touched_at")
        rows = list(stuck.select_for_update(skip_locked=True, of=("self",))[:limit])
        Run.objects.filter(pk__in=[row.pk for row in rows]).update(touched_at=Now(), hints=F("hints") + 1)
        for thread_id in {row.thread_id for row in rows}:
            dispatch.resume_on_commit(thread_id)
    return len(rows)

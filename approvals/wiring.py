"""Composition root of the workers: which adapter serves which port. Loads the engine; never imported by the web."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import Error, connection
from django.db.models import Q
from django.db.models.functions import Now

from agents.catalogue import AgentSpec, all_tools
from agents.checkpointing import SessionStore
from agents.contracts import RunOrder
from agents.registry import build_engine
from agents.runtime import Engine, Outcome, drive
from agents.trials import run_trial
from approvals.adapters.desk import DjangoDesk
from approvals.adapters.ledger import DjangoApprovals, DjangoLedger
from approvals.adapters.session import DriveSession, locked
from approvals.enums import RequestStatus
from approvals.models import ApprovalRequest, StackPicture
from approvals.services import pictures, retention, runs, trials
from middleware.catalogue import BadEntry
from middleware.picture import look
from middleware.ports import SessionLost
from middleware.stack import delegated

LOOK_AGAIN = 3  # a hint that met our lock was dropped, so look once more after the unlock


def drive_thread(thread_id: str) -> str:
    """Work on a thread until it waits or is done; "busy" if another worker owns it. Exceptions of the graph are noted
    on the run and raised; a broken session just raises."""
    said: str = "busy"
    for _ in range(LOOK_AGAIN):
        with locked(thread_id) as session:
            if session is None:
                return "busy"
            said = _drive(session, thread_id)
        if said != Outcome.INTERRUPTED or not _decided_meanwhile(thread_id):
            break
    return said


def _drive(session: DriveSession, thread_id: str) -> Outcome:
    desk = DjangoDesk(session, thread_id)

    def build(order: RunOrder) -> Engine:
        return build_engine(
            order,
            desk=desk,
            saver=session.saver,
            approvals=DjangoApprovals(session, desk.claimed, desk.actor),
            ledger=DjangoLedger(session, desk.claimed, desk.fence, desk.actor),
            shop_url=settings.SHOP_URL,
            store=SessionStore(session.saver),
            folder=str(settings.STATE_DIR / "cases" / thread_id),
        )

    try:
        return drive(desk, build)
    except SessionLost:
        raise
    except Exception as error:
        if desk.run is not None and session.is_alive:
            with session.use():
                runs.note_failure(run=desk.run, error=f"{type(error).__name__}: {error}")
        raise


def draw(key: str) -> str:
    row = StackPicture.objects.filter(key=key, entries__isnull=True).first()
    if row is None:
        return "nothing to do"
    known = all_tools()
    listed = [entry for entry in row.middleware if isinstance(entry, dict)]
    tools = {name: known[name] for name in [*row.tools, *_delegated(listed)] if name in known}
    pictures.store(key=key, entries=look(listed, tools))
    return "drawn"


def _delegated(listed: list[dict[str, Any]]) -> list[str]:
    try:
        return delegated(listed)
    except BadEntry:
        return []


def try_spec(trial_id: str) -> str:
    row = trials.claim(trial_id)
    if row is None:
        return "nothing to do"
    try:
        spec = AgentSpec.model_validate(row.spec)
        trials.finish(trial=row, trace=run_trial(spec, row.message, says_yes=row.says_yes))
    except Error:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model, a tool or a middleware raises is what one wants to see
        trials.finish(trial=row, trace=(), error=f"{type(error).__name__}: {error}")
        return "failed"
    return "tried"


def prune_thread(thread_id: str, older_than: timedelta, *, forget: bool) -> bool:
    """Keep only the last checkpoint of a case at rest, or none. False: somebody works on it, or has just begun,
    or every checkpoint is needed."""
    with locked(thread_id) as session:
        if session is None:
            return False
        with session.use():
            thread = retention.prunable(older_than).filter(pk=thread_id).first()
        if thread is None:
            return False
        try:
            session.saver.prune([thread_id], strategy="delete" if forget else "keep_latest")
            pruned = True
        except (
            NotImplementedError
        ):  # files in the state are stored as differences, which need every checkpoint
            pruned = False
        with session.use():
            retention.mark_pruned(thread)
        return pruned


def _decided_meanwhile(thread_id: str) -> bool:
    unapplied = ApprovalRequest.objects.filter(thread_id=thread_id, applied_at=None).exclude(
        status=RequestStatus.PENDING
    )
    ready = Q(decisions=None) | Q(decisions__undone_at=None, decisions__send_at__lte=Now())
    try:
        return (
            unapplied.filter(ready).exists()
            or runs.stopped_unfinished().filter(thread__pk=thread_id).exists()
        )
    finally:
        connection.close()

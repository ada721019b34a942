"""What may be forgotten, and when. The audit trail, decisions and the ledger never are."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from approvals.actors import Actor
from approvals.enums import RunStatus
from approvals.models import OPEN, Event, Run, StackPicture, Thread, Trial
from approvals.services import audit


def prunable(older_than: timedelta) -> QuerySet[Thread]:
    """Cases at rest for so long, whose checkpoints were not pruned since. A parked run may still go on."""
    alive = Run.objects.filter(thread=OuterRef("pk"), status__in=[*OPEN, RunStatus.PARKED])
    again = Q(pruned_at=None) | Q(pruned_at__lt=F("updated_at"))
    return Thread.objects.filter(~Exists(alive), again, updated_at__lt=Now() - older_than)


def mark_pruned(thread: Thread) -> None:
    Thread.objects.filter(pk=thread.pk).update(pruned_at=Now())


def drop_events(older_than: timedelta) -> int:
    """Live updates are hints: a browser that was away for longer fetches its page anew."""
    deleted, _ = Event.objects.filter(created_at__lt=Now() - older_than).delete()
    return deleted


def drop_trials(older_than: timedelta) -> int:
    """Trials, and pictures of stacks: a worker draws a picture again when a page wants it."""
    trials, _ = Trial.objects.filter(created_at__lt=Now() - older_than).delete()
    pictures, _ = StackPicture.objects.filter(asked_at__lt=Now() - older_than).delete()
    return trials + pictures


def record(*, actor: Actor, threads: int, events: int, days: int, forgot: bool) -> None:
    data = {"threads": threads, "events": events, "days": days, "forgot": forgot}
    with transaction.atomic():
        audit.record("work.pruned", actor=actor, subject=None, data=data)

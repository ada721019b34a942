"""Stopping all work, and starting it again. Pages go on: people can decide while nothing runs."""

from __future__ import annotations

from django.db import connection, transaction
from django.db.models.functions import Now

from approvals import dispatch
from approvals.actors import Actor
from approvals.models import OPEN, Drain, Run
from approvals.services import audit


def drain(*, actor: Actor) -> bool:
    """No worker takes new work from now on; drives end at their next safe point. False: that was so already."""
    with transaction.atomic():
        _row, is_new = Drain.objects.get_or_create(pk=1, defaults={"by": actor.name})
        if is_new:
            audit.record("work.drained", actor=actor, subject=None)
    return is_new


def resume(*, actor: Actor) -> bool:
    """Work goes on, everything at once. False: it was not stopped."""
    with transaction.atomic():
        deleted, _ = Drain.objects.filter(pk=1).delete()
        if not deleted:
            return False
        waiting = Run.objects.filter(status__in=OPEN)
        waiting.update(hints=0, touched_at=Now())
        for thread_id in waiting.values_list("thread_id", flat=True).distinct()[: dispatch.BACKLOG // 2]:
            dispatch.start_on_commit(thread_id)  # the rest is found by the sweep
        audit.record("work.resumed", actor=actor, subject=None)
    return True


def in_flight() -> list[str]:
    """Ids of the threads that a worker drives right now: each drive has a session named after its thread."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT substr(application_name, 5) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'run:%%' AND pid <> pg_backend_pid()"
        )
        return [name for (name,) in cursor.fetchall()]

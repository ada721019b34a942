"""Owners of runs that are frozen: their process holds the lock of the thread and does nothing with it."""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction

from approvals.actors import SYSTEM
from approvals.models import Run
from approvals.services import audit

FROZEN = """
    SELECT pid, application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'run:%%' AND state = 'idle'
      AND state_change < clock_timestamp() - make_interval(secs => %s)
"""


def free_frozen() -> int:
    """End the sessions of owners that did not breathe for FROZEN_SECONDS; returns how many it ended.

    The lock is free then and another worker goes on; when the frozen one wakes it can write nothing more, and what it
    had sent is known by its key. Safe to run twice.
    """
    with connection.cursor() as cursor:
        cursor.execute(FROZEN, [settings.FROZEN_SECONDS])
        found = cursor.fetchall()
        for pid, _ in found:
            cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
    for _, name in found:
        _say(name.removeprefix("run:"))
    return len(found)


def _say(thread_id: str) -> None:
    run = Run.objects.filter(thread_id=thread_id, status="running").select_related("thread").first()
    if run is not None:
        with transaction.atomic():
            audit.record("run.freed", actor=SYSTEM, subject=run, run=run)

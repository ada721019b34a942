"""Outward seam: hints to the workers, by task name, after commit.

A hint carries a thread id and nothing else. It may be lost, doubled or late: the sweep sends it again from the rows.
Publishing happens on a thread of its own, so a frozen broker never makes a person wait.
"""

from __future__ import annotations

import logging
import queue
import threading
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from agents import faults

log = logging.getLogger("counterseal.dispatch")

DRIVE = "approvals.drive"
PICTURE, TRIAL = "approvals.picture", "approvals.trial"
BACKLOG = 1_000  # hints that may wait for a frozen broker; the sweep makes up for what is dropped


class Hint(NamedTuple):
    thread_id: str  # or the key of what another task is about
    queue: str  # "resume" goes ahead of "start"
    delay: float  # seconds; far below the broker's visibility timeout
    task: str = DRIVE


def start_on_commit(thread_id: object) -> None:
    _on_commit(Hint(str(thread_id), "start", 0))


def resume_on_commit(thread_id: object, delay: float = 0) -> None:
    _on_commit(Hint(str(thread_id), "resume", delay))


def picture_on_commit(key: str) -> None:
    _on_commit(Hint(key, "default", 0, PICTURE))


def trial_on_commit(trial_id: object) -> None:
    _on_commit(Hint(str(trial_id), "default", 0, TRIAL))


def _on_commit(hint: Hint) -> None:
    transaction.on_commit(lambda: _put(hint))


def _put(hint: Hint) -> None:
    faults.point("hint", hint.thread_id)  # committed, and nobody is told
    try:
        _outgoing().put_nowait(hint)
    except queue.Full:
        log.warning("broker does not answer: hint for %s left to the sweep", hint.thread_id)


@cache
def _outgoing() -> queue.Queue[Hint]:
    waiting: queue.Queue[Hint] = queue.Queue(BACKLOG)
    threading.Thread(target=_relay, args=(waiting,), name="hints", daemon=True).start()
    return waiting


def _relay(waiting: queue.Queue[Hint]) -> None:
    app: Any = import_string(settings.CELERY_APP)
    while True:
        hint = waiting.get()
        try:
            app.send_task(
                hint.task, args=[hint.thread_id], queue=hint.queue, countdown=hint.delay or None, retry=False
            )
        except Exception as error:  # noqa: BLE001 -- a hint: the sweep sends it again
            log.warning("hint for %s not sent: %s", hint.thread_id, type(error).__name__)

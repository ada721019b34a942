"""Celery tasks: load, call, record. A message is a hint; every task is safe to run twice, late or never."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down
from django.db import Error, connection

from approvals import stopping, wiring  # loads the engine once, when the worker starts
from approvals.services import chain, lookups, owners, pulses, requests, runs, trials

worker_shutting_down.connect(stopping.tell)  # SIGTERM: a deploy, or Ctrl-C

log = logging.getLogger("counterseal.worker")

IDLE = ("busy", "nothing to do")  # what doubled and late hints find


@shared_task(name="approvals.drive", ignore_result=True)
def drive(thread_id: str) -> str:
    """Work on one thread. Failures end up on the run; the sweep tries again, less and less often."""
    about = {"thread_id": thread_id}
    began = time.monotonic()
    try:
        said = wiring.drive_thread(thread_id)
    except Error as error:
        log.warning("drive %s lost the database: %s", thread_id, type(error).__name__, extra=about)
        time.sleep(2)  # or a restarting database burns the whole queue into failures within seconds
    except Exception:
        log.exception("drive %s ended with an exception; the sweep will try again", thread_id, extra=about)
    else:
        took = round(time.monotonic() - began, 3)
        level = logging.DEBUG if said in IDLE else logging.INFO
        log.log(level, "drive %s: %s", thread_id, said, extra={**about, "outcome": said, "seconds": took})
        return said
    return "failed"


@shared_task(name="approvals.sweep", ignore_result=True)
def sweep() -> str:
    """What time does: remind, pass on, expire, wake what should have moved. Each part by itself."""
    try:
        done = {what: _part(what, act) for what, act in SWEEP.items()}
        if FAILED not in done.values():
            _part("pulse", lambda: pulses.beat(pulses.SWEEP, **done))
        return ", ".join(f"{what} {number}" for what, number in done.items())
    finally:
        connection.close()


SWEEP: dict[str, Callable[[], int]] = {
    "reminded": requests.remind_due,
    "expired": requests.expire_due,
    "freed": owners.free_frozen,
    "hinted": runs.hint_stuck,
    "given up": trials.give_up_late,
}


FAILED = "failed"


def _part[Result](what: str, act: Callable[[], Result]) -> Result | str:
    try:
        return act()
    except Error as error:
        log.warning("sweep (%s) lost the database: %s", what, type(error).__name__)
        return FAILED


@shared_task(name="approvals.picture", ignore_result=True)
def picture(key: str) -> str:
    """Build a stack with stand-ins and write down which hooks it has."""
    try:
        return wiring.draw(key)
    except Error as error:
        log.warning("picture: %s", type(error).__name__)
        return FAILED
    finally:
        connection.close()


@shared_task(name="approvals.trial", ignore_result=True)
def trial(trial_id: str) -> str:
    """Try a spec on a message. A message that comes twice finds the trial taken."""
    try:
        return wiring.try_spec(trial_id)
    except Error as error:
        log.warning("trial: %s", type(error).__name__)
        return FAILED
    finally:
        connection.close()


@shared_task(name="approvals.check_trail", ignore_result=True)
def check_trail() -> str:
    """Is the audit trail whole? A break is shown on its page and shouted in the log."""
    try:
        wrong = chain.check()
        if wrong is not None:
            log.error(
                "the audit trail is broken at place %s, entry %s: %s", wrong.seq, wrong.entry, wrong.what
            )
        return wrong.what if wrong else "whole"
    except Error as error:
        log.warning("check of the trail: %s", type(error).__name__)
        return FAILED
    finally:
        connection.close()


@shared_task(name="approvals.canary", bind=True, ignore_result=True)
def canary(self: Any, queue: str) -> str:
    """Proof that a worker really takes messages of this queue: a living process alone proves nothing."""
    try:
        pulses.beat(pulses.CANARY + queue, worker=self.request.hostname)
        return queue
    except Error as error:
        log.warning("canary lost the database: %s", type(error).__name__)
        return FAILED
    finally:
        connection.close()


@shared_task(name="approvals.look_up", ignore_result=True)
def look_up() -> str:
    """Ask providers about calls whose outcome nobody knows. A task of its own: a provider may be slow."""
    try:
        return f"found {lookups.settle_due()}"
    except Error as error:
        log.warning("look-up lost the database: %s", type(error).__name__)
        return "failed"
    finally:
        connection.close()

"""Whether this worker should stop taking work: a signal told this process, or somebody drained the installation."""

from __future__ import annotations

from ctypes import c_bool
from multiprocessing.sharedctypes import RawValue

from approvals.models import Drain

# Shared with the forked children of a prefork worker. Without a lock: a signal handler sets it.
_told = RawValue(c_bool, False)


def tell(*_: object, **__: object) -> None:
    """This process ends: no new work, and drives end at their next safe point."""
    _told.value = True


def is_drained() -> bool:
    """Work has been stopped everywhere, by `manage.py drain`."""
    return Drain.objects.exists()


def is_wanted() -> bool:
    return bool(_told.value) or is_drained()

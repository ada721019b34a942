"""Work on many rows by a clock: each in a transaction of its own, so that a bad one holds up nobody else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Model, QuerySet

log = logging.getLogger("counterseal.sweep")

LOOK_AT = 1_000  # rows of one pass, bad ones included


def each[Row: Model](due: QuerySet[Row], act: Callable[[Row], bool], *, limit: int) -> int:
    """Let `act` change up to `limit` rows; returns how many it did. `due` says the order.

    Only ids are read ahead: rows are read one by one, fresh. A row whose change fails is logged and tried again by the
    next pass; without a database there is no next row either, so that is raised.
    """
    done = 0
    for pk in list(due.values_list("pk", flat=True)[:LOOK_AT]):
        if done >= limit:
            break
        done += _one(due, pk, act)
    return done


def _one[Row: Model](due: QuerySet[Row], pk: Any, act: Callable[[Row], bool]) -> bool:
    try:
        with transaction.atomic():
            row = due.filter(pk=pk).first()
            return row is not None and act(row)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("%s %s could not be changed; the others go on", due.model._meta.verbose_name, pk)
        return False

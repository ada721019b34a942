"""The tables of the state machines: {(from, event): to}. Data, checked when the module is imported; no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import TextChoices

from approvals.enums import ExecutionStatus as E
from approvals.enums import RequestStatus as Q
from approvals.enums import RunStatus as R
from approvals.errors import IllegalTransition

type Table = Mapping[tuple[str, str], str]

RUN: Table = {
    (R.PENDING, "claim"): R.RUNNING,
    (R.RUNNING, "claim"): R.RUNNING,  # its owner died
    (R.INTERRUPTED, "claim"): R.RUNNING,
    (R.RUNNING, "pause"): R.INTERRUPTED,
    (R.RUNNING, "succeed"): R.SUCCESS,
    (R.RUNNING, "fail"): R.ERROR,
    (R.RUNNING, "cancel"): R.CANCELLED,
    (R.RUNNING, "park"): R.PARKED,
    (R.RUNNING, "release"): R.PENDING,  # its worker was told to stop; everything so far is saved
    (R.PARKED, "unpark"): R.PENDING,
    (R.PENDING, "cancel"): R.CANCELLED,
}
REQUEST: Table = {
    (Q.PENDING, "approve"): Q.APPROVED,
    (Q.PENDING, "edit"): Q.EDITED,
    (Q.PENDING, "reject"): Q.REJECTED,
    (Q.PENDING, "respond"): Q.RESPONDED,
    (Q.PENDING, "grant"): Q.APPROVED,
    (Q.PENDING, "stop"): Q.REJECTED,
    (Q.PENDING, "happened"): Q.RESPONDED,
    (Q.PENDING, "did_not_happen"): Q.RESPONDED,
    (Q.PENDING, "still_unknown"): Q.PENDING,
    (Q.PENDING, "expire"): Q.EXPIRED,
    (Q.PENDING, "withdraw"): Q.WITHDRAWN,
    (Q.PENDING, "supersede"): Q.SUPERSEDED,
    (Q.PENDING, "handle_elsewhere"): Q.HANDLED_ELSEWHERE,
    (Q.APPROVED, "undo"): Q.PENDING,
    (Q.EDITED, "undo"): Q.PENDING,
    (Q.REJECTED, "undo"): Q.PENDING,
    (Q.RESPONDED, "undo"): Q.PENDING,
}
EXECUTION: Table = {
    (E.PLANNED, "start"): E.STARTED,
    (E.STARTED, "start"): E.STARTED,  # resend with the same living key
    (E.STARTED, "not_sent"): E.PLANNED,
    (E.STARTED, "succeed"): E.SUCCEEDED,
    (E.STARTED, "refuse"): E.FAILED,
    (E.STARTED, "lose"): E.UNKNOWN,
    (E.UNKNOWN, "succeed"): E.SUCCEEDED,
    (E.PLANNED, "succeed"): E.SUCCEEDED,  # a person said it did not happen; later the provider knew the key
    (E.UNKNOWN, "replan"): E.PLANNED,
}

_MACHINES: dict[str, tuple[Table, type[TextChoices]]] = {
    "run": (RUN, R),
    "request": (REQUEST, Q),
    "execution": (EXECUTION, E),
}
for _name, (_table, _words) in _MACHINES.items():
    _used = {word for (source, _event), target in _table.items() for word in (source, target)}
    if _used != set(_words.values):
        raise RuntimeError(f"{_name}: states {set(_words.values) ^ _used} are unreachable or unknown")


def target(machine: str, source: str, event: str) -> str:
    """The state after `event`. Raises `IllegalTransition`."""
    table, _words = _MACHINES[machine]
    try:
        return table[(source, event)]
    except KeyError:
        raise IllegalTransition(machine, source, event) from None


def sources(machine: str, event: str) -> tuple[str, ...]:
    """Every state in which `event` is legal: what a conditional UPDATE puts into its WHERE."""
    table, _words = _MACHINES[machine]
    return tuple(source for (source, name) in table if name == event)

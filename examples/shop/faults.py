"""How the shop misbehaves on request."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, replace
from typing import Any

MODES = {
    "none": "behave",
    "slow": "wait, then act and answer",
    "slow_after": "act, then wait before answering",
    "drop_after": "act, then close the connection without an answer",
    "error_before": "answer 500 without acting",
    "error_after": "act, then answer 500",
    "conflict": "answer 409 in_progress without acting",
    "down": "close every connection without an answer",
}
REFUNDS = "POST /refunds"
MAX_SECONDS = 600.0


@dataclass(frozen=True)
class Fault:
    mode: str = "none"
    seconds: float = 3.0
    times: int | None = None  # None: until told otherwise
    path: str = REFUNDS  # or a path prefix, for requests of any method


class BadFault(ValueError):
    """Not a fault; the text says why."""


def parse(body: dict[str, Any]) -> Fault:
    """From the JSON of POST /faults. Raises `BadFault`."""
    mode, seconds, times, path = (body.get(name) for name in ("mode", "seconds", "times", "path"))
    if mode not in MODES:
        raise BadFault(f"mode must be one of {', '.join(MODES)}")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise BadFault("seconds must be a number")
    if seconds is not None and not 0 <= seconds <= MAX_SECONDS:
        raise BadFault(f"seconds must be from 0 to {MAX_SECONDS:g}")
    if times is not None and (isinstance(times, bool) or not isinstance(times, int) or times < 1):
        raise BadFault("times must be a whole number above 0")
    if path is not None and not (isinstance(path, str) and path.startswith(("/", REFUNDS))):
        raise BadFault("path must start with /")
    default = Fault()
    return Fault(mode, default.seconds if seconds is None else float(seconds), times, path or default.path)


class Faults:
    """The fault in force. In memory: a restart heals."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fault = Fault()

    def set(self, fault: Fault) -> None:
        with self._lock:
            self._fault = fault

    def show(self) -> dict[str, Any]:
        with self._lock:
            return asdict(self._fault)

    def take(self, method: str, path: str, header: str | None = None) -> Fault:
        """The fault for one request, counted down. A known mode in the request's own header comes first."""
        if header in MODES:
            return Fault(header)
        with self._lock:
            fault = self._fault
            if fault.mode == "none" or not _hits(fault, method, path):
                return Fault()
            if fault.times is not None:
                self._fault = replace(fault, times=fault.times - 1) if fault.times > 1 else Fault()
            return fault


def _hits(fault: Fault, method: str, path: str) -> bool:
    if fault.mode == "down" and fault.path == REFUNDS:
        return True
    if fault.path == REFUNDS:
        return method == "POST" and path == "/refunds"
    return path.startswith(fault.path)

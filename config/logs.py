"""How log lines look, and what never stands in one: what an exception says.

Its text may hold arguments of a call (pydantic quotes the input), so only its type and the places it passed are
written; the text is on the run, where those may read it who may see the run. `COUNTERSEAL_DEBUG=1` writes it too.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from types import TracebackType

from django.conf import settings

EXTRA = ("thread_id", "run_id", "outcome", "seconds", "status_code")
type ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Discreet(logging.Formatter):
    """Plain lines."""

    def formatException(self, ei: ExcInfo) -> str:
        return super().formatException(ei) if settings.DEBUG else places(ei[1])


class Json(Discreet):
    """One JSON object for each line, for collectors of logs."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": settings.PROCESS,
            "pid": record.process,
        }
        said |= {name: getattr(record, name) for name in EXTRA if hasattr(record, name)}
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


def places(error: BaseException | None) -> str:
    """Type and places of an exception and of what caused it."""
    lines: list[str] = []
    while error is not None:
        kind = type(error)
        lines.append(f"{kind.__module__}.{kind.__qualname__}")
        lines += [
            f"  {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)

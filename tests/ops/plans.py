"""Which queries an act sends, and which of them would read a whole table that grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

GROWING = (
    "thread", "run", "step", "verdict", "approvalrequest", "decision", "auditevent", "event", "toolexecution",
)  # fmt: skip


class Plans:
    """Queries as they were sent. EXPLAIN without sequential scans: one is left only where no index fits."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    def note(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not many and re.match(r"\s*(SELECT|UPDATE|DELETE)\b", sql, re.IGNORECASE):
            self.sent.append((sql, params))
        return execute(sql, params, many, context)

    def without_index(self) -> list[str]:
        found = []
        with connection.cursor() as cursor:
            cursor.execute("SET enable_seqscan = off")
            for sql, params in self.sent:
                cursor.execute(f"EXPLAIN {sql}", params)
                plan = "\n".join(line for (line,) in cursor.fetchall())
                tables = re.findall(r"Seq Scan on approvals_(\w+)", plan)
                if set(tables) & set(GROWING):
                    found.append(f"{sql}\n{plan}")
            cursor.execute("RESET enable_seqscan")
        return found


@contextmanager
def watched() -> Iterator[Plans]:
    """Everything this thread sends meanwhile."""
    plans = Plans()
    with connection.execute_wrapper(plans.note):
        yield plans

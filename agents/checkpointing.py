"""The only opener of LangGraph's Postgres checkpointer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import DictRow, dict_row


class SessionSaver(PostgresSaver):
    """A checkpointer on a session that somebody else opened and that also carries the application's own statements.

    Its cursors do not use the connection's cursor factory or loaders, which belong to the application. `lock` is
    re-entrant and public: whoever uses the session outside the checkpointer must hold it, because the checkpointer
    uses pipeline mode and writes from other threads.
    """

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        super().__init__(session)
        self.lock = threading.RLock()  # type: ignore[assignment]

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[DictRow]]:
        session: psycopg.Connection[Any] = self.conn  # type: ignore[assignment]
        with (
            self.lock,
            session.pipeline() if pipeline else nullcontext(),
            psycopg.Cursor(session, row_factory=dict_row) as cursor,
        ):
            cursor.format = psycopg.pq.Format.BINARY
            yield cursor


def set_up(dsn: str) -> None:
    """Create the checkpoint tables. Not safe to run twice at the same time: one command runs it under a lock."""
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as session:
        PostgresSaver(session).setup()

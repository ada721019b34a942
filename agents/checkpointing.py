"""The only opener of LangGraph's Postgres checkpointer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from psycopg.rows import DictRow, dict_row

from agents import faults


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


class SessionStore(PostgresStore):
    """Long-term memory on the session of a drive, behind the same lock as its checkpointer."""

    def __init__(self, saver: SessionSaver) -> None:
        super().__init__(saver.conn)
        self.saver = saver

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[psycopg.Cursor[DictRow]]:
        with self.saver._cursor(pipeline=pipeline) as cursor:
            yield cursor


def set_up(dsn: str) -> None:
    """Create the tables of checkpoints and of long-term memory. Not safe to run twice at the same time: one command runs it under a lock."""
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as session:
        PostgresSaver(session).setup()
        PostgresStore(session).setup()


class FaultSaver(SessionSaver):
    """The kill points around what LangGraph stores, for fault tests: made only when `agents.faults` is switched on.

    I0 question saved, no row yet · R1 answer saved · W0/W1 call or result saved as a write, its step's checkpoint not ·
    C1/C2 before and after the checkpoint of a tool's step. `put` can be slowed (COUNTERSEAL_SLOW_PUT, seconds): on a
    fast database a lost checkpoint hides.
    """

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        time.sleep(float(os.environ.get("COUNTERSEAL_SLOW_PUT", "0")))
        thread_id = config["configurable"]["thread_id"]
        after_tool = _ends_with(checkpoint["channel_values"].get("messages"), ToolMessage)
        if after_tool:
            faults.point("C1", thread_id)
        saved = super().put(config, checkpoint, metadata, new_versions)
        if after_tool:
            faults.point("C2", thread_id)
        return saved

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        thread_id = config["configurable"]["thread_id"]
        for channel, value in writes:
            if channel == "__interrupt__":
                faults.point("I0", thread_id)
            elif channel == "__resume__":
                faults.point("R1", thread_id)
            elif channel == "messages" and _ends_with(value, AIMessage):
                faults.point("W0", thread_id)
            elif channel == "messages" and _ends_with(value, ToolMessage):
                faults.point("W1", thread_id)


def _ends_with(messages: Any, kind: type[BaseMessage]) -> bool:
    last = messages[-1:] if isinstance(messages, list) else [messages]
    return any(isinstance(message, kind) for message in last)


def saver_on(session: psycopg.Connection[Any]) -> SessionSaver:
    """The checkpointer of a drive."""
    return FaultSaver(session) if faults.is_on() else SessionSaver(session)

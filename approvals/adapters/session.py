"""The session of one drive: one Postgres connection that owns the thread's lock, the checkpoints and every row.

Connection gone = lock gone = nothing more can be written by this owner. While it is there its owner breathes: however
long a model or a tool takes, the session does something, and one that does not belongs to a process that is frozen
(`services.owners` ends it).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.checkpointing import saver_on
from middleware.ports import SessionLost


def lock_key(thread_id: str) -> int:
    """First 64 bits of a hash: the key of the advisory lock."""
    return int.from_bytes(sha256(b"run:" + thread_id.encode()).digest()[:8], "big", signed=True)


class DriveSession:
    """Django's own connection of this thread, lent to the checkpointer and to the tool threads of the drive."""

    def __init__(self, wrapper: BaseDatabaseWrapper) -> None:
        self.wrapper = wrapper
        self.raw: Any = wrapper.connection
        self.saver = saver_on(self.raw)

    @contextmanager
    def use(self) -> Iterator[None]:
        """Run ORM code on this session, from any thread. One user at a time, and never beside the checkpointer."""
        with self.saver.lock:
            before = getattr(connections._connections, DEFAULT_DB_ALIAS, None)  # type: ignore[attr-defined]
            connections[DEFAULT_DB_ALIAS] = self.wrapper
            try:
                yield
            finally:
                if before is None:
                    del connections[DEFAULT_DB_ALIAS]
                else:
                    connections[DEFAULT_DB_ALIAS] = before

    @property
    def is_alive(self) -> bool:
        return self.wrapper.connection is self.raw and not self.raw.closed and not self.raw.broken

    @contextmanager
    def breathing(self) -> Iterator[None]:
        """A sign of life eight times within the span after which an owner is taken for dead."""
        over = threading.Event()

        def breathe() -> None:
            while not over.wait(settings.FROZEN_SECONDS / 8):
                with self.saver.lock:
                    if over.is_set() or not self.is_alive:
                        return
                    try:
                        self.raw.execute("SELECT 1")
                    except psycopg.Error:
                        return  # whoever works on it will see it as well

        breath = threading.Thread(target=breathe, name="breath", daemon=True)
        breath.start()
        try:
            yield
        finally:
            over.set()
            breath.join()

    def guard(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        """Django reconnects by itself after a broken transaction; a new session would not own the lock."""
        if self.wrapper.connection is not self.raw:
            raise SessionLost("the session that owned the lock is gone")
        return execute(sql, params, many, context)


@contextmanager
def locked(thread_id: str) -> Iterator[DriveSession | None]:
    """The thread's session if nobody else drives it, else None. Closing the connection is the unlock."""
    wrapper = connections[DEFAULT_DB_ALIAS]
    wrapper.close()  # advisory locks are re-entrant within a session: always take them on a fresh one
    wrapper.ensure_connection()
    wrapper.inc_thread_sharing()
    try:
        session = DriveSession(wrapper)
        with wrapper.cursor() as cursor:
            name = f"run:{thread_id}"[:63]  # so that a person or the sweep can find and end it
            cursor.execute("select set_config('application_name', %s, false)", [name])
            cursor.execute("select pg_try_advisory_lock(%s)", [lock_key(thread_id)])
            (got,) = cursor.fetchone()
        if not got:
            yield None
            return
        with wrapper.execute_wrapper(session.guard), session.breathing():
            yield session
    finally:
        wrapper.dec_thread_sharing()
        wrapper.close()

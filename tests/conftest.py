"""What every test needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

FLUSHES = 5


def pytest_configure(config: pytest.Config) -> None:
    """Hashing a password takes half a second with the real hasher; nothing here is about its strength."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True, scope="session")
def _flush_beside_servers() -> Iterator[None]:
    """Emptying the tables can meet the worker or the web process of a test half way (deadlock): then it tries again.
    The audit trail refuses to be emptied: only a superuser of the database can switch that off, as here."""
    from django.db import OperationalError
    from django.db.backends.postgresql.operations import DatabaseOperations

    flush = DatabaseOperations.execute_sql_flush

    def patient(self: Any, statements: Any) -> None:
        for left in reversed(range(FLUSHES)):
            try:
                return flush(
                    self,
                    ["SET session_replication_role = replica", *statements, "RESET session_replication_role"],
                )
            except OperationalError as error:
                if left == 0 or "deadlock" not in str(error):
                    raise
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "execute_sql_flush", patient)
        yield


@pytest.fixture(autouse=True, scope="session")
def _every_update_looks_again() -> Iterator[None]:
    """A conditional UPDATE decides who was first, so its conditions must be on its own row. With a join Django writes
    `id IN (SELECT ...)`: Postgres evaluates that once, and two racing writers both win."""
    from django.db.backends.signals import connection_created

    def check(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        target = re.match(r'UPDATE ("\w+") SET', sql)
        if target and re.search(rf"WHERE {target[1]}\.\"id\" IN \(SELECT", sql):
            raise AssertionError(f"an UPDATE with a join: {sql[:400]}")
        return execute(sql, params, many, context)

    def install(connection: Any, **_: Any) -> None:
        if check not in connection.execute_wrappers:
            connection.execute_wrappers.append(check)

    connection_created.connect(install)
    yield
    connection_created.disconnect(install)


@pytest.fixture(autouse=True)
def _no_language_left_by_another_test() -> None:
    """A page in Chinese leaves its language active in the thread; in the product the next request chooses its own."""
    from django.utils import translation

    translation.deactivate()

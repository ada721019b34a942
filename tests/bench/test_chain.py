"""What sealing the audit trail costs (`make bench`): a ratio measured in one run, and what one chain can take."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, transaction

from approvals.actors import SYSTEM
from approvals.services import audit, chain

pytestmark = pytest.mark.bench
TIMES, WRITERS = 300, 8


def acts(times: int) -> None:
    for _ in range(times):
        with transaction.atomic():
            audit.record("settings.changed", actor=SYSTEM, subject=None, data={"a": 1})


def seconds(times: int = TIMES) -> float:
    began = time.perf_counter()
    acts(times)
    return time.perf_counter() - began


def test_a_seal_costs_little_beside_its_act(transactional_db):
    acts(20)
    with_seal = min(seconds() for _ in range(3))
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        without = min(seconds() for _ in range(3))
        cursor.execute("RESET session_replication_role")
    print(f"\n  one audited act: {without / TIMES * 1e3:.2f} ms, sealed {with_seal / TIMES * 1e3:.2f} ms")
    assert with_seal / without < 3


def test_many_writers_and_a_check_of_all(transactional_db):
    threads = [threading.Thread(target=lambda: (acts(TIMES), connection.close())) for _ in range(WRITERS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    entries = chain.head()[0]
    began = time.perf_counter()
    assert chain.first_wrong() is None
    checked = time.perf_counter() - began
    print(
        f"\n  {WRITERS} writers: {entries / took:.0f} sealed acts a second; a check: {entries / checked:.0f} entries a second"
    )
    assert entries == WRITERS * TIMES

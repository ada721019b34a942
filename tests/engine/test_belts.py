"""The belts that only a race can test. Which test guards which belt: docs/adr/0007-belts.md."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection

from approvals.actors import SYSTEM
from approvals.models import AuditEvent, ToolExecution
from approvals.services import executions
from middleware.ports import CallId
from tests.engine.conftest import refund

THREADS = 12


def at_once(work):
    """`work` in many threads that begin together, each on its own connection."""
    gate = Barrier(THREADS)

    def one(_):
        try:
            connection.ensure_connection()
            gate.wait()
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, range(THREADS)))


def test_a_call_planned_by_many_at_once_has_one_row_and_one_key(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]})
    call = CallId(str(run.thread_id), "ai", "call")
    said = {"run": run, "actor": SYSTEM, "fence": 1, "call": call, "tool": "issue_refund", "digest": "d"}
    keys = {row.provider_key for row in at_once(lambda: executions.plan(**said))}
    assert (len(keys), ToolExecution.objects.count()) == (1, 1)
    assert AuditEvent.objects.filter(action="execution.planned").count() == 1


def test_a_call_started_by_many_at_once_is_sent_by_one(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]})
    call = CallId(str(run.thread_id), "ai", "call")
    row = executions.plan(run=run, actor=SYSTEM, fence=1, call=call, tool="issue_refund", digest="d")
    started = at_once(lambda: executions.start(row=row, actor=SYSTEM, fence=1, idempotent=False))
    assert sum(found is not None for found in started) == 1
    assert ToolExecution.objects.get().attempt == 1

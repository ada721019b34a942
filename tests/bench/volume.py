"""A desk that has been in use for long, made in seconds: rows that the product made once, copied inside the database."""

from __future__ import annotations

from typing import Any

from django.db import connection, models
from django.db.models import F

from approvals.models import ApprovalRequest, AuditEvent, Decision, Event, EventCounter, Run, Step, Thread
from tests import factories

THREAD, RUN, REQUEST = (f"md5('{name}' || %(mark)s || i)::uuid" for name in ("thread", "run", "request"))


def fill(finished: int, pending: int, *, mark: str = "") -> None:
    """`finished` cases with a decided request each, spread over months, and `pending` that wait for refund-reviewers."""
    done = factories.make_request(status="rejected")
    Run.objects.filter(pk=done.run_id).update(status="success")
    waiting = factories.make_request()
    _copies(done, finished, f"done{mark}", "(i || ' minutes')::interval")
    _copies(waiting, pending, f"waiting{mark}", "'0'::interval")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _copies(request: ApprovalRequest, count: int, mark: str, ago: str) -> None:
    thread, run, pk = (part % {"mark": f"'{mark}'"} for part in (THREAD, RUN, REQUEST))
    ids = {"thread_id": thread, "run_id": run}
    _copy(
        request.thread,
        count,
        id=thread,
        number="nextval('approvals_case_number')",
        updated_at=f"t.updated_at - {ago}",
    )
    _copy(request.run, count, id=run, thread_id=thread, created_at=f"t.created_at - {ago}", key="NULL")
    for step in Step.objects.filter(run=request.run):
        _copy(step, count, run_id=run)
    closed = f"t.closed_at - {ago}" if request.closed_at else "NULL"
    due = "t.expires_at + (i || ' seconds')::interval"
    applied = "now()" if request.closed_at else "NULL"
    _copy(request, count, id=pk, **ids, expires_at=due, closed_at=closed, applied_at=applied)
    for decision in request.decisions.all():
        _copy(
            decision,
            count,
            id=f"md5('decision{mark}' || i)::uuid",
            request_id=pk,
            key=f"'{mark}' || i",
            sent_at="now()",
        )
    for entry in AuditEvent.objects.filter(run_id=request.run_id):
        subject = pk if entry.object_kind == "approvalrequest" else run
        _copy(entry, count, **ids, at=f"t.at - {ago}", object_id=f"{subject}::text")
    for event in list(Event.objects.filter(topic=request.topic))[:3]:
        first = EventCounter.objects.get().seq
        _copy(event, count, seq=f"{first} + i", topic=f"'request:' || {pk}")
        EventCounter.objects.update(seq=F("seq") + count)


def _copy(row: models.Model, count: int, **other: str) -> None:
    """`other`: columns that differ, as SQL over `i` (1 to count) and `t` (the row). A generated key is left out."""
    columns = [
        field.column
        for field in row._meta.concrete_fields
        if field.column in other or not isinstance(field, models.AutoField)
    ]
    values = [other.get(name, f't."{name}"') for name in columns]
    quoted = ", ".join(f'"{name}"' for name in columns)
    table, key = row._meta.db_table, row._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({quoted}) SELECT {", ".join(values)} '
            f'FROM "{table}" t, generate_series(1, {count}) i WHERE t."{key}" = \'{row.pk}\''
        )


def counts() -> dict[str, Any]:
    return {
        m.__name__: m.objects.count()
        for m in (Thread, Run, Step, ApprovalRequest, Decision, AuditEvent, Event)
    }

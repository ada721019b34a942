"""The audit trail as a file. Taking it out is itself on the trail, first."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.db import transaction

from approvals import access
from approvals.actors import Actor
from approvals.models import AuditEvent
from approvals.services import audit, chain

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run
COLUMNS = (
    "entry", "place", "time (UTC)", "action", "who", "kind", "on", "object", "case", "run", "data",
)  # fmt: skip


def whole(*, actor: Actor) -> Iterator[str]:
    """Every entry as a JSON line, for `tools/verify_audit.py`."""
    access.require(actor.person, access.may_see_audit(actor.person), "audit")
    return (f"{line}\n" for line in chain.export(actor=actor))


def table(*, actor: Actor, entries: Any, wanted: Mapping[str, str]) -> str:
    """Some entries (a queryset of `AuditEvent`) as CSV, oldest first. `wanted`: the filter, for the record."""
    access.require(actor.person, access.may_see_audit(actor.person), "audit")
    with transaction.atomic():
        audit.record("audit.exported", actor=actor, subject=None, data={"filter": dict(wanted), "as": "csv"})
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for event in entries.select_related("seal").order_by("pk").iterator(1_000):
        rows.writerow([inert(cell) for cell in _cells(event)])
    return out.getvalue()


def inert(cell: object) -> str:
    """A spreadsheet must not take text for a formula."""
    text = "" if cell is None else str(cell)
    return f"'{text}" if text.startswith(FORMULA) else text


def _cells(event: AuditEvent) -> Iterator[object]:
    yield event.pk
    yield event.seal.seq if hasattr(event, "seal") else None
    yield event.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    yield event.action
    yield event.actor_name
    yield event.actor_kind
    yield event.object_name
    yield f"{event.object_kind} {event.object_id}".strip()
    yield event.thread_id
    yield event.run_id
    yield json.dumps(event.data, ensure_ascii=False)

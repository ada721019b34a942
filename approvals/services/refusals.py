"""Refused attempts on the audit trail: who tried what, in a transaction of its own."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import models, transaction

from approvals.actors import Actor
from approvals.errors import Attempt
from approvals.models import ApprovalRequest, AuditEvent, Run, Thread
from approvals.services import audit

KNOWN: tuple[type[models.Model], ...] = (Thread, Run, ApprovalRequest)


def record(actor: Actor, attempt: Attempt, path: str) -> AuditEvent:
    """Write `access.refused`. Call it after the refused transaction has ended, else the entry is rolled back too."""
    subject = _subject(attempt)
    thread, run = _where(subject)
    data = {
        "right": attempt.right,
        "path": path[:300],
        "object": attempt.object_kind,
        "id": attempt.object_id[:64],
    }
    with transaction.atomic():
        return audit.record("access.refused", actor=actor, subject=subject, run=run, thread=thread, data=data)


def _subject(attempt: Attempt) -> models.Model | None:
    """The object of the attempt, if there is one: entries about a case are found by its id."""
    model = next((model for model in KNOWN if model._meta.model_name == attempt.object_kind), None)
    if model is None:
        return None
    try:
        pk = UUID(attempt.object_id)
    except ValueError:
        return None
    found: Any = model._default_manager.filter(pk=pk).first()
    return found if isinstance(found, models.Model) else None


def _where(subject: models.Model | None) -> tuple[Thread | None, Run | None]:
    match subject:
        case Thread():
            return subject, None
        case Run():
            return None, subject
        case ApprovalRequest():
            return None, subject.run
        case _:
            return None, None

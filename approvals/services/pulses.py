"""Signs of life of what must happen again and again. Not acts of anybody: no event, no audit entry."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now

from approvals.models import Pulse

SWEEP = "sweep"
TRAIL = "trail"  # the chain of the audit trail was checked
CANARY = "canary:"  # and the queue


def beat(name: str, **data: Any) -> None:
    """It happened just now."""
    Pulse.objects.update_or_create(name=name, defaults={"at": Now(), "data": data})

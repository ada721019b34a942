"""What people set for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from approvals.actors import Actor
from approvals.services import audit

SETTINGS = ("language", "time_zone", "theme", "single_keys", "undo_seconds")


def change_settings(*, actor: Actor, settings: Mapping[str, Any]) -> list[str]:
    """Store what differs and say so on the trail. Returns the names of what changed."""
    person = actor.person
    changed = {name: settings[name] for name in SETTINGS if settings[name] != getattr(person, name)}
    if changed:
        with transaction.atomic():
            before = {name: getattr(person, name) for name in changed}
            for name, value in changed.items():
                setattr(person, name, value)
            person.save(update_fields=list(changed))
            audit.record(
                "settings.changed", actor=actor, subject=person, data={"from": before, "to": changed}
            )
    return list(changed)

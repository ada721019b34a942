"""What people set for themselves, and who may do what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from approvals import notify
from approvals.actors import Actor
from approvals.models import User
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


RIGHTS = ("username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser")


def rights_of(subject: User | Group) -> dict[str, Any]:
    """What an administrator can give to a person or a role, as it is stored now."""
    if isinstance(subject, Group):
        return {"name": subject.name, "permissions": _permissions(subject.permissions)}
    given = {name: getattr(subject, name) for name in RIGHTS}
    roles = sorted(subject.groups.values_list("name", flat=True))
    return given | {"roles": roles, "permissions": _permissions(subject.user_permissions)}


def _permissions(granted: Any) -> list[str]:
    return [
        f"{app}.{name}"
        for app, name in granted.values_list("content_type__app_label", "codename").order_by("pk")
    ]


def record_rights(*, actor: Actor, subject: User | Group, before: Mapping[str, Any] | None) -> None:
    """Say on the trail what was changed, inside the transaction that changed it. `before`: None if it is new."""
    kind, after = "role" if isinstance(subject, Group) else "person", rights_of(subject)
    if before is None:
        audit.record(f"{kind}.added", actor=actor, subject=subject, data={"to": after})
    elif changed := [name for name in after if after[name] != before[name]]:
        data = {
            "from": {name: before[name] for name in changed},
            "to": {name: after[name] for name in changed},
        }
        audit.record(f"{kind}.changed", actor=actor, subject=subject, data=data)
        notify.doors_on_commit(subject.pk if isinstance(subject, User) else "")


def remove_role(*, actor: Actor, role: Group) -> None:
    with transaction.atomic():
        members = sorted(role.user_set.values_list("username", flat=True))
        audit.record(
            "role.removed", actor=actor, subject=role, data={"from": rights_of(role) | {"members": members}}
        )
        role.delete()
        notify.doors_on_commit()


def record_password(*, actor: Actor, person: User) -> None:
    """Somebody else set it; the password itself is nobody's to keep."""
    with transaction.atomic():
        audit.record("person.password_set", actor=actor, subject=person)
        notify.doors_on_commit(person.pk)

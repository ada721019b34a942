"""The demo accounts: one per role. Their password is known to everybody, so they exist only on loopback."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import transaction

from approvals.enums import Role
from approvals.models import User

PASSWORD = "counterseal"  # noqa: S105 -- public on purpose, see above
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1", "testserver"})


@dataclass(frozen=True)
class Person:
    username: str
    first_name: str
    last_name: str
    role: Role | None = None

    @property
    def is_administrator(self) -> bool:
        return self.role is Role.ADMINISTRATORS


PEOPLE = (
    Person("rita", "Rita", "Gupta", Role.REFUND_REVIEWERS),
    Person("chen", "Chen", "Yu", Role.REFUND_REVIEWERS),
    Person("fay", "Fay", "Olsen", Role.FINANCE),
    Person("sam", "Sam", "Ortiz", Role.SUPPORT),
    Person("tomas", "Tomás", "Lima", Role.SUPPORT),
    Person("ada", "Ada", "Brandt", Role.ADMINISTRATORS),
    Person("audra", "Audra", "Klein", Role.AUDITORS),
    Person("otto", "Otto", "Weiss"),
)


def is_local() -> bool:
    """Whether this installation can only be reached from its own machine."""
    return set(settings.ALLOWED_HOSTS) <= LOOPBACK


def make_accounts() -> list[str]:
    """Create the accounts that are missing; one hash for all of them, because hashing is slow on purpose."""
    if not is_local():
        return []
    known = set(
        User.objects.filter(username__in=[p.username for p in PEOPLE]).values_list("username", flat=True)
    )
    missing = [person for person in PEOPLE if person.username not in known]
    if not missing:
        return []
    hashed = make_password(PASSWORD)
    groups = {group.name: group for group in Group.objects.all()}
    with transaction.atomic():
        for person in missing:
            user = User.objects.create(
                username=person.username,
                first_name=person.first_name,
                last_name=person.last_name,
                password=hashed,
                email=f"{person.username}@example.com",
                is_staff=person.is_administrator,
                is_superuser=person.is_administrator,
            )
            if person.role:
                user.groups.add(groups[person.role])
    return [person.username for person in missing]

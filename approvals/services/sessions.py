"""Signing in and out, on the audit trail. The session itself is Django's."""

from __future__ import annotations

from django.db import transaction

from approvals import cleaning
from approvals.actors import SYSTEM, Actor
from approvals.models import User
from approvals.services import audit


def signed_in(*, user: User) -> None:
    with transaction.atomic():
        audit.record("session.signed_in", actor=Actor.of(user), subject=user)


def signed_out(*, user: User) -> None:
    with transaction.atomic():
        audit.record("session.signed_out", actor=Actor.of(user), subject=user)


def failed(*, username: str, address: str) -> None:
    """Nobody is known to have done it: the name that was typed may be anything."""
    with transaction.atomic():
        data = {"username": cleaning.text(username[:150]), "address": address}
        audit.record("session.failed", actor=SYSTEM, subject=None, data=data)

"""API tokens: made, found, revoked. Only the sha256 of a secret is stored; it is shown once."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from approvals import notify
from approvals.actors import Actor
from approvals.enums import Scope
from approvals.errors import Invalid
from approvals.models import ApiToken, User
from approvals.services import audit

BRAND = "cseal"  # lets log scanners find leaked tokens
MAX_DAYS = 365


def create(
    *, actor: Actor, user: User, scopes: Sequence[str], days: int = 90, name: str = ""
) -> tuple[ApiToken, str]:
    """A new token and its secret text `cseal_PREFIX_SECRET`, which cannot be read again."""
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        raise Invalid(
            {"scope": f"Unknown scope {', '.join(unknown) or '(none)'}: use {', '.join(Scope.values)}."}
        )
    if not 1 <= days <= MAX_DAYS:
        raise Invalid({"days": f"A token lives 1 to {MAX_DAYS} days."})
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    with transaction.atomic():
        token = ApiToken.objects.create(
            user=user,
            name=name[:80],
            prefix=prefix,
            secret_sha256=_hash(secret),
            scopes=sorted(set(scopes)),
            expires_at=Now() + timedelta(days=days),
        )
        audit.record(
            "token.created",
            actor=actor,
            subject=user,
            data={"prefix": prefix, "scopes": token.scopes, "days": days},
        )
    return token, f"{BRAND}_{prefix}_{secret}"


def find(text: str) -> ApiToken | None:
    """The living token behind `text`; None for anything else. Constant-time comparison."""
    parts = text.split("_", 2)
    if len(parts) != 3 or parts[0] != BRAND:
        return None
    living = Q(revoked_at=None, user__is_active=True) & (Q(expires_at=None) | Q(expires_at__gt=Now()))
    token = ApiToken.objects.select_related("user").filter(living, prefix=parts[1]).first()
    if token is None or not hmac.compare_digest(token.secret_sha256, _hash(parts[2])):
        return None
    ApiToken.objects.filter(pk=token.pk).filter(
        Q(last_used_at=None) | Q(last_used_at__lt=Now() - timedelta(minutes=1))
    ).update(last_used_at=Now())
    return token


def prefix_of(text: str) -> str:
    """The part of a token that may be written down; "" if this does not look like one: it may be anything."""
    found = re.match(rf"{BRAND}_([0-9a-f]{{8}})_", text)
    return found[1] if found else ""


def revoke(*, actor: Actor, token_pk: UUID | str) -> None:
    """End a token of one's own."""
    with transaction.atomic():
        mine = ApiToken.objects.filter(pk=token_pk, user=actor.person, revoked_at=None)
        prefix = mine.values_list("prefix", flat=True).first()
        if mine.update(revoked_at=Now()):
            audit.record("token.revoked", actor=actor, subject=actor.person, data={"prefix": prefix})
            notify.doors_on_commit(actor.person.pk)


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()

"""Signing in and out, on the audit trail, and how fast passwords may be guessed. The session itself is Django's."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.db.models.functions import Now

from approvals import cleaning, notify
from approvals.actors import SYSTEM, Actor
from approvals.models import SignIn, User
from approvals.services import audit

WINDOW, KEPT = timedelta(minutes=15), timedelta(days=1)
PER_ACCOUNT_AND_ADDRESS, PER_ADDRESS, PER_ACCOUNT = (
    5,
    30,
    30,
)  # failures within the window before anybody waits
TOKENS = ":token"  # stands for the account of attempts with a bearer token; no user name has a colon
FIRST, SHORT, LONGEST = timedelta(seconds=15), timedelta(seconds=30), timedelta(minutes=15)


def signed_in(*, user: User, address: str = "") -> None:
    with transaction.atomic():
        _note(user.username, address, succeeded=True)
        audit.record("session.signed_in", actor=Actor.of(user), subject=user)


def signed_out(*, user: User) -> None:
    with transaction.atomic():
        audit.record("session.signed_out", actor=Actor.of(user), subject=user)
        notify.doors_on_commit(user.pk)


def failed(*, username: str, address: str) -> None:
    """Nobody is known to have done it: the name that was typed may be anything."""
    with transaction.atomic():
        _note(username, address, succeeded=False)
        audit.record("session.failed", actor=SYSTEM, subject=None, data=_typed(username, address))


def seconds_to_wait(*, username: str, address: str) -> int:
    """How long this address must wait before a password for this account is looked at; 0: not at all.

    Failures from one address slow that address down. Failures from many addresses slow an account down too, but never
    for somebody whose address has signed in to it before: nobody can lock a colleague out.
    """
    account, recent = _account(username), SignIn.objects.filter(at__gt=Now() - WINDOW)
    here = recent.filter(account=account, address=address)
    last_success = here.filter(succeeded=True).aggregate(last=Max("at"))["last"]
    mine = here.filter(succeeded=False, at__gt=last_success) if last_success else here.filter(succeeded=False)
    anyone = recent.filter(account=account, succeeded=False)
    spread = SignIn.objects.none() if last_success else anyone
    return max(
        _wait(mine, PER_ACCOUNT_AND_ADDRESS, LONGEST),
        _wait(recent.filter(address=address, succeeded=False).exclude(account=TOKENS), PER_ADDRESS, LONGEST),
        _wait(spread, PER_ACCOUNT, SHORT),
    )


def throttled(*, username: str, address: str, seconds: int) -> None:
    with transaction.atomic():
        data = _typed(username, address) | {"seconds": seconds}
        audit.record("session.throttled", actor=SYSTEM, subject=None, data=data)


def token_refused(*, prefix: str, address: str) -> int:
    """Note a bearer token that is none of ours, or say how long to wait: it cannot be guessed, but the trail could be
    filled. A good token is never kept waiting."""
    recent = SignIn.objects.filter(at__gt=Now() - WINDOW, account=TOKENS, address=address)
    if wait := _wait(recent, PER_ADDRESS, LONGEST):
        return wait
    with transaction.atomic():
        _note(TOKENS, address, succeeded=False)
        data = {"prefix": prefix, "address": address}
        audit.record("token.refused", actor=SYSTEM, subject=None, data=data)
    return 0


def _wait(failures: QuerySet[SignIn], free: int, longest: timedelta) -> int:
    """15 s after the first failure that is one too many, then twice as long with each."""
    found = failures.aggregate(count=Count("pk"), age=Now() - Max("at"))
    over = found["count"] - free
    if over < 0:
        return 0
    due = min(FIRST * 2 ** min(over, 10), longest) - found["age"]
    return max(0, ceil(float(due.total_seconds())))


def _note(username: str, address: str, *, succeeded: bool) -> None:
    SignIn.objects.filter(at__lt=Now() - KEPT).delete()
    SignIn.objects.create(account=_account(username), address=address[:45], succeeded=succeeded)


def _account(username: str) -> str:
    return cleaning.text(username[:150]).lower()


def _typed(username: str, address: str) -> dict[str, object]:
    return {"username": cleaning.text(username[:150]), "address": address}

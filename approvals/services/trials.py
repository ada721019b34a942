"""Trials of a spec: started by an administrator, run once by a worker, ended by the sweep if no worker came back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from agents.words import gettext_noop
from approvals import access, cleaning, dispatch
from approvals.actors import Actor
from approvals.enums import TrialStatus
from approvals.errors import Invalid
from approvals.models import Agent, Trial
from approvals.services import audit

LONGEST_MESSAGE = 4_000
AT_ONCE = 3  # trials of one person that wait or run
DEADLINE = timedelta(minutes=5)
OPEN = (TrialStatus.WAITING, TrialStatus.RUNNING)
GAVE_UP = gettext_noop("No worker finished it in five minutes.")


def start(*, actor: Actor, agent: Agent, spec: Mapping[str, Any], message: str, says_yes: bool) -> Trial:
    """Raises `Invalid` for a message that is empty or too long, or when too many trials are open."""
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    text = cleaning.text(message).strip()
    if not text:
        raise Invalid({"message": gettext_noop("Write what the agent is asked to do.")})
    if len(text) > LONGEST_MESSAGE:
        raise Invalid({"message": gettext_noop("At most 4,000 characters.")})
    if Trial.objects.filter(started_by=actor.name, status__in=OPEN).count() >= AT_ONCE:
        raise Invalid(
            {"message": gettext_noop("Three of your trials are still running: wait for one to end.")}
        )
    with transaction.atomic():
        trial = Trial.objects.create(
            agent=agent, spec=dict(spec), message=text, says_yes=says_yes, started_by=actor.name
        )
        audit.record("trial.started", actor=actor, subject=agent, data={"trial": str(trial.pk)})
        dispatch.trial_on_commit(trial.pk)
    return trial


def claim(trial_pk: Any) -> Trial | None:
    """For the worker: the trial, once. None: another one has it, or it is over."""
    waiting = Trial.objects.filter(pk=trial_pk, status=TrialStatus.WAITING)
    return Trial.objects.get(pk=trial_pk) if waiting.update(status=TrialStatus.RUNNING) else None


def finish(*, trial: Trial, trace: Sequence[Mapping[str, Any]], error: str = "") -> None:
    """Keep what happened. A trial that was given up meanwhile stays so."""
    Trial.objects.filter(pk=trial.pk, status=TrialStatus.RUNNING).update(
        status=TrialStatus.FAILED if error else TrialStatus.DONE,
        trace=cleaning.json(list(trace)),
        error=cleaning.text(error)[:2_000],
        ended_at=Now(),
    )


def give_up_late() -> int:
    """The sweep: end what no worker finished. Returns how many."""
    late = Trial.objects.filter(status__in=OPEN, created_at__lt=Now() - DEADLINE)
    return late.update(status=TrialStatus.FAILED, error=GAVE_UP, ended_at=Now())

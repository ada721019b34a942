"""The health page: what works, what that stops when it does not, and what waits for an administrator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals import health
from approvals.contexts.shared import Chip
from approvals.health import Vitals, Waiting, is_late
from approvals.models import Run, User
from approvals.phrases import queue_name
from approvals.services import agents
from approvals.services.agents import Use
from approvals.templatetags.desk import duration

GOOD = ("ok", "check")
WARN = ("warn", "triangle-alert")
BAD = ("bad", "circle-x")
BUSY = 100  # messages in one queue: work comes in faster than it is done


@dataclass(frozen=True)
class Card:
    """One part of the installation. `stops`: what does not happen while it is not well."""

    icon: str
    title: str
    state: Chip
    facts: Sequence[tuple[str, str]]
    stops: str = ""

    @property
    def is_well(self) -> bool:
        return self.state.tone == "ok"


@dataclass(frozen=True)
class Stuck:
    """A parked or failing run, why, and whether the installed code could go on with it."""

    run: Run
    changed: Sequence[str]

    @property
    def can_go_on(self) -> bool:
        return not self.changed


@dataclass(frozen=True)
class Health:
    vitals: Vitals
    parked: Sequence[Stuck]
    failing: Sequence[Run]
    threatened: Sequence[tuple[Use, Sequence[str]]]  # versions with open runs that would be parked

    @cached_property
    def cards(self) -> list[Card]:
        found = self.vitals
        return [
            _workers(found),
            _sweep(found),
            _broker(found),
            _database(found),
            _decisions(found),
            _effects(found),
        ]

    @property
    def summary(self) -> Chip:
        ill = sum(not card.is_well for card in self.cards)
        if not ill:
            return Chip(_("All is well"), *GOOD)
        return Chip(ngettext("%(n)s part needs a look", "%(n)s parts need a look", ill) % {"n": ill}, *WARN)


def health_of(user: User) -> Health:
    """Everything the page shows; whoever asks has been authorised."""
    uses = agents.in_use()
    changed = {use.version.pk: [_(d.text) % d.params for d in use.differences] for use in uses}
    return Health(
        vitals=health.vitals(),
        parked=[Stuck(run, changed.get(run.version_id, ())) for run in health.parked_runs()],
        failing=health.failing_runs(),
        threatened=[(use, changed[use.version.pk]) for use in uses if use.open and use.differences],
    )


def _workers(found: Vitals) -> Card:
    facts = [
        (_("%(queue)s: last taken") % {"queue": _queue(q)}, _ago(age)) for q, age in found.canaries.items()
    ]
    stops = _(
        "Runs stand still. Decisions are kept and sent as soon as a worker is back: start one, or look at its log."
    )
    if found.drained_since is not None:
        return Card(
            "cpu",
            _("Workers"),
            Chip(_("Stopped by a person"), *WARN),
            facts,
            _("Runs stand still until work may go on."),
        )
    if all(age is None for age in found.canaries.values()):
        if is_late(found.sweep, health.SWEEP_LATE):
            return Card("cpu", _("Workers"), Chip(_("No sign of life yet"), *WARN), facts, stops)
        begins = _("A worker has swept; its first round through every queue comes within a minute.")
        return Card("cpu", _("Workers"), Chip(_("Starting"), *GOOD), facts, begins)
    if found.silent_queues:
        return Card("cpu", _("Workers"), Chip(_("Nobody works"), *BAD), facts, stops)
    if is_late(found.due.oldest or 0, health.DUE_LATE):
        return Card(
            "cpu",
            _("Workers"),
            Chip(_("Behind"), *WARN),
            facts,
            _("Decisions wait longer than they should: start more workers."),
        )
    return Card("cpu", _("Workers"), Chip(_("Working"), *GOOD), facts)


def _sweep(found: Vitals) -> Card:
    facts = [(_("Last sweep"), _ago(found.sweep)), (_("Overdue and not closed"), _count(found.overdue))]
    if is_late(found.sweep, health.SWEEP_LATE):
        stops = _(
            "Nothing times out, nobody is reminded, and lost hints are not sent again: start beat, or a worker."
        )
        return Card("timer", _("Clock"), Chip(_("Late"), *BAD), facts, stops)
    return Card("timer", _("Clock"), Chip(_("Ticking"), *GOOD), facts)


def _broker(found: Vitals) -> Card:
    stops = _(
        "Pages look for news every 15 seconds and work starts later. Nothing is lost: start Redis or Valkey again."
    )
    if found.broker is None:
        return Card("radio", _("Broker"), Chip(_("Does not answer"), *BAD), [], stops)
    facts = [(_("%(queue)s: waiting") % {"queue": _queue(q)}, str(n)) for q, n in found.broker.depth.items()]
    facts.append(
        (
            _("A nudge, there and back"),
            _("never") if found.broker.nudge is None else _short(found.broker.nudge),
        )
    )
    if found.broker.nudge is None:
        return Card("radio", _("Broker"), Chip(_("Nudges get lost"), *WARN), facts, stops)
    if any(depth > BUSY for depth in found.broker.depth.values()):
        more = _("Messages come in faster than they are taken: start more workers.")
        return Card("radio", _("Broker"), Chip(_("Behind"), *WARN), facts, more)
    return Card("radio", _("Broker"), Chip(_("Answers"), *GOOD), facts)


def _database(found: Vitals) -> Card:
    open_, possible = found.sessions
    facts = [(_("Open sessions"), _("%(n)s of %(most)s") % {"n": open_, "most": possible})]
    if open_ > 0.8 * possible:
        stops = _("Soon nobody else can connect: raise max_connections, or run fewer processes.")
        return Card("database", _("Database"), Chip(_("Almost full"), *WARN), facts, stops)
    return Card("database", _("Database"), Chip(_("Answers"), *GOOD), facts)


def _decisions(found: Vitals) -> Card:
    facts = [
        (_("Wait for a person"), _count(found.asked)),
        (_("Decided, not taken by a worker"), _count(found.due)),
        (_("Runs not begun"), _count(found.queued)),
    ]
    if found.latency is not None:
        spoken = {"median": _short(found.latency.median), "p95": _short(found.latency.p95)}
        facts.append((_("From decision to worker"), _("%(median)s, at most %(p95)s for 95 of 100") % spoken))
    return Card("inbox", _("Decisions"), Chip(_("Open"), *GOOD), facts)


def _effects(found: Vitals) -> Card:
    facts = [(_("Outcome unknown"), _count(found.unknown)), (_("Parked runs"), str(found.runs["parked"]))]
    if found.unknown.count:
        stops = _("Their runs wait until somebody says what happened: look at Unknown in the inbox.")
        return Card(
            "circle-question-mark",
            _("Effects"),
            Chip(_("Not all known"), "unk", "circle-question-mark"),
            facts,
            stops,
        )
    return Card("circle-question-mark", _("Effects"), Chip(_("All known"), *GOOD), facts)


def _queue(name: str) -> str:
    known = {"resume": _("Decisions"), "start": _("New runs"), "default": _("Chores")}
    return known.get(name) or queue_name(name)


def _ago(seconds: float | None) -> str:
    return _("never") if seconds is None else _("%(time)s ago") % {"time": duration(seconds)}


def _count(waiting: Waiting) -> str:
    if waiting.oldest is None:
        return str(waiting.count)
    return _("%(n)s, the oldest for %(time)s") % {"n": waiting.count, "time": duration(waiting.oldest)}


def _short(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else duration(seconds)

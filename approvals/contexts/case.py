"""Cases: the list, the conversation, and the requests in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from django.utils import timezone
from django.utils.translation import gettext as _

from approvals import access, evidence, phrases, queries
from approvals.contexts.run import Moment, Timeline
from approvals.contexts.shared import (
    AboutRequest,
    Chip,
    Difference,
    Effect,
    differences,
    effect_of,
    status_look,
)
from approvals.enums import RequestKind, RunStatus, StepKind
from approvals.models import ApprovalRequest, Decision, Run, Step, Thread, ToolExecution, User
from approvals.services import edits, events

LATEST = 10**17  # microseconds after any time we shall see: sorts the newest first as text


@dataclass(frozen=True)
class CaseRow:
    """One case in the list: its state in true words."""

    thread: Thread

    @property
    def sort(self) -> str:
        return f"{LATEST - int(self.thread.updated_at.timestamp() * 1_000_000):018d}"

    @property
    def waiting(self) -> list[ApprovalRequest]:
        return list(getattr(self.thread, "waiting", ()))

    @property
    def turn(self) -> Run | None:
        turns = getattr(self.thread, "turns", ())
        return turns[-1] if turns else None

    @property
    def chip(self) -> Chip:
        if any(request.kind == RequestKind.UNKNOWN_OUTCOME for request in self.waiting):
            return Chip(_("Outcome unknown"), "unk", "circle-question-mark")
        if self.waiting:
            return Chip(_("Waiting"), "warn", "clock")
        if self._decided:
            return Chip(_("Decided"), "acc", "send")
        match self.turn.status if self.turn else "":
            case RunStatus.ERROR:
                return Chip(_("Failed"), "bad", "circle-alert")
            case RunStatus.PARKED:
                return Chip(_("Parked"), "bad", "circle-parking")
            case RunStatus.CANCELLED:
                return Chip(_("Stopped"), "", "circle-stop")
            case RunStatus.SUCCESS:
                return self._done
        return Chip(_("Working"), "acc", "loader")

    @property
    def _decided(self) -> ApprovalRequest | None:
        """The call that was decided, while the answer is on its way to the agent."""
        asked: list[ApprovalRequest] = getattr(self.turn, "asked", [])
        waits = self.turn is not None and self.turn.status == RunStatus.INTERRUPTED
        return asked[-1] if waits and asked and not asked[-1].is_pending else None

    @property
    def _done(self) -> Chip:
        """Green only if what was asked for happened."""
        asked: list[ApprovalRequest] = getattr(self.turn, "asked", [])
        if asked and phrases.ran_not(asked[-1]):
            return Chip(phrases.outcome(asked[-1]), *status_look(asked[-1]))
        return Chip(_("Done"), "ok", "check")

    @property
    def order_id(self) -> str:
        """Of the case, else of the call that waits."""
        if self.thread.order_id:
            return self.thread.order_id
        args = self.waiting[0].args if self.waiting else None
        found = args.get("order_id") if isinstance(args, dict) else None
        return found if isinstance(found, str) else ""

    @property
    def line(self) -> str:
        if self.waiting:
            first = self.waiting[0]
            if first.kind == RequestKind.QUESTION:
                return _("The agent asks: %(question)s") % {"question": _question(first)}
            title = phrases.title(first)
            return (
                title
                if first.kind != RequestKind.TOOL_CALL
                else _("Waits for a decision: %(title)s") % {"title": title}
            )
        if decided := self._decided:
            return _("%(outcome)s: %(call)s") % {
                "outcome": phrases.outcome(decided),
                "call": phrases.title(decided),
            }
        turn = self.turn
        if turn is None:
            return ""
        return turn.error or turn.answer or phrases.run_state(turn)


def _question(request: ApprovalRequest) -> str:
    args = request.args
    return str(args.get("question", "")) if isinstance(args, dict) else ""


@dataclass(frozen=True)
class Card(AboutRequest):
    """A request inside a conversation: what was asked, who decides, until when, and what happens otherwise."""

    request: ApprovalRequest
    user: User
    execution: ToolExecution | None

    @property
    def kind(self) -> str:
        return self.request.kind

    @property
    def question(self) -> str:
        return _question(self.request)

    @property
    def queue(self) -> str:
        return phrases.queue_name(self.request.queue)

    @property
    def may_withdraw(self) -> bool:
        known = self.request.is_pending and self.request.kind != RequestKind.UNKNOWN_OUTCOME
        return known and access.can_withdraw(self.user, self.request)

    @property
    def may_decide(self) -> bool:
        return access.can_decide(self.user, self.request)

    @property
    def tone(self) -> str:
        return status_look(self.request)[0]

    @property
    def icon(self) -> str:
        return status_look(self.request)[1]

    @property
    def outcome(self) -> str:
        return phrases.outcome(self.request)

    @property
    def ending(self) -> str:
        return phrases.ending(self.request)

    @cached_property
    def standing(self) -> Decision | None:
        return None if self.request.is_pending else self.request.standing

    @property
    def edit(self) -> list[Difference]:
        request = self.request
        return (
            differences(edits.changes(request.args, request.final_args), request.args)
            if request.final
            else []
        )

    @property
    def effect(self) -> Effect | None:
        return effect_of(self.execution) if self.execution else None

    @cached_property
    def undo_seconds(self) -> float:
        """Time in which the reviewer may still take the decision back."""
        standing = self.standing
        if standing is None or standing.sent_at:
            return 0
        return max(0.0, (standing.send_at - timezone.now()).total_seconds())

    @property
    def rev(self) -> str:
        row = self.execution
        return f"{self.request.rev}-{row.status if row else ''}"


@dataclass(frozen=True)
class Unasked:
    """A call that ran without a person: nobody was asked, because the rule did not ask for one."""

    execution: ToolExecution
    sentence: str

    @property
    def effect(self) -> Effect:
        return effect_of(self.execution)


@dataclass
class Turn:
    """One run in the conversation."""

    run: Run
    user: User
    others_first: bool = False

    @cached_property
    def steps(self) -> list[Step]:
        return [step for step in self.run.steps.all() if step.kind != StepKind.MESSAGE]

    @cached_property
    def timeline(self) -> Timeline:
        run = self.run
        return Timeline(run, list(run.steps.all()), list(run.requests.all()), list(run.executions.all()))

    @cached_property
    def texts(self) -> list[Step]:
        """What the agent said to the team: its last words, and whatever it said without calling a tool."""
        said = [step for step in self.steps if step.kind == StepKind.MODEL and step.text.strip()]
        return [step for step in said if not step.tool_calls or step is said[-1]]

    @property
    def work(self) -> list[Moment]:
        """What it did and said on the way."""
        said = {step.pk for step in self.texts}
        moments = [moment for moment in self.timeline.moments if moment.step is not None]
        return [m for m in moments if m.step and m.step.kind != StepKind.MESSAGE and m.step.pk not in said]

    @property
    def lasted(self) -> float | None:
        """Time that the agent worked, without the time in which it waited for people."""
        if not self.steps:
            return None
        end = self.steps[-1].created_at
        waited = [
            (min(r.closed_at or end, end) - r.created_at).total_seconds() for r in self.run.requests.all()
        ]
        whole = (end - self.run.created_at).total_seconds()
        return max(0.0, whole - sum(time for time in waited if time > 0))

    @cached_property
    def cards(self) -> list[Card]:
        rows = {row.tool_call_id: row for row in self.run.executions.all()}
        return [
            Card(request, self.user, rows.get(request.tool_call_id)) for request in self.run.requests.all()
        ]

    @cached_property
    def unasked(self) -> list[Unasked]:
        """Write calls that the rule let through."""
        asked = {
            request.tool_call_id
            for request in self.run.requests.all()
            if request.kind == RequestKind.TOOL_CALL
        }
        args = {str(call.get("id")): call.get("args") for step in self.steps for call in step.tool_calls}
        rows = [row for row in self.run.executions.all() if row.tool_call_id not in asked]
        return [Unasked(row, phrases.unasked(row.tool, args.get(row.tool_call_id))) for row in rows]

    @property
    def is_mine(self) -> bool:
        return self.run.requested_by_id == self.user.pk

    @property
    def is_working(self) -> bool:
        return self.run.status in (RunStatus.PENDING, RunStatus.RUNNING)

    @property
    def rev(self) -> str:
        return f"{self.timeline.rev}-{self.others_first}"


@dataclass
class Conversation:
    thread: Thread
    user: User
    turns: list[Turn]
    seq: int
    errors: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)
    withdrawing: ApprovalRequest | None = None

    @property
    def can_write(self) -> bool:
        return access.can_write(self.user, self.thread)

    @cached_property
    def pending(self) -> list[Card]:
        return [card for turn in self.turns for card in turn.cards if card.request.is_pending]

    @property
    def can_withdraw_all(self) -> bool:
        return all(card.may_withdraw for card in self.pending)

    @property
    def pending_rev(self) -> str:
        return ".".join(f"{card.request.pk.hex[:8]}{card.request.rev}" for card in self.pending) or "0"

    @property
    def open_turn(self) -> Turn | None:
        return next((turn for turn in self.turns if turn.run.is_open), None)

    @property
    def latest(self) -> Turn | None:
        return self.open_turn or (self.turns[-1] if self.turns else None)

    @cached_property
    def order(self) -> evidence.Result | None:
        """The order as the agent read it last."""
        for turn in reversed(self.turns):
            for result in reversed(evidence.results(turn.steps)):
                if result.template == "order":
                    return result
        return None

    @cached_property
    def key(self) -> str:
        return str(uuid4())


def conversation(thread: Thread, user: User, **more: Any) -> Conversation:
    seq = events.current_seq()
    turns: list[Turn] = []
    for run in queries.turns_of(thread):
        waits = run.status == RunStatus.PENDING and any(turn.run.is_open for turn in turns)
        turns.append(Turn(run, user, others_first=waits))
    return Conversation(thread, user, turns, seq, **more)

"""What pages show, one dataclass per screen area. Templates get these and decide nothing but the look."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import uuid4

from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from approvals import access, evidence, money, phrases, queries
from approvals.argform import fields, html
from approvals.argform.diff import inline_diff
from approvals.argform.patch import Change
from approvals.argform.pointer import Json, parts
from approvals.argform.values import show
from approvals.enums import DecisionType, ExecutionStatus, RequestKind, RequestStatus, RunStatus, StepKind
from approvals.models import (
    ApprovalRequest,
    AuditEvent,
    Decision,
    DecisionDraft,
    Run,
    Step,
    Thread,
    ToolExecution,
    User,
)
from approvals.services import audit, edits, events, executions

SOON = timedelta(minutes=15)
FAR = 9_999_999_999
MOST = 10**15


# --- the frame ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Place:
    """One item of the navigation. `key`: after G."""

    name: str
    label: str
    icon: str
    key: str
    count: int = 0


@dataclass
class Frame:
    """Navigation and counts; worked out only where a template asks, so fragments do not pay for it."""

    user: Any
    path: str = ""

    @cached_property
    def counts(self) -> dict[str, int]:
        return queries.counts(self.user)

    @cached_property
    def places(self) -> list[Place]:
        """Only what the person may use."""
        user = self.user
        found = []
        if access.roles(user):
            found.append(Place("inbox", _("Inbox"), "inbox", "i", self.counts["mine"]))
        if access.may_open_cases(user) or access.sees_everything(user):
            found.append(Place("support", _("Support"), "messages-square", "s"))
        if access.may_see_runs(user):
            found.append(Place("runs", _("Runs"), "activity", "r"))
        if access.may_see_audit(user):
            found.append(Place("audit", _("Audit trail"), "scroll-text", "a"))
        return found

    @property
    def here(self) -> str:
        return self.path.strip("/").split("/")[0]

    @cached_property
    def roles(self) -> str:
        names = [phrases.queue_name(name) for name in sorted(access.roles(self.user))]
        return ", ".join(names) or _("No role yet")

    @property
    def waiting(self) -> int:
        return self.counts["mine"]


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    return {"frame": Frame(request.user, request.path)} if hasattr(request, "user") else {}


# --- the inbox ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Chip:
    text: str
    tone: str = ""
    icon: str = ""


@dataclass(frozen=True)
class Due:
    """Time left to decide."""

    seconds: float
    part: float

    @property
    def tone(self) -> str:
        if self.seconds <= 0:
            return "late"
        return "soon" if self.seconds < SOON.total_seconds() or self.part < 0.25 else ""


def due_of(request: ApprovalRequest) -> Due | None:
    if request.expires_at is None or not request.is_pending:
        return None
    left = (request.expires_at - timezone.now()).total_seconds()
    whole = (request.expires_at - request.created_at).total_seconds()
    return Due(left, left / whole if whole > 0 else 0)


TONES = {
    RequestStatus.APPROVED: ("ok", "check"),
    RequestStatus.EDITED: ("ok", "pencil"),
    RequestStatus.REJECTED: ("bad", "x"),
    RequestStatus.RESPONDED: ("ok", "check"),
    RequestStatus.EXPIRED: ("", "clock"),
    RequestStatus.WITHDRAWN: ("", "undo-2"),
    RequestStatus.SUPERSEDED: ("", "replace"),
    RequestStatus.HANDLED_ELSEWHERE: ("", "hand"),
    RequestStatus.PENDING: ("warn", "hourglass"),
}
KINDS = {
    RequestKind.UNKNOWN_OUTCOME: ("unk", "circle-question-mark"),
    RequestKind.LIMIT: ("limit", "gauge"),
    RequestKind.QUESTION: ("mail", "message-circle-question-mark"),
}


@dataclass(frozen=True)
class Row:
    """One line of the inbox."""

    request: ApprovalRequest
    user: User

    @cached_property
    def title(self) -> str:
        return phrases.title(self.request)

    @property
    def look(self) -> tuple[str, str]:
        return look_of(self.request)

    @cached_property
    def order_id(self) -> str:
        args = self.request.args
        found = args.get("order_id") if isinstance(args, dict) else None
        return found if isinstance(found, str) else self.request.thread.order_id

    @cached_property
    def due(self) -> Due | None:
        return due_of(self.request)

    @property
    def sort(self) -> str:
        """Due first, then the larger amount. Compared as text, so of fixed width."""
        request = self.request
        if request.closed_at:
            return f"{FAR - int(request.closed_at.timestamp()):010d}"
        due = int(request.expires_at.timestamp()) if request.expires_at else FAR
        amount = money.decimal_of(request.args.get("amount")) if isinstance(request.args, dict) else None
        size = int(abs(amount) * 100) if amount is not None else 0
        return f"{due:010d}{MOST - min(size, MOST):016d}"

    @property
    def chips(self) -> list[Chip]:
        request = self.request
        if not request.is_pending:
            tone, icon = TONES[RequestStatus(request.status)]
            who = _("you") if request.closed_by == self.user.name else request.closed_by
            said = _("%(outcome)s by %(who)s") % {"outcome": phrases.outcome(request), "who": who}
            return [Chip(said, tone, icon)]
        return [chip for chip in (self._why, self._warnings, self._own) if chip]

    @property
    def _why(self) -> Chip | None:
        match self.request.kind:
            case RequestKind.UNKNOWN_OUTCOME:
                return Chip(_("Outcome unknown"), "unk")
            case RequestKind.LIMIT:
                return Chip(_("Limit reached"), "warn")
            case RequestKind.QUESTION:
                return Chip(_("Question of the agent"), "acc")
        rule = phrases.short_rule(self.request)
        return Chip(rule, "warn") if rule else None

    @property
    def _warnings(self) -> Chip | None:
        levels = [check.get("level") for check in self.request.checks]
        failed, warned = levels.count("fail"), levels.count("warn")
        if failed:
            return Chip(_("%(n)s failed") % {"n": failed}, "bad", "circle-x")
        return Chip(_("%(n)s to check") % {"n": warned}, "", "triangle-alert") if warned else None

    @property
    def _own(self) -> Chip | None:
        own = access.why_not_decide(self.user, self.request) == "own_case"
        return Chip(_("Your own case"), "line") if own else None


def look_of(request: ApprovalRequest) -> tuple[str, str]:
    """(class, icon) of the square in front of a row."""
    if request.kind in KINDS:
        return KINDS[RequestKind(request.kind)]
    facts = phrases.facts_of(request.tool)
    moves_money = bool(phrases.amount(request))
    return ("money" if moves_money else "", facts.icon if facts else "braces")


@dataclass(frozen=True)
class Inbox:
    queue: str
    rows: list[Row]
    counts: Mapping[str, int]
    seq: int
    current: Any = None

    @property
    def tabs(self) -> list[tuple[str, str, int | None]]:
        return [
            ("mine", _("Mine"), self.counts["mine"]),
            ("team", _("Team"), self.counts["team"]),
            ("unknown", _("Unknown"), self.counts["unknown"]),
            ("done", _("Done"), None),
        ]


def inbox(user: User, queue: str, *, current: Any = None, ghosts: bool = False) -> Inbox:
    seq = events.current_seq()  # before the rows, so that they are at least that new
    rows = [Row(row, user) for row in queries.inbox_rows(user, queue, ghosts=ghosts)]
    return Inbox(queue, rows, queries.counts(user), seq, current)


# --- the decision -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Argument:
    """One argument as it is read: never cut, hidden characters spelled out."""

    name: str
    label: str
    value: Json
    text: str
    is_big: bool = False
    is_code: bool = False
    is_locked: bool = False
    source: Any = None  # evidence.Result, "message", or None


@dataclass(frozen=True)
class LogLine:
    icon: str
    text: str
    at: datetime
    note: str = ""
    entry: int | None = None
    tone: str = ""


PRESETS: dict[str, Any] = {
    "amount": lambda: _("The amount is not right"),
    "policy": lambda: _("The policy does not cover this"),
    "done": lambda: _("It was refunded or replaced already"),
    "unclear": lambda: _("The case is not clear enough yet"),
    "other": lambda: _("Another reason"),
}


@dataclass
class Typed:
    """What came back with a form, or from a draft: shown again as it was."""

    fields: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    changes: Sequence[Change] = ()
    key: str = ""


def in_order(schema: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Amount first, then as the tool lists its arguments: the database does not keep the order of keys."""
    facts = phrases.facts_of(tool)
    listed = list(facts.args.model_fields) if facts else []
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return dict(schema)
    order = ["amount", *(name for name in listed if name != "amount")]
    names = sorted(properties, key=lambda name: order.index(name) if name in order else len(order))
    return {**schema, "properties": {name: properties[name] for name in names}}


@dataclass
class Pane:
    """The decision pane of one request for one person."""

    request: ApprovalRequest
    user: User
    mode: str = "read"  # read, edit, reject, conflict, too-late
    typed: Typed = field(default_factory=Typed)
    draft: DecisionDraft | None = None
    seq: int = 0

    # --- who may, and what is open ---
    @cached_property
    def why_not(self) -> str:
        return phrases.why_not(access.why_not_decide(self.user, self.request), self.request)

    @cached_property
    def is_over(self) -> bool:
        """The time to decide is over, though nobody has closed it yet."""
        expires = self.request.expires_at
        return self.request.is_pending and expires is not None and expires <= timezone.now()

    @property
    def is_open(self) -> bool:
        return self.request.is_pending and not self.is_over and self.mode not in ("conflict",)

    @property
    def can_decide(self) -> bool:
        return self.is_open and not self.why_not

    @property
    def form(self) -> str:
        """Which form the bar and the pane show."""
        if not self.can_decide:
            return ""
        allowed = self.request.allowed_decisions
        if self.mode in ("edit", "reject") and self.mode in allowed:
            return self.mode
        if "respond" in allowed and "approve" not in allowed:
            return "respond"
        if self.request.kind == RequestKind.LIMIT:
            return "limit"
        if self.request.kind == RequestKind.UNKNOWN_OUTCOME:
            return "outcome"
        return "approve"

    @cached_property
    def key(self) -> str:
        return self.typed.key or str(uuid4())

    @property
    def allows(self) -> frozenset[str]:
        return frozenset(self.request.allowed_decisions)

    # --- what is asked ---
    @cached_property
    def title(self) -> str:
        return phrases.title(self.request)

    @cached_property
    def amount(self) -> str:
        return phrases.amount(self.request)

    @property
    def look(self) -> tuple[str, str]:
        return look_of(self.request)

    @cached_property
    def due(self) -> Due | None:
        return due_of(self.request)

    @property
    def rule(self) -> str:
        return phrases.rule(self.request)

    @cached_property
    def consequence(self) -> str:
        facts = phrases.facts_of(self.request.tool)
        return _(facts.consequence) if facts and facts.consequence else ""

    @cached_property
    def args(self) -> Any:
        return phrases.decided_args(self.request)

    @cached_property
    def json(self) -> str:
        """The canonical bytes, laid out; nothing else is approved."""
        return json.dumps(self.args, ensure_ascii=False, indent=2)

    @cached_property
    def tree(self) -> fields.Node:
        schema = in_order(self.request.args_schema, self.request.tool)
        return fields.build(schema, self.args, locked=frozenset(self.request.locked))

    @cached_property
    def arguments(self) -> list[Argument]:
        return [self._argument(node) for node in fields.leaves(self.tree) if node.present]

    def _argument(self, node: fields.Node) -> Argument:
        name = ".".join(parts(node.pointer)) or "arguments"
        value = node.value
        big = node.pointer == "/amount" and bool(self.amount)
        text = self.amount if big else show(node)
        source = None if value in (None, "") else evidence.source_of(value, self.results, self.request.run.message)
        code = isinstance(value, str) and value.isascii() and " " not in value and any(ch.isdigit() for ch in value)
        return Argument(name, phrases.label(parts(node.pointer)[-1] if node.pointer else name), value, text,
                        is_big=big, is_code=code or node.kind == "json", is_locked=node.locked, source=source)  # fmt: skip

    @property
    def fields(self) -> SafeString:
        """The same as a form; what was typed wins over what was proposed."""
        typed = self.typed.fields or (self.draft.fields if self.draft and self.draft.answer == self.form else {})
        currency = self.args.get("currency") if isinstance(self.args, dict) else None
        prefixes = {"/amount": currency} if isinstance(currency, str) and len(currency) == 3 else {}
        return html.render(self.tree, errors=self.typed.errors, posted=typed, prefixes=prefixes)

    @property
    def has_draft(self) -> bool:
        return self.draft is not None and self.draft.answer in ("edit", "reject") and self.form == "approve"

    @property
    def message(self) -> str:
        """The reason, answer or note as typed so far."""
        if self.typed.fields:
            return self.typed.fields.get("message", "")
        return self.draft.fields.get("message", "") if self.draft and self.draft.answer == self.form else ""

    @property
    def preset(self) -> str:
        typed = self.typed.fields or (self.draft.fields if self.draft and self.draft.answer == self.form else {})
        return typed.get("preset", "")

    @property
    def presets(self) -> list[tuple[str, str]]:
        return [(name, text()) for name, text in PRESETS.items()]

    @property
    def changes(self) -> list[tuple[str, SafeString]]:
        return diff_lines(self.typed.changes)

    # --- what helps ---
    @cached_property
    def checks(self) -> list[tuple[str, str]]:
        """(class, sentence), worst first as the server listed them."""
        classes = {"pass": "y", "warn": "w", "fail": "n"}
        return [(classes.get(str(c.get("level")), "w"), phrases.check(c)) for c in self.request.checks]

    @cached_property
    def steps(self) -> list[Step]:
        return queries.steps_of(self.request.run)

    @cached_property
    def results(self) -> list[evidence.Result]:
        """What the agent had read when it asked: nothing from after the call, least of all the call's own answer."""
        asked = [step.position for step in self.steps if step.message_id == self.request.ai_message_id]
        return evidence.results([step for step in self.steps if not asked or step.position < asked[0]])

    @cached_property
    def execution(self) -> ToolExecution | None:
        return executions.of_request(self.request)

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline(self.request.run, self.steps, [self.request], [self.execution] if self.execution else [])

    @cached_property
    def log(self) -> list[LogLine]:
        return [_log_line(entry) for entry in queries.log_of(self.request)]

    # --- how it went ---
    @cached_property
    def decisions(self) -> list[Decision]:
        return queries.decisions_of(self.request)

    @cached_property
    def standing(self) -> Decision | None:
        living = [d for d in self.decisions if d.undone_at is None and d.type != DecisionType.STILL_UNKNOWN]
        return living[-1] if living else None

    @property
    def headline(self) -> str:
        """Who closed it and how; "" while it is open."""
        if self.standing:
            return phrases.decided(self.standing, is_mine=self.standing.actor_id == self.user.pk)
        if self.is_over:
            return _("The time to decide is over.")
        return phrases.ending(self.request)

    @property
    def closed_at(self) -> datetime | None:
        return self.request.closed_at or (self.request.expires_at if self.is_over else None)

    @property
    def reason(self) -> str:
        return self.standing.message if self.standing else ""

    @property
    def before_you(self) -> str:
        """How long before this press it was closed."""
        at = self.standing.decided_at if self.standing else self.request.closed_at
        return phrases.ago(timezone.now() - at) if at else ""

    @property
    def is_yours(self) -> bool:
        return self.standing is not None and self.standing.actor_id == self.user.pk

    @property
    def outcome(self) -> tuple[str, str, str]:
        """(class, icon, words) of the chip in the head."""
        if self.is_over:
            return "", "clock", _("Timed out")
        tone, icon = TONES[RequestStatus(self.request.status)]
        return tone, icon, phrases.outcome(self.request)

    @cached_property
    def undo_seconds(self) -> float:
        """Time in which this person may still take their decision back."""
        standing = self.standing
        if standing is None or not self.is_yours or standing.sent_at:
            return 0
        return max(0.0, (standing.send_at - timezone.now()).total_seconds())

    @property
    def settled_amount(self) -> str:
        """The sum that was approved, after an edit the edited one."""
        return phrases.amount_in(self.request.final_args) if self.request.final else self.amount

    @property
    def undo_part(self) -> float:
        standing = self.standing
        whole = (standing.send_at - standing.decided_at).total_seconds() if standing else 0
        return self.undo_seconds / whole if whole > 0 else 0

    @cached_property
    def edit(self) -> list[tuple[str, SafeString]]:
        """What an approved edit changed."""
        return diff_lines(edits.changes(self.request.args, self.request.final_args)) if self.request.final else []

    @cached_property
    def next(self) -> ApprovalRequest | None:
        return queries.next_waiting(self.user, self.request)

    # --- unknown outcomes and limits ---
    @property
    def too_early(self) -> bool:
        quiet = self.request.quiet_until
        return quiet is not None and quiet > timezone.now()

    @property
    def happened_reads(self) -> str:
        return _("The call went through, with the reference that you enter.")

    @property
    def most(self) -> int:
        return int(self.request.value.get("max_extra", 0) or 0)

    @property
    def suggested(self) -> str:
        return self.typed.fields.get("grant", "") or str(min(10, self.most) or "")


def pane(request: ApprovalRequest, user: User, *, mode: str = "read", typed: Typed | None = None) -> Pane:
    seq = events.current_seq()
    request.refresh_from_db()
    return Pane(request, user, mode, typed or Typed(), queries.draft_of(user, request), seq)


def diff_lines(changes: Sequence[Change]) -> list[tuple[str, SafeString]]:
    return [(".".join(parts(c.pointer)) or "arguments", inline_diff(_flat(c.old), _flat(c.new))) for c in changes]


def _flat(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- runs -----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Moment:
    """One line of a timeline."""

    tone: str  # ok, wait, bad, unk, warn, todo, ""
    icon: str
    text: str
    note: str = ""
    at: datetime | None = None
    step: Step | None = None
    request: ApprovalRequest | None = None
    execution: ToolExecution | None = None


EXECUTION = {
    ExecutionStatus.PLANNED: ("wait", "clock"),
    ExecutionStatus.STARTED: ("wait", "send"),
    ExecutionStatus.SUCCEEDED: ("ok", "check"),
    ExecutionStatus.FAILED: ("bad", "x"),
    ExecutionStatus.UNKNOWN: ("unk", "circle-question-mark"),
}
RUN_TONES = {
    RunStatus.PENDING: "acc",
    RunStatus.RUNNING: "acc",
    RunStatus.INTERRUPTED: "warn",
    RunStatus.SUCCESS: "ok",
    RunStatus.ERROR: "bad",
    RunStatus.CANCELLED: "",
    RunStatus.PARKED: "bad",
}


@dataclass
class Timeline:
    """What a run did so far, and what it waits for."""

    run: Run
    steps: Sequence[Step]
    requests: Sequence[ApprovalRequest]
    executions: Sequence[ToolExecution] = ()

    @property
    def rev(self) -> str:
        """Changes whenever the timeline looks different."""
        last = self.steps[-1].position if self.steps else 0
        revs = ".".join(str(request.rev) for request in self.requests)
        states = ".".join(f"{row.status}{row.attempt}" for row in self.executions)
        return f"{last}-{self.run.status}-{revs}-{states}-{self.run.cancel_reason is not None}"

    @property
    def state(self) -> str:
        return phrases.run_state(self.run)

    @property
    def tone(self) -> str:
        return RUN_TONES[RunStatus(self.run.status)]

    @cached_property
    def moments(self) -> list[Moment]:
        answered = {step.tool_call_id for step in self.steps if step.kind == StepKind.TOOL}
        asked = [request for request in self.requests if request.tool_call_id not in answered]
        return [self._step(step) for step in self.steps] + [self._waiting(request) for request in asked]

    def _step(self, step: Step) -> Moment:
        match step.kind:
            case StepKind.MESSAGE:
                return Moment("", "message-square", _("Message"), at=step.created_at, step=step)
            case StepKind.MODEL:
                names = ", ".join(dict.fromkeys(str(call.get("name", "")) for call in step.tool_calls))
                note = _("proposes %(tools)s") % {"tools": names} if names else _("answers")
                return Moment("ok", "sparkles", _("Model call"), note, step.created_at, step)
        request = next((r for r in self.requests if r.tool_call_id == step.tool_call_id), None)
        row = next((e for e in self.executions if e.tool_call_id == step.tool_call_id), None)
        tone, icon = EXECUTION[ExecutionStatus(row.status)] if row else ("ok", "check")
        if step.is_error or (request is not None and request.status in phrases.NOTHING_RAN):
            tone, icon = "bad", "x"
        note = str(row.get_status_display()) if row else phrases.outcome(request) if request else ""
        return Moment(tone, icon, step.tool, note, step.created_at, step, request, row)

    def _waiting(self, request: ApprovalRequest) -> Moment:
        row = next((e for e in self.executions if e.tool_call_id == request.tool_call_id), None)
        at = request.created_at
        if request.is_pending:
            unknown = request.kind == RequestKind.UNKNOWN_OUTCOME
            tone, icon = ("unk", "circle-question-mark") if unknown else ("wait", "pause")
            note = _("outcome unknown") if unknown else _("waits for a person")
            return Moment(tone, icon, request.tool, note, at, request=request, execution=row)
        if row is not None:
            tone, icon = EXECUTION[ExecutionStatus(row.status)]
            return Moment(tone, icon, request.tool, str(row.get_status_display()), row.started_at, None, request, row)
        said = _("%(outcome)s, not sent yet") % {"outcome": phrases.outcome(request)}
        return Moment("wait", "pause", request.tool, said, request.closed_at, request=request)

    @property
    def tools(self) -> list[Moment]:
        """What the side of the decision shows: calls and answers, not what led to them."""
        return [moment for moment in self.moments if moment.step is None or _is_worth_a_line(moment.step)]

    @property
    def model_calls(self) -> int:
        return sum(step.kind == StepKind.MODEL for step in self.steps)

    @cached_property
    def limit(self) -> int:
        """Model calls after which the run asks; 0: it never does."""
        for entry in self.run.version.spec.get("middleware", ()):
            if entry.get("use") == "model_call_limit":
                return int(entry.get("run_limit") or 0)
        return 0

    @property
    def used(self) -> int:
        """Percent of the limit."""
        return min(100, round(100 * self.model_calls / self.limit)) if self.limit else 0

    @property
    def tokens(self) -> int:
        names = ("input_tokens", "output_tokens")
        return sum(int(step.usage.get(name, 0) or 0) for step in self.steps for name in names)


def _is_worth_a_line(step: Step) -> bool:
    return step.kind == StepKind.TOOL or (step.kind == StepKind.MODEL and not step.tool_calls)


def timeline(run: Run) -> Timeline:
    requests = run.requests.select_related("thread", "run").order_by("created_at")
    return Timeline(run, queries.steps_of(run), list(requests), list(run.executions.all()))


# --- support ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CaseRow:
    """One case in the list: its state in true words."""

    thread: Thread

    @property
    def sort(self) -> str:
        return f"{MOST * 100 - int(self.thread.updated_at.timestamp() * 1_000_000):018d}"

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
        match self.turn.status if self.turn else "":
            case RunStatus.ERROR:
                return Chip(_("Failed"), "bad", "circle-alert")
            case RunStatus.PARKED:
                return Chip(_("Parked"), "bad", "circle-parking")
            case RunStatus.CANCELLED:
                return Chip(_("Stopped"), "", "circle-stop")
            case RunStatus.SUCCESS:
                return Chip(_("Done"), "ok", "check")
        return Chip(_("Working"), "acc", "loader")

    @property
    def line(self) -> str:
        if self.waiting:
            first = self.waiting[0]
            if first.kind == RequestKind.QUESTION:
                return _("The agent asks: %(question)s") % {"question": _question(first)}
            title = phrases.title(first)
            return title if first.kind != RequestKind.TOOL_CALL else _("Waits for a decision: %(title)s") % {"title": title}
        turn = self.turn
        if turn is None:
            return ""
        return turn.error or turn.answer or phrases.run_state(turn)


def _question(request: ApprovalRequest) -> str:
    args = request.args
    return str(args.get("question", "")) if isinstance(args, dict) else ""


@dataclass(frozen=True)
class Card:
    """A request inside a conversation: what was asked, who decides, until when, and what happens otherwise."""

    request: ApprovalRequest
    user: User
    execution: ToolExecution | None

    @property
    def title(self) -> str:
        return phrases.title(self.request)

    @property
    def kind(self) -> str:
        return self.request.kind

    @property
    def question(self) -> str:
        return _question(self.request)

    @property
    def due(self) -> Due | None:
        return due_of(self.request)

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
        return TONES[RequestStatus(self.request.status)][0]

    @property
    def icon(self) -> str:
        return TONES[RequestStatus(self.request.status)][1]

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
    def edit(self) -> list[tuple[str, SafeString]]:
        request = self.request
        return diff_lines(edits.changes(request.args, request.final_args)) if request.final else []

    @property
    def rev(self) -> str:
        row = self.execution
        return f"{self.request.rev}-{row.status if row else ''}"


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
    def calls(self) -> int:
        return sum(step.kind == StepKind.TOOL for step in self.steps)

    @property
    def lasted(self) -> float | None:
        return (self.steps[-1].created_at - self.run.created_at).total_seconds() if self.steps else None

    @cached_property
    def cards(self) -> list[Card]:
        rows = {row.tool_call_id: row for row in self.run.executions.all()}
        return [Card(request, self.user, rows.get(request.tool_call_id)) for request in self.run.requests.all()]

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
    def order(self) -> dict[str, Any] | None:
        """The order as the agent read it last."""
        for turn in reversed(self.turns):
            for result in reversed(evidence.results(turn.steps)):
                if result.template == "order":
                    return result.data
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


# --- audit trail --------------------------------------------------------------------------------------------------------------
ENTRY_LOOKS: dict[str, tuple[str, str]] = {
    "request.approved": ("ok", "check"),
    "request.edited": ("ok", "pencil"),
    "request.rejected": ("bad", "x"),
    "request.responded": ("ok", "message-square-reply"),
    "request.granted": ("ok", "plus"),
    "request.stopped": ("bad", "octagon-x"),
    "request.settled": ("unk", "circle-question-mark"),
    "request.still_unknown": ("unk", "circle-question-mark"),
    "request.undone": ("", "undo-2"),
    "request.withdrawn": ("", "undo-2"),
    "request.expired": ("", "clock"),
    "request.asked": ("warn", "hourglass"),
    "execution.planned": ("", "clipboard-list"),
    "execution.not_sent": ("", "undo-2"),
    "execution.started": ("", "send"),
    "execution.succeeded": ("ok", "banknote"),
    "execution.failed": ("bad", "circle-x"),
    "execution.unknown": ("unk", "circle-question-mark"),
    "run.finished": ("ok", "flag"),
    "run.failed": ("bad", "circle-alert"),
    "run.parked": ("bad", "circle-parking"),
    "run.cancel_requested": ("warn", "circle-stop"),
    "gate.refused": ("bad", "shield-alert"),
    "access.refused": ("bad", "shield-alert"),
    "session.failed": ("bad", "key-round"),
    "session.signed_in": ("", "log-in"),
    "session.signed_out": ("", "log-out"),
    "token.created": ("warn", "key-round"),
    "token.revoked": ("warn", "key-round"),
    "settings.changed": ("", "sliders-horizontal"),
    "agent.published": ("warn", "bot"),
    "case.opened": ("acc", "plus"),
    "message.posted": ("", "message-square"),
}
ACTOR_ICONS = {"token": "key-round", "rule": "shield-check", "system": "cog", "agent": "bot"}


@dataclass(frozen=True)
class Entry:
    """One entry of the trail."""

    event: AuditEvent

    @property
    def what(self) -> str:
        return audit.label(self.event.action)

    @property
    def look(self) -> tuple[str, str]:
        return ENTRY_LOOKS.get(self.event.action, ("", "dot"))

    @property
    def actor_icon(self) -> str:
        return ACTOR_ICONS.get(self.event.actor_kind, "")

    @property
    def on(self) -> str:
        return self.event.object_name or str(self.event.data.get("path") or self.event.data.get("username") or "")

    @property
    def note(self) -> str:
        data = self.event.data
        for name in ("reason", "message", "note", "why", "error", "right", "reference"):
            if isinstance(data.get(name), str) and data[name]:
                return str(data[name])
        if data.get("changes"):
            return _("%(n)s fields edited") % {"n": len(data["changes"])}
        return ""

    @property
    def details(self) -> list[tuple[str, str]]:
        """Everything else that was stored, as it was stored."""
        rest = {name: value for name, value in self.event.data.items() if name not in ("changes", "from", "to")}
        return [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for name, value in rest.items()]

    @property
    def changes(self) -> list[tuple[str, SafeString]]:
        listed = self.event.data.get("changes")
        if isinstance(listed, list):
            return [(str(c.get("field", "")).lstrip("/"), inline_diff(_flat(c.get("old")), _flat(c.get("new")))) for c in listed]
        before, after = self.event.data.get("from"), self.event.data.get("to")
        if isinstance(before, dict) and isinstance(after, dict):
            return [(name, inline_diff(_flat(before.get(name)), _flat(after[name]))) for name in after]
        return []


def _log_line(event: AuditEvent) -> LogLine:
    entry = Entry(event)
    tone, icon = entry.look
    text = _("%(what)s · %(who)s") % {"what": entry.what, "who": event.actor_name}
    return LogLine(icon, text, event.at, entry.note, event.pk, tone)

"""One request as the person sees it who decides it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import uuid4

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from approvals import access, evidence, phrases, queries
from approvals.argform import fields, html
from approvals.argform.patch import Change
from approvals.argform.pointer import Json, parts
from approvals.argform.values import show
from approvals.contexts.run import Timeline, timeline
from approvals.contexts.shared import (
    AboutRequest,
    Difference,
    Effect,
    differences,
    effect_of,
    is_found,
    status_look,
)
from approvals.contexts.trail import LogLine, log_line
from approvals.enums import DecisionType, RequestKind
from approvals.models import ApprovalRequest, Decision, DecisionDraft, Step, ToolExecution, User
from approvals.services import edits, events, executions, lookups


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
    edited_by: str = ""  # the reviewer who put this value there


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


def _is_code(value: Json) -> bool:
    """A number of an order or a customer: set in the fixed-width face."""
    return (
        isinstance(value, str) and value.isascii() and " " not in value and any(ch.isdigit() for ch in value)
    )


@dataclass
class Pane(AboutRequest):
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
    def amount(self) -> str:
        return phrases.amount(self.request)

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
        editor = self.standing.actor_name if self.standing and node.pointer in self.edited else ""
        known = value not in (None, "") and not editor
        source = evidence.source_of(value, self.results, self.request.run.message) if known else None
        return Argument(name, phrases.label(parts(node.pointer)[-1] if node.pointer else name), value, text,
                        is_big=big, is_code=_is_code(value) or node.kind == "json", is_locked=node.locked, source=source,
                        edited_by=editor)  # fmt: skip

    @property
    def fields(self) -> SafeString:
        """The same as a form; what was typed wins over what was proposed."""
        typed = self.typed.fields or (
            self.draft.fields if self.draft and self.draft.answer == self.form else {}
        )
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
        typed = self.typed.fields or (
            self.draft.fields if self.draft and self.draft.answer == self.form else {}
        )
        return typed.get("preset", "")

    @property
    def presets(self) -> list[tuple[str, str]]:
        return [(name, text()) for name, text in PRESETS.items()]

    @property
    def changes(self) -> list[Difference]:
        return differences(self.typed.changes, self.request.args)

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
        return timeline(self.request.run, self.steps)

    @cached_property
    def log(self) -> list[LogLine]:
        return [log_line(entry) for entry in queries.log_of(self.request)]

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
        tone, icon = status_look(self.request)
        return tone, icon, phrases.outcome(self.request)

    @property
    def tone(self) -> str:
        """Of the box that says how it ended: what became of the call counts more than what was decided."""
        tone = self.effect.tone if self.effect and self.effect.tone in ("bad", "unk") else self.outcome[0]
        return {"ok": "good", "bad": "bad", "unk": "unk"}.get(tone, "acc")

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
    def _edits(self) -> list[Change]:
        return edits.changes(self.request.args, self.request.final_args) if self.request.final else []

    @property
    def edited(self) -> frozenset[str]:
        """Pointers of the arguments that the reviewer changed."""
        return frozenset(change.pointer for change in self._edits)

    @property
    def edit(self) -> list[Difference]:
        """What an approved edit changed."""
        return differences(self._edits, self.request.args)

    @cached_property
    def effect(self) -> Effect | None:
        """What became of the call, once something could."""
        settles = self.standing is not None and self.standing.type == DecisionType.DID_NOT_HAPPEN
        may_run = self.request.final is not None or settles or is_found(self.request)
        return effect_of(self.execution) if self.execution and may_run else None

    @cached_property
    def question(self) -> ApprovalRequest | None:
        """The open question whether this very call went through."""
        if self.execution is None or self.request.kind == RequestKind.UNKNOWN_OUTCOME:
            return None
        return queries.open_question(self.execution)

    @property
    def says(self) -> str:
        """Changes with what a person decides on or about: the guard looks at it."""
        state = f"{self.execution.status}{self.execution.attempt}" if self.execution else ""
        return f"{self.request.rev}-{self.request.status}-{self.is_over}-{state}"

    @cached_property
    def next(self) -> ApprovalRequest | None:
        return queries.next_waiting(self.user, self.request)

    # --- unknown outcomes and limits ---
    @property
    def too_early(self) -> bool:
        quiet = self.request.quiet_until
        return quiet is not None and quiet > timezone.now()

    @property
    def can_look(self) -> bool:
        """Whether the provider can be asked by key, and the answer would still be of use."""
        return self.request.is_pending and lookups.can_look(self.request.tool)

    @property
    def next_look(self) -> datetime | None:
        """When the provider is asked again by itself."""
        row = self.execution
        if row is None or not self.can_look:
            return None
        times = [row.looked_at + lookups.EVERY if row.looked_at else None, row.quiet_until]
        return max((time for time in times if time), default=None)

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

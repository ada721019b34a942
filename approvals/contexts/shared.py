"""Parts that several pages show: chips, deadlines, the look of a request, differences, what became of a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from approvals import money, phrases
from approvals.argform.diff import inline_diff
from approvals.argform.patch import Change
from approvals.argform.pointer import Json, parts
from approvals.enums import ExecutionStatus, RequestKind, RequestStatus
from approvals.models import ApprovalRequest, ToolExecution

SOON = timedelta(minutes=15)


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


class AboutRequest:
    """What every page says of a request, wherever it stands."""

    request: ApprovalRequest

    @cached_property
    def title(self) -> str:
        return phrases.title(self.request)

    @cached_property
    def look(self) -> tuple[str, str]:
        return look_of(self.request)

    @cached_property
    def due(self) -> Due | None:
        return due_of(self.request)


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


def status_look(request: ApprovalRequest) -> tuple[str, str]:
    """(class, icon) of the chip that says how it ended."""
    if is_found(request):
        return "ok", "search-check"
    return TONES[RequestStatus(request.status)]


def is_found(request: ApprovalRequest) -> bool:
    """Settled by a look-up: nobody had to answer."""
    unknown = request.kind == RequestKind.UNKNOWN_OUTCOME
    return unknown and request.status == RequestStatus.HANDLED_ELSEWHERE


def look_of(request: ApprovalRequest) -> tuple[str, str]:
    """(class, icon) of the square in front of a row."""
    if request.kind in KINDS:
        return KINDS[RequestKind(request.kind)]
    facts = phrases.facts_of(request.tool)
    moves_money = bool(phrases.amount(request))
    return ("money" if moves_money else "", facts.icon if facts else "braces")


@dataclass(frozen=True)
class Difference:
    """One argument before and after; amounts as money."""

    name: str
    label: str
    diff: SafeString


def differences(changes: Sequence[Change], args: Any) -> list[Difference]:
    """`args`: the whole call, which says the currency."""
    return [difference(change.pointer, change.old, change.new, _currency(args)) for change in changes]


def _currency(args: Any) -> str:
    found = args.get("currency") if isinstance(args, dict) else None
    return found if isinstance(found, str) else ""


def difference(pointer: str, old: Json, new: Json, currency: str = "") -> Difference:
    name = ".".join(parts(pointer)) or "arguments"
    if pointer == "/amount" and currency:
        spelled = [_amount(value, currency) for value in (old, new)]
    else:
        spelled = [flat(old), flat(new)]
    return Difference(name, phrases.label(parts(pointer)[-1] if pointer else name), inline_diff(*spelled))


def _amount(value: Json, currency: str) -> str:
    known = money.decimal_of(value) is not None
    return money.spoken(value, currency, phrases.reader()) if known else flat(value)


def flat(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Effect:
    """What became of a call that may run: a word for a chip, a sentence, and when."""

    tone: str
    icon: str
    word: str
    sentence: str
    at: datetime | None = None
    reference: str = ""
    note: str = ""


def effect_of(row: ToolExecution) -> Effect:
    """The ledger in words."""
    match row.status:
        case ExecutionStatus.SUCCEEDED:
            said = _("It went through.")
            return Effect("ok", "check", _("It went through"), said, row.finished_at, _reference(row))
        case ExecutionStatus.FAILED:
            said = _("The provider refused it: nothing happened.")
            return Effect("bad", "x", _("Refused by the provider"), said, row.finished_at, note=row.error)
        case ExecutionStatus.UNKNOWN:
            said = _("It was sent and no answer came back: whether it went through is not known yet.")
            return Effect("unk", "circle-question-mark", _("Outcome unknown"), said, row.started_at)
        case ExecutionStatus.STARTED:
            return Effect("acc", "send", _("Sent"), _("It was sent; the answer is awaited."), row.started_at)
    return Effect("acc", "send", _("About to be sent"), _("It is about to be sent."), row.planned_at)


def _reference(row: ToolExecution) -> str:
    result = row.result if isinstance(row.result, dict) else {}
    return str(result.get("refund_id") or result.get("reference") or result.get("id") or "")

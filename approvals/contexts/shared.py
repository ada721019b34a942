"""Parts that several pages show: chips, deadlines, the look of a request, differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone
from django.utils.safestring import SafeString

from approvals import phrases
from approvals.argform.diff import inline_diff
from approvals.argform.patch import Change
from approvals.argform.pointer import Json, parts
from approvals.enums import RequestKind, RequestStatus
from approvals.models import ApprovalRequest

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


def look_of(request: ApprovalRequest) -> tuple[str, str]:
    """(class, icon) of the square in front of a row."""
    if request.kind in KINDS:
        return KINDS[RequestKind(request.kind)]
    facts = phrases.facts_of(request.tool)
    moves_money = bool(phrases.amount(request))
    return ("money" if moves_money else "", facts.icon if facts else "braces")


def diff_lines(changes: Sequence[Change]) -> list[tuple[str, SafeString]]:
    return [
        (".".join(parts(c.pointer)) or "arguments", inline_diff(flat(c.old), flat(c.new))) for c in changes
    ]


def flat(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

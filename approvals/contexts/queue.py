"""The inbox: its tabs and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from approvals import access, money, phrases, queries
from approvals.contexts.shared import AboutRequest, Chip, is_found, status_look
from approvals.enums import RequestKind
from approvals.models import ApprovalRequest, User
from approvals.services import events

FAR = 9_999_999_999
MOST = 10**15


@dataclass(frozen=True)
class Row(AboutRequest):
    """One line of the inbox."""

    request: ApprovalRequest
    user: User
    in_own_case: bool = False

    @cached_property
    def order_id(self) -> str:
        args = self.request.args
        found = args.get("order_id") if isinstance(args, dict) else None
        return found if isinstance(found, str) else self.request.thread.order_id

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

    @cached_property
    def chips(self) -> list[Chip]:
        request = self.request
        if not request.is_pending:
            tone, icon = status_look(request)
            if is_found(request):
                return [Chip(phrases.outcome(request), tone, icon)]
            who = _("you") if request.closed_by == self.user.name else phrases.actor(request.closed_by)
            said = _("%(outcome)s by %(who)s") % {"outcome": phrases.outcome(request), "who": who}
            return [Chip(said, tone, icon)]
        return [chip for chip in (self._why, self._passed_on, self._warnings, self._own) if chip]

    @property
    def _passed_on(self) -> Chip | None:
        """It has been waiting for long: another group did not decide, or this one was reminded."""
        group = self.request.escalated_from
        if group:
            return Chip(_("From %(group)s") % {"group": phrases.queue_name(group)}, "warn", "forward")
        return Chip(_("Reminder"), "warn", "bell") if self.request.reminded_at else None

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
        request = self.request
        decides = request.queue in access.roles(self.user) and request.kind != RequestKind.QUESTION
        own = request.thread.requester_id == self.user.pk or self.in_own_case
        return Chip(_("Your own case"), "line") if decides and own else None


@dataclass(frozen=True)
class Inbox:
    queue: str
    rows: list[Row]
    counts: Mapping[str, int]
    seq: int
    current: Any = None
    everything: bool = False  # asked for the whole queue, not only what is due first

    @property
    def url(self) -> str:
        """Where the list is fetched again, without the place of the inbox."""
        return f"?queue={self.queue}" + ("&all=1" if self.everything else "")

    @property
    def is_cut(self) -> bool:
        listed = sum(row.request.is_pending for row in self.rows)
        return not self.everything and listed < (self.counts.get(self.queue) or 0)

    @property
    def tabs(self) -> list[tuple[str, str, int | None]]:
        return [
            ("mine", _("Mine"), self.counts["mine"]),
            ("team", _("Team"), self.counts["team"]),
            ("unknown", _("Unknown"), self.counts["unknown"]),
            ("done", _("Done"), None),
        ]


def inbox(
    user: User, queue: str, *, current: Any = None, ghosts: bool = False, everything: bool = False
) -> Inbox:
    seq = events.current_seq()  # before the rows, so that they are at least that new
    limit = queries.ALL if everything else queries.PAGE
    found = queries.inbox_rows(user, queue, ghosts=ghosts, limit=limit)
    own = queries.own_cases(user, found)
    rows = [Row(row, user, row.thread_id in own) for row in found]
    return Inbox(queue, rows, queries.counts(user), seq, current, everything)

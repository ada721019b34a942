"""The audit trail, and the log beside a decision: entries in words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals import phrases
from approvals.argform.diff import inline_diff
from approvals.contexts.shared import Difference, difference, flat
from approvals.enums import ActorKind
from approvals.models import AuditEvent, AuditSeal, Pulse
from approvals.services import audit, pulses


@dataclass(frozen=True)
class LogLine:
    icon: str
    text: str
    at: datetime
    note: str = ""
    entry: int | None = None
    tone: str = ""


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
    "request.reminded": ("warn", "bell"),
    "request.escalated": ("warn", "forward"),
    "request.superseded": ("", "replace"),
    "request.found": ("ok", "search-check"),
    "request.asked": ("warn", "hourglass"),
    "execution.planned": ("", "clipboard-list"),
    "execution.not_sent": ("", "undo-2"),
    "execution.started": ("", "send"),
    "execution.succeeded": ("ok", "banknote"),
    "execution.failed": ("bad", "circle-x"),
    "execution.found": ("ok", "search-check"),
    "execution.unknown": ("unk", "circle-question-mark"),
    "run.finished": ("ok", "flag"),
    "run.failed": ("bad", "circle-alert"),
    "run.parked": ("bad", "circle-parking"),
    "run.unparked": ("", "play"),
    "run.cancelled": ("", "circle-stop"),
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
    "agent.paused": ("warn", "circle-pause"),
    "agent.resumed": ("", "play"),
    "draft.begun": ("", "file-pen-line"),
    "draft.changed": ("", "pencil"),
    "draft.discarded": ("", "trash-2"),
    "audit.exported": ("warn", "download"),
    "trial.started": ("", "flask-conical"),
    "case.opened": ("acc", "plus"),
    "message.posted": ("", "message-square"),
}
ACTOR_ICONS = {"token": "key-round", "rule": "shield-check", "system": "cog", "agent": "bot"}


@dataclass(frozen=True)
class Entry:
    """One entry of the trail."""

    event: AuditEvent
    currency: str = ""  # of the call it is about

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
    def who(self) -> str:
        """Agents, rules and the system have names in the reader's language; people have their own."""
        name = self.event.actor_name
        match self.event.actor_kind:
            case ActorKind.AGENT:
                return phrases.agent(name)
            case ActorKind.USER | ActorKind.TOKEN:
                return name
        return phrases.actor(name)

    @property
    def on(self) -> str:
        return self.event.object_name or str(
            self.event.data.get("path") or self.event.data.get("username") or ""
        )

    @property
    def note(self) -> str:
        data = self.event.data
        for name in ("reason", "message", "note", "why", "error", "right", "reference"):
            if isinstance(data.get(name), str) and data[name]:
                return str(data[name])
        if data.get("changes"):
            n = len(data["changes"])
            return ngettext("%(n)s field edited", "%(n)s fields edited", n) % {"n": n}
        return ""

    @property
    def details(self) -> list[tuple[str, str]]:
        """Everything else that was stored, as it was stored."""
        rest = {
            name: value for name, value in self.event.data.items() if name not in ("changes", "from", "to")
        }
        return [
            (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            for name, value in rest.items()
        ]

    @property
    def changes(self) -> list[Difference]:
        listed = self.event.data.get("changes")
        if isinstance(listed, list):
            return [
                difference(str(c.get("field", "")), c.get("old"), c.get("new"), self.currency) for c in listed
            ]
        before, after = self.event.data.get("from"), self.event.data.get("to")
        if isinstance(before, dict) and isinstance(after, dict):
            return [
                Difference(name, name, inline_diff(flat(before.get(name)), flat(after[name])))
                for name in after
            ]
        return []

    @property
    def place(self) -> AuditSeal | None:
        """In the chain; None while its act has not committed."""
        return AuditSeal.objects.filter(event_id=self.event.pk).first()


@dataclass(frozen=True)
class SealStatus:
    """What the last check of the chain found."""

    at: datetime | None  # None: never checked
    entries: int = 0
    what: str = ""  # what is wrong; "": nothing
    entry: int | None = None

    @property
    def tone(self) -> str:
        return "bad" if self.what else "ok" if self.at else ""


def seal_status() -> SealStatus:
    row = Pulse.objects.filter(name=pulses.TRAIL).first()
    if row is None:
        return SealStatus(None)
    said = str(row.data.get("what", ""))
    return SealStatus(row.at, int(row.data.get("entries", 0)), _(said) if said else "", row.data.get("entry"))


def log_line(event: AuditEvent) -> LogLine:
    entry = Entry(event)
    tone, icon = entry.look
    text = _("%(what)s · %(who)s") % {"what": entry.what, "who": entry.who}
    return LogLine(icon, text, event.at, entry.note, event.pk, tone)

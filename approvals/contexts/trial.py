"""What a trial of an agent did, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from django.utils.translation import gettext as _

from approvals.contexts.notes import noted
from approvals.enums import TrialStatus
from approvals.models import Agent, Trial
from middleware.catalogue import ENTRIES

TONES = {
    TrialStatus.WAITING: "acc",
    TrialStatus.RUNNING: "acc",
    TrialStatus.DONE: "ok",
    TrialStatus.FAILED: "bad",
}
LONG = 160  # characters of a result that is folded


@dataclass(frozen=True)
class Step:
    tone: str
    icon: str
    title: str
    note: str = ""
    text: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        return len(self.text) > LONG


@dataclass
class TrialView:
    row: Trial

    @property
    def pk(self) -> Any:
        return self.row.pk

    @property
    def agent_id(self) -> str:
        return self.row.agent_id

    @property
    def is_open(self) -> bool:
        return self.row.status in (TrialStatus.WAITING, TrialStatus.RUNNING)

    @property
    def tone(self) -> str:
        return TONES[TrialStatus(self.row.status)]

    @property
    def error(self) -> str:
        return _(self.row.error)

    @cached_property
    def steps(self) -> list[Step]:
        return list(self._steps())

    def _steps(self) -> Iterator[Step]:
        for (kind, hook), group in groupby(self.row.trace, lambda one: (one.get("kind"), one.get("hook"))):
            entries = list(group)
            if kind == "hook":
                who = ", ".join(f"{one.get('n')} {_label(str(one.get('use', '')))}" for one in entries)
                yield Step("todo", "layers", str(hook), who)
            else:
                yield from (self._one(str(kind), one) for one in entries)

    def _one(self, kind: str, one: dict[str, Any]) -> Step:
        notes = [noted(note) for note in one.get("notes", ())]
        text = str(one.get("text", ""))
        match kind:
            case "model":
                calls = ", ".join(str(call.get("name", "")) for call in one.get("calls", ()))
                return Step(
                    "ok", "sparkles", _("Model call"), _("proposes %(tools)s") % {"tools": calls}, text, notes
                )
            case "answer":
                return Step("ok", "message-square-text", _("Answer"), "", text, notes)
            case "tool":
                failed = bool(one.get("is_error"))
                tool = str(one.get("tool", ""))
                return Step(
                    "bad" if failed else "ok", "x" if failed else "check", tool, _("emulated"), text, notes
                )
            case "asks":
                args = json.dumps(one.get("args", {}), ensure_ascii=False, indent=1)
                return Step("wait", "pause", _("A person would be asked"), str(one.get("tool", "")), args)
        return Step("", "flag", ENDS.get(str(one.get("why")), lambda: "")())


ENDS = {
    "answered": lambda: _("The run ends"),
    "asked": lambda: _("Here it would wait"),
    "limit": lambda: _("Stopped: a trial has at most 25 model calls and two minutes"),
    "questions": lambda: _("Stopped: a trial answers at most eight questions one after the other"),
}


def _label(use: str) -> str:
    entry = ENTRIES.get(use)
    return _(entry.label) if entry else use


def newest(agent: Agent) -> TrialView | None:
    row = agent.trials.order_by("-created_at").first()
    return TrialView(row) if row else None

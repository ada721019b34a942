"""One finding, and the stack it is found in. Light."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from middleware.entry import Entry
from middleware.lints.words import WORDS
from middleware.ports import ToolInfo

HITL = "human_in_the_loop"
GUARD = "write_guard"


@dataclass(frozen=True)
class Lint:
    """One finding about a stack. An `error` refuses it. `message` is an English message id, filled with `params`."""

    level: Literal["error", "warning"]
    code: str
    params: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""  # the sub-agent it is about

    @property
    def message(self) -> str:
        return WORDS[self.code]

    @property
    def text(self) -> str:
        said = self.message % self.params
        return f"{self.where}: {said}" if self.where else said


@dataclass(frozen=True)
class Stack:
    """A spec that could be read, with the facts about its tools."""

    items: Sequence[tuple[Entry, Any]]
    tools: Mapping[str, ToolInfo]
    model: str = ""  # of the agent; "" where it does not matter
    nested: bool = False  # of a sub-agent

    def index(self, name: str) -> int | None:
        return next((n for n, (entry, _) in enumerate(self.items) if entry.name == name), None)

    def options(self, name: str) -> Any | None:
        return next((options for entry, options in self.items if entry.name == name), None)

    def named(self, *names: str) -> Iterator[tuple[int, Entry, Any]]:
        """(place, entry, options) of those, in order."""
        return ((n, entry, options) for n, (entry, options) in enumerate(self.items) if entry.name in names)

    def touched(self, n: int) -> frozenset[str]:
        """Tools that the n-th middleware may answer, repeat or change."""
        entry, options = self.items[n]
        touches = entry.touches(options)
        if touches == "all":
            return frozenset(self.tools)
        return frozenset() if touches == "none" else touches

    def effects(self, *effects: str) -> frozenset[str]:
        """Names of the tools that have one of these effects."""
        return frozenset(name for name, tool in self.tools.items() if tool.effect in effects)


type Rule = Callable[[Stack], Iterator[Lint]]


def error(code: str, **params: Any) -> Lint:
    return Lint("error", code, params)


def warning(code: str, **params: Any) -> Lint:
    return Lint("warning", code, params)

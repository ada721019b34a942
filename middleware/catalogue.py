"""Every middleware an agent's spec may name: options, hooks and tools as data, the class only when it is built. Light.

A new entry is one more `Entry` in `ENTRIES`, an options model in `options.py` and a factory in `factories.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from pydantic import ValidationError

from middleware import options as o
from middleware.ports import Approvals, ToolInfo

type Middleware = Any
"""LangChain's `AgentMiddleware`. Named in words only: an import, even for types, would tie the web process to it."""

type Hook = Literal[
    "before_agent", "before_model", "wrap_model_call", "after_model", "wrap_tool_call", "after_agent"
]


class BadEntry(ValueError):
    """A middleware of a spec cannot be used as written; the text says why."""


@dataclass(frozen=True)
class AddedTool:
    """A tool that a middleware brings along."""

    name: str
    effect: Literal["read", "write", "ask"]  # read: it changes nothing outside the thread's own state


@dataclass(frozen=True)
class Surroundings:
    """What a factory may need besides its options."""

    tools: Mapping[str, ToolInfo]  # of the agent and of its middleware
    approvals: Approvals


@dataclass(frozen=True)
class Entry:
    """One catalogue entry.

    `touches` tells which tools its `wrap_tool_call` may answer, repeat or change: the names that an option holds, "all",
    or "none" when it has no such hook. The order rules of `stack` rest on it.
    """

    name: str
    summary: str
    options: type[o.Options]
    hooks: tuple[Hook, ...]
    factory: str  # "module:function", called as function(options, surroundings)
    title: Callable[[Any], str]  # LangChain's name of the instance; must be unique in a stack
    touches: Callable[[Any], frozenset[str] | Literal["all", "none"]] = lambda _: "none"
    adds_tools: Callable[[Any], Sequence[AddedTool]] = lambda _: ()
    package: str | None = None  # import name of an optional package
    install: str | None = None  # what to give pip, if it differs from `package`
    key: str | None = None  # environment variable without which it does not work
    notes: tuple[str, ...] = field(default=())

    def unavailable(self) -> str | None:
        """Why it cannot be used here, None if it can."""
        if self.package and find_spec(self.package.partition(".")[0]) is None:
            return f"needs the package {self.install or self.package}: pip install {self.install or self.package}"
        if self.key and not os.environ.get(self.key):
            return f"needs the environment variable {self.key}"
        return None

    def build(self, options: o.Options, around: Surroundings) -> Middleware:
        """Imports LangChain."""
        module, _, function = self.factory.partition(":")
        return getattr(import_module(module), function)(options, around)


def _named(title: str) -> Callable[[o.Options], str]:
    return lambda options: f"{title}[{options.id}]" if options.id else title


def _tool_limit_title(options: o.ToolCallLimitOptions) -> str:
    if options.on_limit == "ask":
        return f"HumanGrantToolLimit[{options.tool_name}]"
    return f"ToolCallLimitMiddleware[{options.tool_name}]" if options.tool_name else "ToolCallLimitMiddleware"


def _model_limit_title(options: o.ModelCallLimitOptions) -> str:
    return "HumanGrantModelLimit" if options.on_limit == "ask" else "ModelCallLimitMiddleware"


ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name="human_in_the_loop",
            summary="A person approves, edits, rejects or answers calls of the listed tools.",
            options=o.HumanInTheLoopOptions,
            hooks=("after_model", "wrap_tool_call"),
            factory="middleware.factories:human_in_the_loop",
            title=_named("HumanInTheLoop"),
            touches=lambda options: frozenset(options.interrupt_on),
        ),
        Entry(
            name="model_call_limit",
            summary="Limits model calls of a run or thread; asks a person for more, or ends.",
            options=o.ModelCallLimitOptions,
            hooks=("before_agent", "before_model", "after_model"),
            factory="middleware.factories:model_call_limit",
            title=_model_limit_title,
        ),
        Entry(
            name="tool_call_limit",
            summary="Limits calls of one tool or of all; asks a person for more, or ends.",
            options=o.ToolCallLimitOptions,
            hooks=("before_agent", "after_model"),
            factory="middleware.factories:tool_call_limit",
            title=_tool_limit_title,
        ),
        Entry(
            name="pii",
            summary="Finds personal data in messages and blocks, redacts, masks or hashes it.",
            options=o.PiiOptions,
            hooks=("before_model", "after_model"),
            factory="middleware.factories:pii",
            title=lambda options: f"PIIMiddleware[{options.pii_type}]",
            notes=(
                "Arguments of tool calls and older checkpoints keep the original text.",
                "Streamed text is not redacted: with apply_to_output it is shown only when the message is complete.",
            ),
        ),
        Entry(
            name="tool_error",
            summary="Tells the model that a read failed, instead of failing the run.",
            options=o.ToolErrorOptions,
            hooks=("wrap_tool_call",),
            factory="middleware.factories:tool_error",
            title=_named("ReadErrors"),
            touches=lambda options: frozenset(options.tools),
        ),
        Entry(
            name="write_guard",
            summary="Refuses tools that are not known and writes that do not carry the approval gate.",
            options=o.WriteGuardOptions,
            hooks=("wrap_tool_call",),
            factory="middleware.factories:write_guard",
            title=_named("WriteGuard"),
            touches=lambda _: "all",
        ),
        Entry(
            name="tool_retry",
            summary="Repeats reads that failed, with growing pauses.",
            options=o.ToolRetryOptions,
            hooks=("wrap_tool_call",),
            factory="middleware.factories:tool_retry",
            title=_named("ToolRetryMiddleware"),
            touches=lambda options: frozenset(options.tools),
        ),
        Entry(
            name="model_retry",
            summary="Repeats model calls that failed, with growing pauses.",
            options=o.ModelRetryOptions,
            hooks=("wrap_model_call",),
            factory="middleware.factories:model_retry",
            title=_named("ModelRetryMiddleware"),
        ),
    )
}


def parse(spec_entry: Mapping[str, Any]) -> tuple[Entry, Any]:
    """One element of `AgentSpec.middleware` -> (entry, its options). Raises `BadEntry` with every reason."""
    given = dict(spec_entry)
    name = given.pop("use", None)
    entry = ENTRIES.get(name) if isinstance(name, str) else None
    if entry is None:
        raise BadEntry(f"there is no middleware {name!r}; known are {', '.join(sorted(ENTRIES))}")
    try:
        return entry, entry.options.model_validate(given)
    except ValidationError as error:
        reasons = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'options'}: {e['msg']}" for e in error.errors()
        )
        raise BadEntry(f"{name}: {reasons}") from error


def describe() -> list[dict[str, Any]]:
    """The catalogue as JSON: `name summary hooks options_schema adds_tools notes available reason`."""
    return [
        {
            "name": entry.name,
            "summary": entry.summary,
            "hooks": list(entry.hooks),
            "options_schema": entry.options.model_json_schema(),
            "notes": list(entry.notes),
            "available": entry.unavailable() is None,
            "reason": entry.unavailable(),
        }
        for entry in ENTRIES.values()
    ]

"""What the catalogue says about one middleware. Light."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from pydantic import BaseModel

from middleware.options.base import Options
from middleware.ports import Approvals, ToolInfo

type Middleware = Any
"""LangChain's `AgentMiddleware`. Named in words only: an import, even for types, would tie the web process to it."""

type Hook = Literal[
    "before_agent", "before_model", "wrap_model_call", "after_model", "wrap_tool_call", "after_agent"
]

HOOKS: tuple[Hook, ...] = (
    "before_agent", "before_model", "wrap_model_call", "after_model", "wrap_tool_call", "after_agent",
)  # fmt: skip

OWN = "middleware.own.building"

type Family = Literal["people", "models", "tools", "context", "privacy", "files", "providers", "own"]


class BadEntry(ValueError):
    """A middleware of a spec cannot be used as written; the text says why."""


class NotProvided(RuntimeError):
    """A middleware needs something that this place of building does not give."""


@dataclass(frozen=True)
class AddedTool:
    """A tool that a middleware brings along."""

    name: str
    effect: Literal["read", "write", "ask"]  # read: it changes nothing outside the thread's own state
    title: str = ""  # for reviewers, filled from the arguments; for writes
    args: type[BaseModel] | None = None  # for writes: what a reviewer sees and may edit
    consequence: str = ""  # what approval does, in one sentence
    timeout: float = 60.0
    icon: str = "braces"


def _no_model(ref: Any) -> Any:
    raise NotProvided(f"the model {ref!r} cannot be built here")


def _no_tools(names: Iterable[str]) -> Sequence[Any]:
    raise NotProvided(f"the tools {', '.join(names)} cannot be built here")


def _no_seal(tool: Any) -> Any:
    raise NotProvided(f"{tool.name} changes the world and needs the approval gate, which is not here")


@dataclass(frozen=True)
class Surroundings:
    """What a factory may need besides its options. Whatever is left out is refused when it is asked for."""

    tools: Mapping[str, ToolInfo]  # of the agent, of its sub-agents and of its middleware
    approvals: Approvals
    model: Callable[[Any], Any] = (
        _no_model  # "provider:name" or a `ModelRef` -> chat model; None: the agent's own
    )
    make_tools: Callable[[Iterable[str]], Sequence[Any]] = _no_tools  # tools by name, writes sealed
    seal: Callable[[Any], Any] = _no_seal  # puts the approval gate and the ledger into a tool
    store: Any = None  # long-term memory
    spec_middleware: Sequence[Mapping[str, Any]] = ()
    own_tools: tuple[str, ...] = ()  # the agent's, by name
    innermost: Callable[[], Sequence[Any]] = tuple  # what every model call ends with
    thread_id: str = ""
    slug: str = ""
    folder: str = ""  # of this thread, on the worker's machine
    context: Mapping[str, Any] = field(default_factory=dict)  # what staff entered about the case
    path: tuple[str, ...] = ()  # sub-agents that lie above
    watch: Callable[[Any, Any], Any] | None = (
        None  # (instance, entry) -> the same, observed; None: nobody looks
    )


@dataclass(frozen=True)
class Entry:
    """One catalogue entry.

    `touches` tells which tools its `wrap_tool_call` may answer, repeat or change: the names that an option holds, "all",
    or "none" when it has no such hook. The order rules of `lints` rest on it. `label`, `summary`, `help` and `notes` are
    message ids: pages translate them.
    """

    name: str
    label: str
    family: Family
    summary: str  # one sentence
    help: str  # one paragraph: what it does, when one wants it, where it stands
    options: type[Options]
    hooks: tuple[Hook, ...]
    factory: str  # "module:function", called as function(options, surroundings)
    title: Callable[[Any], str]  # LangChain's name of the instance; must be unique in a stack
    touches: Callable[[Any], frozenset[str] | Literal["all", "none"]] = lambda _: "none"
    names_tools: Callable[[Any], Iterable[str]] = lambda _: ()  # other tools its options name
    adds_tools: Callable[[Any], Sequence[AddedTool]] = lambda _: ()
    delegates: Callable[[Any], Iterable[str]] = lambda _: ()  # tools it gives to sub-agents
    package: str | None = None  # import name of an optional package
    install: str | None = None  # what to give pip, if it differs from `package`
    missing: Callable[[Any], str | None] = lambda _: None  # a key or a program that these options need here
    models: Callable[[Any], Iterable[Any]] = lambda _: ()  # other models its options name
    notes: tuple[str, ...] = field(default=())  # traps
    jumps: tuple[str, ...] = ()  # hooks that jump without saying where they can

    def unavailable(self) -> str | None:
        """Why it can be used nowhere in this installation, None if it can."""
        if self.package and find_spec(self.package.partition(".")[0]) is None:
            name = self.install or self.package
            return f"needs the package {name}: pip install {name}"
        return None

    def build(self, options: Options, around: Surroundings) -> Middleware:
        """Imports LangChain."""
        module, _, function = self.factory.partition(":")
        home = import_module(module)
        if module == OWN:  # behind the colon stands the file
            return home.build(function, options, around)
        return getattr(home, function)(options, around)


def named(title: str) -> Callable[[Any], str]:
    """LangChain's name of an instance, with its id."""
    return lambda options: f"{title}[{options.id}]" if options.id else title


def key_of(env: str) -> str | None:
    """The environment variable, if it is empty here."""
    return None if os.environ.get(env) else env

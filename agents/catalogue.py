"""Agents and tools as data: light enough for the web process (standard library and pydantic only)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.canonical import canonical
from middleware.catalogue import brought, parse
from middleware.entry import AddedTool, BadEntry

type Args = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One fact the server verified about a proposed call. `text` is an English message id with `%(name)s` places."""

    level: Literal["pass", "warn", "fail"]
    text: str
    params: Mapping[str, str] = field(default_factory=dict)
    field: str = ""  # JSON pointer of the argument it is about: "/amount"


type CheckCall = Callable[[Args, Mapping[str, Any]], list[Check]]
"""(proposed or edited arguments, the run's context) -> findings. A `fail` refuses an edit and is shown in red.

Raises `CheckUnavailable` if the system of record cannot be asked.
"""


type LookupByKey = Callable[[str], Mapping[str, Any] | None]
"""idempotency key -> what the provider did under it, None if it knows nothing. Raises `CheckUnavailable`."""


class CheckUnavailable(Exception):
    """The system of record did not answer; the text says which and what to do."""


@dataclass(frozen=True)
class ToolFacts:
    """What the application must know about a tool without importing it."""

    name: str
    title: str  # for reviewers, English message id: "Refund {currency} {amount}"; filled from the arguments
    description: str  # for the model
    effect: Literal["read", "write", "ask"]  # ask: a person answers in place of the tool
    args: type[BaseModel]
    consequence: str = ""  # English message id: what approval does, in one sentence
    reversible: bool = False
    idempotent: bool = False  # the provider honours an idempotency key
    lookup: LookupByKey | None = None  # asks the provider what it knows of a key
    timeout: float = 10.0  # hard limit of one call in seconds, enforced by the client
    margin: float = 5.0
    locked: tuple[str, ...] = ()  # JSON pointers a reviewer may not edit
    check: CheckCall | None = None
    icon: str = "braces"  # Lucide name
    evidence: str = ""  # template name under templates/evidence/, shown for results of this tool

    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, closed: unknown keys are refused."""
        return {**self.args.model_json_schema(), "additionalProperties": False}


class AgentSpec(BaseModel):
    """An agent as data. Immutable once published; JSON in `AgentVersion.spec`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    title: str
    description: str = ""
    model: str  # an `init_chat_model` string ("openai:gpt-5.4") or "demo:<name>"
    base_url: str | None = None
    api_key_env: str | None = None  # name of the environment variable that holds the key, never the key
    model_options: dict[str, Any] = Field(default_factory=dict)
    system_prompt: str
    tools: tuple[str, ...]
    middleware: tuple[dict[str, Any], ...] = ()  # [{"use": catalogue name, **options}], outermost first


def packages() -> tuple[str, ...]:
    """The packages of COUNTERSEAL_AGENTS, each a house of tools and, if it ships one, of an agent.

    `<package>.facts`: `TOOLS: tuple[ToolFacts, ...]`; `<package>.tools`: `connect(url)`, `TOOL_BUILDERS` and `SENDERS`
    (see `agents.refunds.tools`); `<package>.spec`, optional: `spec() -> AgentSpec`.
    """
    named = os.environ.get("COUNTERSEAL_AGENTS") or "agents.refunds"
    return tuple(name.strip() for name in named.split(",") if name.strip())


def all_tools() -> dict[str, ToolFacts]:
    """Every tool by name. Two tools of one name are refused."""
    found: dict[str, ToolFacts] = {}
    for package in packages():
        for facts in import_module(f"{package}.facts").TOOLS:
            if facts.name in found:
                raise ValueError(f"two tools are called {facts.name!r}: rename one of them")
            found[facts.name] = facts
    return found


def known_tools() -> dict[str, ToolFacts]:
    """Those of the houses, and the writes that a middleware can bring."""
    return {**{name: facts_of(tool) for name, tool in brought().items()}, **all_tools()}


def facts_of(tool: AddedTool, description: str = "") -> ToolFacts:
    """A tool that a middleware brings, in the words of the application."""
    return ToolFacts(
        name=tool.name,
        title=tool.title or tool.name,
        description=description,
        effect=tool.effect,
        args=tool.args or BaseModel,
        consequence=tool.consequence,
        timeout=tool.timeout,
        icon=tool.icon,
    )


def tools_of(spec: AgentSpec) -> tuple[str, ...]:
    """Names of the agent's own tools, and behind them those that only its sub-agents have."""
    return tuple(dict.fromkeys((*spec.tools, *_delegated(spec))))


def _delegated(spec: AgentSpec) -> list[str]:
    try:
        return [name for entry, options in map(parse, spec.middleware) for name in entry.delegates(options)]
    except BadEntry:
        return []  # whoever publishes or builds it is told


def shipped_specs() -> list[AgentSpec]:
    return [import_module(f"{package}.spec").spec() for package in packages() if find_spec(f"{package}.spec")]


def fingerprint(spec: AgentSpec) -> str:
    """Changes whenever a run could behave differently: the spec, or the schema or effect of one of its tools."""
    tools = tool_marks(spec)
    bound = {
        "spec": spec.model_dump(mode="json"),
        "tools": tools,
        "missing": [name for name in tools_of(spec) if name not in tools],
    }
    return sha256(canonical(bound)).hexdigest()


def tool_marks(spec: AgentSpec) -> dict[str, list[Any]]:
    """What a version depends on in the code of its tools: effect, idempotence and schema of the arguments."""
    tools = all_tools()
    known = {name: tools[name] for name in tools_of(spec) if name in tools}
    return {name: [facts.effect, facts.idempotent, facts.schema()] for name, facts in known.items()}

"""What a sub-agent takes over from its agent: the gate, the guard, and nothing that could open them. Light."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from middleware.options.files import SubAgentSpec

DEEPEST = 3  # sub-agents that may lie above each other
HITL, GUARD, ROLES, REPEATS = "human_in_the_loop", "write_guard", "role_tools", "repeat_guard"


def inherited(
    one: SubAgentSpec, above: Sequence[Mapping[str, Any]], tools: Collection[str]
) -> tuple[dict[str, Any], ...]:
    """The stack of a sub-agent: its agent's gate for the tools it has, its own middleware, the guard."""
    own = [dict(entry) for entry in one.middleware]
    outside = [entry for entry in own if not _inside(entry)]
    inside = [entry for entry in own if _inside(entry)]
    gates = [found for entry in above if (found := _for_tools(entry, tools)) is not None]
    return (*outside, *gates, *inside, {"use": GUARD})


def within(one: SubAgentSpec, own: Collection[str]) -> tuple[str, ...]:
    """Names of the tools that a sub-agent has, and behind them those that only the sub-agents below it have.

    `own`: those of its agent, which it has unless it lists others.
    """
    names = tuple(own if one.tools is None else one.tools)
    below = [deeper for helper in nested(one.middleware) for deeper in within(helper, names)]
    return tuple(dict.fromkeys((*names, *below)))


def nested(middleware: Sequence[Mapping[str, Any]]) -> list[SubAgentSpec]:
    """The sub-agents that a stack names. Raises what pydantic raises for a spec that cannot be read."""
    listed = [
        one for entry in middleware if entry.get("use") == "subagents" for one in entry.get("subagents", ())
    ]
    return [one if isinstance(one, SubAgentSpec) else SubAgentSpec.model_validate(one) for one in listed]


def depth(middleware: Sequence[Mapping[str, Any]]) -> int:
    """How many levels of sub-agents a stack has; 0: none."""
    if not any(entry.get("use") == "subagents" for entry in middleware):
        return 0
    return 1 + max((depth(one.middleware) for one in nested(middleware)), default=0)


def _inside(entry: Mapping[str, Any]) -> bool:
    """What catches or repeats calls stands inside the gate."""
    return entry.get("use") in ("tool_error", "tool_retry", "auto_mode")


def _for_tools(entry: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any] | None:
    if entry.get("use") not in (HITL, ROLES):
        return None
    key = "interrupt_on" if entry["use"] == HITL else "allow"
    kept = {name: gate for name, gate in entry[key].items() if name in tools}
    return {**entry, key: kept} if kept else None

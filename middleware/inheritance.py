"""What a sub-agent takes over from its agent: the gate, the guard, and nothing that could open them. Light."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from middleware.options.files import SubAgentSpec

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


def _inside(entry: Mapping[str, Any]) -> bool:
    """What catches or repeats calls stands inside the gate."""
    return entry.get("use") in ("tool_error", "tool_retry", "auto_mode")


def _for_tools(entry: Mapping[str, Any], tools: Collection[str]) -> dict[str, Any] | None:
    if entry.get("use") not in (HITL, ROLES):
        return None
    key = "interrupt_on" if entry["use"] == HITL else "allow"
    kept = {name: gate for name, gate in entry[key].items() if name in tools}
    return {**entry, key: kept} if kept else None

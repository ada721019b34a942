"""Sub-agents inherit the gate and cannot bring their own. Light."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from middleware.inheritance import DEEPEST, depth, inherited, within
from middleware.lints.finding import GUARD, HITL, Lint, Stack, error

NOT_BELOW = frozenset({HITL, GUARD, "role_tools"})
Check = Callable[[Sequence[Any], dict[str, Any], Sequence[str]], list[Lint]]


def subagents(stack: Stack, above: Sequence[Any], own: Sequence[str], check: Check) -> Iterator[Lint]:
    """`above`: the agent's spec; `own`: its tools; `check`: lints a nested stack, of an agent with
    tools of these names."""
    for _, entry, options in stack.named("subagents"):
        for one in options.subagents:
            yield from _helper(entry.name, one, stack, above, own, check)


def _helper(
    name: str, one: Any, stack: Stack, above: Sequence[Any], own: Sequence[str], check: Check
) -> Iterator[Lint]:
    where = f"{name} ({one.name})"

    def refused(code: str, **params: Any) -> Lint:
        return replace(error(code, **params), where=where)

    for used in one.middleware:
        if used.get("use") in NOT_BELOW:
            yield refused("subagent-gate", use=used["use"])
            return
    if depth(one.middleware) >= DEEPEST:
        yield refused("nested-subagents", most=DEEPEST)
        return
    names = tuple(own if one.tools is None else one.tools)
    tools = {tool: stack.tools[tool] for tool in within(one, names) if tool in stack.tools}
    if one.graph:
        if one.tools or one.middleware or one.model:
            yield refused("graph-with-options")
        return
    for found in check(inherited(one, above, list(tools)), tools, names):
        if found.code != "no-limit":
            yield replace(found, where=where)

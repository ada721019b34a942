"""Sub-agents inherit the gate and cannot bring their own. Light."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from middleware.inheritance import OWN_GATE, inherited
from middleware.lints.finding import GUARD, HITL, Lint, Stack, error

NOT_BELOW = frozenset({HITL, GUARD, "role_tools"})
Check = Callable[[Sequence[Any], dict[str, Any]], list[Lint]]


def subagents(stack: Stack, above: Sequence[Any], own: Sequence[str], check: Check) -> Iterator[Lint]:
    """`above`: the agent's spec; `own`: its tools; `check`: lints a nested stack."""
    for _, entry, options in stack.named("subagents"):
        for one in options.subagents:
            yield from _helper(entry.name, one, stack, above, own, check)


def _helper(
    name: str, one: Any, stack: Stack, above: Sequence[Any], own: Sequence[str], check: Check
) -> Iterator[Lint]:
    where = f"{name} ({one.name})"
    for used in one.middleware:
        if used.get("use") in NOT_BELOW:
            yield error("subagent-gate", f"{where} lists {used['use']}: {OWN_GATE}")
            return
        if used.get("use") == "subagents":
            yield error("nested-subagents", f"{where} has sub-agents of its own: one level is enough")
            return
    names = own if one.tools is None else one.tools
    tools = {tool: stack.tools[tool] for tool in names if tool in stack.tools}
    if one.graph:
        if one.tools or one.middleware or one.model:
            yield error(
                "graph-with-options", f"{where} is a compiled graph: it brings its own tools and model"
            )
        return
    for found in check(inherited(one, above, list(tools)), tools):
        if found.code != "no-limit":
            yield Lint(found.level, found.code, f"{where}: {found.text}")

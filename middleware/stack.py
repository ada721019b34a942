"""From the middleware of a spec to an ordered list, refused with reasons when the order would open a gate. Light.

The first of the list is the outermost: its `wrap_*` hooks see a call first and its result last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from middleware.catalogue import BadEntry, Entry, Middleware, Surroundings, parse
from middleware.entry import AddedTool
from middleware.lints import RULES, Lint, Stack
from middleware.lints.delegation import subagents
from middleware.lints.gates import clashes
from middleware.policy import SpecMiddleware, judges
from middleware.ports import Approvals, ToolInfo

__all__ = [
    "Lint", "StackError", "added_tools", "all_facts", "build_stack", "build_stack_around", "delegated", "judges", "lint",
]  # fmt: skip


class StackError(ValueError):
    """The stack must not be built. `findings` are its errors."""

    def __init__(self, findings: list[Lint]) -> None:
        super().__init__("; ".join(finding.text for finding in findings))
        self.findings = findings


def added_tools(spec_middleware: SpecMiddleware) -> dict[str, AddedTool]:
    """Tools that the middleware brings. Raises `BadEntry`."""
    parsed = map(parse, spec_middleware)
    return {tool.name: tool for entry, options in parsed for tool in entry.adds_tools(options)}


def delegated(spec_middleware: SpecMiddleware) -> list[str]:
    """Tools that sub-agents have, by name. Raises `BadEntry`."""
    return [name for entry, options in map(parse, spec_middleware) for name in entry.delegates(options)]


def all_facts(spec_middleware: SpecMiddleware, tools: Mapping[str, ToolInfo]) -> dict[str, ToolInfo]:
    """The agent's tools and those its middleware brings. Raises `BadEntry`."""
    return {**added_tools(spec_middleware), **tools}


def lint(
    spec_middleware: SpecMiddleware,
    tools: Mapping[str, ToolInfo],
    *,
    model: str = "",
    own: Sequence[str] | None = None,
) -> list[Lint]:
    """Everything that is wrong or doubtful, errors first.

    Args:
        spec_middleware: The list of a spec.
        tools: Facts of the agent's own tools by name, and of those that only its sub-agents have.
        model: The agent's model, as the spec names it.
        own: Names of the agent's own tools; None: all of `tools`.
    """
    spec, items, found = list(spec_middleware), [], []
    for spec_entry in spec:
        try:
            items.append(parse(spec_entry))
        except BadEntry as error:
            found.append(Lint("error", "unreadable", {"why": str(error)}))
    if found:
        return found  # the order of a list with holes says nothing
    stack = Stack(items, all_facts(spec, tools), model)
    for check in RULES:
        found += check(stack)
    found += clashes(stack, frozenset(tools))
    found += subagents(stack, spec, list(tools) if own is None else own, _nested)
    return sorted(found, key=lambda finding: finding.level)


def _nested(spec_middleware: Sequence[Any], tools: Mapping[str, ToolInfo], own: Sequence[str]) -> list[Lint]:
    return lint(spec_middleware, tools, own=own)


def build_stack(
    spec_middleware: SpecMiddleware, *, tools: Mapping[str, ToolInfo], approvals: Approvals
) -> list[Middleware]:
    """The middleware in order, outermost first. Imports LangChain. Raises `StackError`."""
    return build_stack_around(Surroundings(tools, approvals, spec_middleware=tuple(spec_middleware)))


def build_stack_around(around: Surroundings) -> list[Middleware]:
    """The same with all that a worker can give. `around.tools`: without those that the middleware brings."""
    spec = around.spec_middleware
    own = around.own_tools or None
    errors = [found for found in lint(spec, around.tools, own=own) if found.level == "error"]
    if errors:
        raise StackError(errors)
    whole = replace(around, tools=all_facts(spec, around.tools))
    return [_built(entry, options, whole) for entry, options in map(parse, spec)]


def _built(entry: Entry, options: Any, around: Surroundings) -> Middleware:
    """Writes that it brings carry the gate and the ledger like any other."""
    made = entry.build(options, around)
    writes = {tool.name for tool in entry.adds_tools(options) if tool.effect == "write"}
    if writes:
        made.tools = [around.seal(tool) if tool.name in writes else tool for tool in made.tools]
    return around.watch(made, entry) if around.watch else made

"""Stacks and tools that the tests of the catalogue share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool

from middleware.entry import Surroundings
from tests.fakes import MemoryApprovals
from tests.models import ScriptedModel


@dataclass(frozen=True)
class Tool:
    name: str
    effect: str


OVER = {"use": "amount_over", "arg": "amount", "value": 1000}
TOOLS = {tool.name: tool for tool in (Tool("pay", "write"), Tool("see", "read"), Tool("ask", "ask"))}
LIMIT = {"use": "model_call_limit", "run_limit": 9, "on_limit": "ask"}
HITL = {
    "use": "human_in_the_loop",
    "interrupt_on": {"pay": {"when": OVER}, "ask": {"allowed_decisions": ["respond"]}},
}
ERROR = {"use": "tool_error", "tools": ["see"]}
GUARD = {"use": "write_guard"}
RETRY = {"use": "tool_retry", "tools": ["see"]}
GOOD = [LIMIT, HITL, ERROR, GUARD, RETRY]


def gate(**changes: Any) -> dict[str, Any]:
    return {"use": "human_in_the_loop", "interrupt_on": HITL["interrupt_on"] | changes}


def with_inside(*entries: dict[str, Any], hitl: dict[str, Any] = HITL) -> list[dict[str, Any]]:
    """The good stack with these between gate and guard."""
    return [LIMIT, hitl, ERROR, *entries, GUARD, RETRY]


def around(tmp: Path | None = None, **more: Any) -> Surroundings:
    """What a worker gives, in memory."""
    given: dict[str, Any] = {
        "model": lambda ref: ScriptedModel(),
        "make_tools": lambda names: [made(name) for name in names],
        "seal": sealed,
        "own_tools": tuple(TOOLS),
        "spec_middleware": GOOD,
        "thread_id": "t-1",
        "slug": "agent",
        "folder": str(tmp or ""),
        "context": {"requester": "sam", "roles": ["support"], "customer_name": "Li Wei"},
    }
    return Surroundings(TOOLS, MemoryApprovals(), **(given | more))


def made(name: str) -> StructuredTool:
    return StructuredTool.from_function(lambda: name, name=name, description=name)


def sealed(tool: Any) -> Any:
    return tool.model_copy(update={"metadata": {"counterseal": "sealed"}})

"""The last guard before a tool runs: what is not known, or writes without the seal, does not run."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command  # noqa: TID251 - only the type of a result

from middleware.ports import ToolInfo

log = logging.getLogger(__name__)

type Result = ToolMessage | Command[Any]

SEAL = "counterseal"
SEALED = "sealed"


class Unsealed(ValueError):
    """These tools must not be given to an agent; the text says which and why."""


def is_sealed(tool: BaseTool | None) -> bool:
    """Whether the tool carries the approval gate and the ledger inside."""
    return tool is not None and (tool.metadata or {}).get(SEAL) == SEALED


def fault_of(name: str, tool: BaseTool | None, facts: Mapping[str, ToolInfo]) -> str | None:
    """Why this tool must not run, None if it may."""
    if name not in facts:
        return f"{name} is not a tool of this agent"
    if facts[name].effect == "write" and not is_sealed(tool):
        return f"{name} changes the world but does not carry the approval gate"
    return None


def refuse_unsealed(tools: Iterable[BaseTool], facts: Mapping[str, ToolInfo]) -> None:
    """The same at start-up, for every tool the agent will have, those of its middleware included. Raises `Unsealed`."""
    faults = [fault for tool in tools if (fault := fault_of(tool.name, tool, facts))]
    if faults:
        raise Unsealed("; ".join(faults))


class WriteGuard(AgentMiddleware[AgentState[Any], Any, Any]):
    """Refuses tools without facts and writes without the seal. List it innermost, so that nothing behind it can swap a
    call.

    Args:
        facts: What is known of each tool of the agent.
    """

    def __init__(self, facts: Mapping[str, ToolInfo]) -> None:
        super().__init__()
        self.facts = dict(facts)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        return self._refusal(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return self._refusal(request) or await handler(request)

    def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        fault = fault_of(call["name"], request.tool, self.facts)
        if fault is None and request.tool is not None and request.tool.name != call["name"]:
            fault = f"{call['name']} was swapped for {request.tool.name}"
        if fault is None:
            return None
        log.error("refused a tool call: %s", fault)
        text = f"Refused: {fault}. Nothing ran."
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")

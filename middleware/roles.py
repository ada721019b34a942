"""The model sees, and may call, only what the requester's roles allow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import ToolMessage
from langgraph.types import Command  # noqa: TID251 - only the type of a result

type Request = ModelRequest[Any]
type Response = ModelResponse[Any]
type Result = ToolMessage | Command[Any]


class RoleTools(AgentMiddleware[AgentState[Any], Any, Any]):
    """Args:
    allow: Tool name: roles that may use it. Tools that are not listed are for everybody.
    roles: Those of the person who opened the case, now.
    """

    def __init__(self, allow: Mapping[str, Iterable[str]], roles: Iterable[str]) -> None:
        super().__init__()
        held = frozenset(roles)
        self.denied = frozenset(tool for tool, wanted in allow.items() if held.isdisjoint(wanted))

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        return handler(self._shown(request))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        return await handler(self._shown(request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        return self._refusal(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return self._refusal(request) or await handler(request)

    def _shown(self, request: Request) -> Request:
        return request.override(tools=[tool for tool in request.tools if _name(tool) not in self.denied])

    def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        """A model may call what it was not shown."""
        call = request.tool_call
        if call["name"] not in self.denied:
            return None
        text = f"Refused: the person who asked may not use {call['name']}. Nothing ran, and nobody was asked."
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")


def _name(tool: Any) -> str:
    return str(tool.get("name", "") if isinstance(tool, dict) else tool.name)

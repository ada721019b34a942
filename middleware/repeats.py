"""A call that people have just refused is not put before them again: one clear message, no second card."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ToolCallRequest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Command  # noqa: TID251 - only the type of a result

type Result = ToolMessage | Command[Any]

ANSWERED = (
    "Not run: this is the same call that was answered before in this conversation turn, and that answer stands: "
    '"{answer}" Do not propose it again unchanged. Say what was decided, or do something else.'
)


class RepeatGuard(AgentMiddleware[AgentState[Any], Any, Any]):
    """Answers a proposal that equals one of this run which did not run because of people.

    Args:
        tools: Names of the tools it looks at.
    """

    def __init__(self, tools: Sequence[str]) -> None:
        super().__init__()
        self.watched = frozenset(tools)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        return self._repeated(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return self._repeated(request) or await handler(request)

    def _repeated(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        if call["name"] not in self.watched:
            return None
        answer = refused_before(request.state["messages"], call["name"], call["args"], call["id"] or "")
        if answer is None:
            return None
        text = ANSWERED.format(answer=answer)
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")


def refused_before(messages: Sequence[AnyMessage], tool: str, args: Any, call_id: str) -> str | None:
    """What people answered to the very same call since the newest message of a person; None if nobody did."""
    since = max((n for n, m in enumerate(messages) if isinstance(m, HumanMessage)), default=-1)
    same: set[str] = set()
    for message in messages[since + 1 :]:
        if isinstance(message, AIMessage):
            calls = [c for c in message.tool_calls if c["name"] == tool and c["id"] != call_id]
            same |= {str(c["id"]) for c in calls if _bytes(c["args"]) == _bytes(args)}
        elif isinstance(message, ToolMessage) and message.tool_call_id in same and _by_people(message):
            return str(message.text)
    return None


def _by_people(message: ToolMessage) -> bool:
    """LangChain marks what a decision put in place of a result; a `respond` is an answer and may be asked again."""
    decided = (message.additional_kwargs.get("lc_data") or {}).get("decision")
    return message.status == "error" and decided == "reject"


def _bytes(args: Any) -> str:
    return json.dumps(args, sort_keys=True, ensure_ascii=False, default=str)

"""Ask a person about a tool call, one interrupt per call, by the verdict on record and in our own words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallRequest
from langchain.agents.middleware.human_in_the_loop import InterruptOnConfig
from langchain_core.messages import ToolMessage
from langgraph.types import Command  # noqa: TID251 - only the type of a result

from middleware import predicates
from middleware.calls import call_id, thread_of
from middleware.options.people import Gate
from middleware.ports import Approvals

type Result = ToolMessage | Command[Any]

REJECTED = (
    "A reviewer rejected this call. It did not run, and nothing was changed. "
    "Do not make the same call again unless you are asked to."
)


class HumanInTheLoop(HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's review, with three differences.

    Whether a call asks is read from the verdict that was stored when the call was first seen, so a rule that changes
    while somebody decides cannot let a rejected call through. The answer's `message` is the whole text the model reads:
    a call that expired or was withdrawn must not be told as a rejection. And "reject" is always a valid answer, since
    expiry and withdrawal come as one; whether a *person* may reject is the application's rule.

    Args:
        gates: How each tool is decided. Tools that are not listed are never asked about.
        approvals: Verdicts on record.
        path: The sub-agents that lie above, outermost first.
    """

    def __init__(self, gates: Mapping[str, Gate], approvals: Approvals, path: tuple[str, ...] = ()) -> None:
        self._approvals, self._path = approvals, path
        super().__init__(
            interrupt_on={tool: self._config(tool, gate) for tool, gate in gates.items()},
            interrupt_mode="per_call",
        )

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        ran = False

        def run(reviewed: ToolCallRequest) -> Result:
            nonlocal ran
            ran = True
            return handler(reviewed)

        result = super().wrap_tool_call(request, run)
        return result if ran else _plain(result, request.tool_call["name"])

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        ran = False

        async def run(reviewed: ToolCallRequest) -> Result:
            nonlocal ran
            ran = True
            return await handler(reviewed)

        result = await super().awrap_tool_call(request, run)
        return result if ran else _plain(result, request.tool_call["name"])

    def _tool_approval_request(self, request: ToolCallRequest, config: InterruptOnConfig) -> Any:
        """With the message that made the call: inside a sub-agent nobody else could find it."""
        call = call_id(request.state, str(request.tool_call["id"]), thread_of(request.runtime))
        asked = super()._tool_approval_request(request, config)
        return {**asked, "ai_message_id": call.ai_message_id, "path": list(self._path)}

    def _config(self, tool: str, gate: Gate) -> InterruptOnConfig:
        judge = predicates.judge_of(gate.when)

        def when(request: ToolCallRequest) -> bool:
            call = call_id(request.state, str(request.tool_call["id"]), thread_of(request.runtime))
            return self._approvals.verdict(call, tool, request.tool_call["args"], judge).asks

        allowed = list(dict.fromkeys((*gate.allowed_decisions, "reject")))
        return InterruptOnConfig(allowed_decisions=allowed, when=when, description="")


def _plain(answer: Result, tool: str) -> Result:
    """The answer that replaces a call, without LangChain's introduction of a rejection."""
    if not isinstance(answer, ToolMessage) or answer.status != "error":
        return answer
    introduction = f"User rejected the tool call for `{tool}` with reason: "
    text = answer.content.removeprefix(introduction) if isinstance(answer.content, str) else answer.content
    return answer.model_copy(update={"content": REJECTED if text == answer.content else text})

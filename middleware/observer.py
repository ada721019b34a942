"""Times and counts of every call, in the log and in the state. Names and numbers only."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command  # noqa: TID251 - only the type of a result

log = logging.getLogger("counterseal.observer")

type Result = ToolMessage | Command[Any]


class ObservedState(AgentState[Any]):
    observed: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]


class Observer(AgentMiddleware[ObservedState, Any, Any]):
    """Args:
    slow_seconds: A call that takes longer is told as a warning.
    thread_id: For the lines of the log.
    """

    state_schema = ObservedState

    def __init__(self, slow_seconds: float, thread_id: str = "") -> None:
        super().__init__()
        self.slow_seconds, self.thread_id = slow_seconds, thread_id
        self._lock = threading.Lock()  # tools of one turn run side by side
        self.times: list[tuple[str, str, float]] = []  # of this drive: (what, how it ended, seconds)

    def before_agent(self, state: ObservedState, runtime: Runtime[Any]) -> None:
        log.info("case %s: run begins", self.thread_id)

    def after_agent(self, state: ObservedState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Counted from the messages, not from what this process saw: a run may have been driven by several."""
        counts = counted(state["messages"])
        log.info("case %s: run ends, %s", self.thread_id, ", ".join(f"{k} {v}" for k, v in counts.items()))
        return {"observed": counts}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        with self._timed("model"):
            return handler(request)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        with self._timed("model"):
            return await handler(request)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        with self._timed(request.tool_call["name"]):
            return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        with self._timed(request.tool_call["name"]):
            return await handler(request)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        began, how = time.monotonic(), "failed"
        try:
            yield
            how = "done"
        except GraphBubbleUp:
            how = "paused"
            raise
        finally:
            self._note(what, how, time.monotonic() - began)

    def _note(self, what: str, how: str, seconds: float) -> None:
        with self._lock:
            self.times.append((what, how, seconds))
        level = logging.WARNING if seconds > self.slow_seconds and how != "paused" else logging.INFO
        log.log(level, "case %s: %s %s after %.2f s", self.thread_id, what, how, seconds)


def counted(messages: list[Any]) -> dict[str, int]:
    """Since the newest message of a person."""
    since = max((n for n, m in enumerate(messages) if isinstance(m, HumanMessage)), default=-1)
    own = messages[since + 1 :]
    models = [m for m in own if isinstance(m, AIMessage)]
    tools = [m for m in own if isinstance(m, ToolMessage)]
    return {
        "model_calls": len(models),
        "tool_calls": sum(len(m.tool_calls) for m in models),
        "tool_errors": sum(m.status == "error" for m in tools),
        "by_people": sum("decision" in (m.additional_kwargs.get("lc_data") or {}) for m in tools),
        "tokens": sum(m.usage_metadata["total_tokens"] for m in models if m.usage_metadata),
    }

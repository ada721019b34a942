"""Which tool call is this? The identity that questions, verdicts, the gate and the ledger share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall

from middleware.ports import CallId


def owner_of(messages: Sequence[AnyMessage], tool_call_id: str) -> tuple[AIMessage, ToolCall]:
    """The newest AI message that made this call, and the call as it was proposed.

    Call ids may repeat over turns. Raises `LookupError` if no message made the call, or one made it twice.
    """
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            calls = [call for call in message.tool_calls if call["id"] == tool_call_id]
            if len(calls) > 1:
                raise LookupError(f"call id {tool_call_id} is used twice in one message")
            if calls:
                return message, calls[0]
    raise LookupError(f"no message made call {tool_call_id}")


def call_id(state: Any, tool_call_id: str, thread_id: str) -> CallId:
    """`state`: the agent's state, a mapping with "messages". Raises `LookupError`."""
    message, _ = owner_of(state["messages"], tool_call_id)
    if not message.id:
        raise LookupError("the AI message has no id")
    return CallId(thread_id=thread_id, ai_message_id=message.id, tool_call_id=tool_call_id)


def thread_of(runtime: Any) -> str:
    """The thread that this runtime belongs to. Raises `LookupError` outside a run on a thread."""
    info = runtime.execution_info
    if info is None or not info.thread_id:
        raise LookupError("this call runs outside a thread")
    return str(info.thread_id)

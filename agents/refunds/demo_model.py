"""`demo:refunds`: a chat model of the normal LangChain kind that needs no provider.

It is deterministic but for its random call ids: it reads the whole conversation every time and says or proposes what
comes next, as a careful model would. Everything it claims about a refund comes from a tool's result.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall, UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from agents.refunds.demo_plan import Reply, reply_to
from agents.refunds.demo_turn import Record, read_turn


class RefundsDemo(BaseChatModel):
    """The model. `word_delay`: seconds between streamed words, so that a demo can be watched."""

    word_delay: float = Field(
        default_factory=lambda: float(os.environ.get("COUNTERSEAL_DEMO_WORD_DELAY") or 0), ge=0, le=5
    )

    @property
    def _llm_type(self) -> str:
        return "counterseal-demo-refunds"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        known = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=known, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs.get("tools")))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._next(messages, kwargs.get("tools"))
        for words in _pieces(str(message.text)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=words))
            if run_manager:
                run_manager.on_llm_new_token(words, chunk=chunk)
            yield chunk
            if self.word_delay:
                time.sleep(self.word_delay)
        parts = [
            tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
            for index, call in enumerate(message.tool_calls)
        ]
        last = AIMessageChunk(
            content="", tool_call_chunks=parts, usage_metadata=message.usage_metadata, chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)

    def _next(self, messages: list[BaseMessage], tools: Sequence[Record] | None) -> AIMessage:
        names = frozenset(tool["function"]["name"] for tool in tools) if tools is not None else None
        reply = reply_to(read_turn(messages, names))
        calls: list[ToolCall] = [
            tool_call(name=name, args=args, id=f"call_{uuid.uuid4().hex[:20]}") for name, args in reply.calls
        ]
        return AIMessage(reply.text, tool_calls=calls, usage_metadata=_usage(messages, reply))


def _pieces(text: str) -> list[str]:
    """Words with the blanks before them; Chinese in short groups."""
    return re.findall(r"\s*[\u2e80-\u9fff\uff00-\uffef]{1,3}|\s*[^\s\u2e80-\u9fff\uff00-\uffef]+|\s+$", text)


def _usage(messages: Sequence[BaseMessage], reply: Reply) -> UsageMetadata:
    """Counted by length: four characters to a token."""
    given = sum(len(str(message.text)) for message in messages) // 4 + 1
    made = (len(reply.text) + len(json.dumps(reply.calls))) // 4 + 1
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)

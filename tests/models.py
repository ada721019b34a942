"""`demo:scripted`: a chat model whose script stands in the human message, so that it works across processes.

Imported by COUNTERSEAL_TEST_MODELS=tests.models. The message is JSON:

    {"script": [{"text": "...", "calls": [["issue_refund", {...}], ["lookup_order", {...}, "fixed_id"]],
                 "sleep": seconds, "raise": "text"}, ...]}

The step is the number of AI messages since that message; a spent script ends with "done". Call ids are random, as
providers' are: asking twice gives two different calls, so a test with fixed ids would hide a lost checkpoint.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from agents.chat_models import register

DONE: Mapping[str, Any] = {"text": "done"}


class ScriptedFailure(RuntimeError):
    """What a step with "raise" raises, in place of a provider's error."""


def step_of(messages: Sequence[BaseMessage]) -> Mapping[str, Any]:
    """The script's step that is due."""
    for at in range(len(messages) - 1, -1, -1):
        if isinstance(messages[at], HumanMessage) and (script := _script(str(messages[at].text))) is not None:
            step = sum(isinstance(message, AIMessage) for message in messages[at:])
            return script[step] if step < len(script) else DONE
    return DONE


def _script(text: str) -> list[Mapping[str, Any]] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value["script"] if isinstance(value, dict) and isinstance(value.get("script"), list) else None


def _message(messages: Sequence[BaseMessage]) -> AIMessage:
    step = step_of(messages)
    time.sleep(step.get("sleep", 0))
    if "raise" in step:
        raise ScriptedFailure(step["raise"])
    calls = [
        tool_call(name=name, args=args, id=fixed[0] if fixed else f"call_{uuid.uuid4().hex[:20]}")
        for name, args, *fixed in step.get("calls", ())
    ]
    usage = UsageMetadata(input_tokens=7, output_tokens=3, total_tokens=10)
    return AIMessage(step.get("text", ""), tool_calls=calls, usage_metadata=usage)


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        known = [
            tool if isinstance(tool, dict) and "function" not in tool else convert_to_openai_tool(tool)
            for tool in tools
        ]
        return self.bind(tools=known, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_message(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = _message(messages)
        for word in re.findall(r"\s*\S+", str(message.text)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        parts = [
            tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
            for index, call in enumerate(message.tool_calls)
        ]
        last = AIMessageChunk(
            content="", tool_call_chunks=parts, usage_metadata=message.usage_metadata, chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)


def scripted(options: Mapping[str, Any]) -> BaseChatModel:
    return ScriptedModel(**options)


register("scripted", scripted)

"""Chat models for the proofs. All of them work across processes: what they know stands in their options or in files.

`demo:told`     as `demo:scripted`; with the option `record` it appends what it was sent to a file, one JSON line a call
`demo:says`     always the same answer: `text`, or a call of the tool it is bound to with the arguments `call`
`demo:flaky`    fails as often as the file `times` has room, then answers as `demo:told`
`demo:refusing` answers with a refusal block
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from agents.chat_models import register
from tests.models import ScriptedModel


class Unreachable(ConnectionError):
    """What a provider raises that cannot be reached."""


class Told(ScriptedModel):
    record: str = ""

    def _note(self, messages: list[BaseMessage], tools: Sequence[Any]) -> None:
        if self.record:
            names = [tool.get("function", tool).get("name", tool.get("type")) for tool in tools]
            said = [{"type": message.type, "text": str(message.text)} for message in messages]
            with Path(self.record).open("a") as file:
                file.write(json.dumps({"tools": names, "messages": said}) + "\n")

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._note(messages, kwargs.get("tools", ()))
        return super()._generate(messages, *args, **kwargs)

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self._note(messages, kwargs.get("tools", ()))
        yield from super()._stream(messages, *args, **kwargs)


class Flaky(Told):
    times: str

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        left = Path(self.times)
        if int(left.read_text()) > 0:
            left.write_text(str(int(left.read_text()) - 1))
            raise Unreachable("no answer")
        yield from super()._stream(messages, *args, **kwargs)


class Says(BaseChatModel):
    text: str = ""
    call: dict[str, Any] | None = None
    blocks: list[Any] | None = None
    fails: str = ""

    @property
    def _llm_type(self) -> str:
        return "says"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.fails:
            raise Unreachable(self.fails)
        calls = []
        if self.call is not None and kwargs.get("tools"):
            name = kwargs["tools"][0]["function"]["name"]
            calls = [
                {"name": name, "args": self.call, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "tool_call"}
            ]
        usage = UsageMetadata(input_tokens=7, output_tokens=3, total_tokens=10)
        content: Any = self.blocks or self.text
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(content, tool_calls=calls, usage_metadata=usage))]
        )


def _options(kind: Any) -> Any:
    def make(options: Mapping[str, Any]) -> BaseChatModel:
        return kind(**options)

    return make


for name, kind in {"told": Told, "says": Says, "flaky": Flaky}.items():
    register(name, _options(kind))


def says(text: str = "", **options: Any) -> dict[str, Any]:
    return {"model": "demo:says", "options": {"text": text, **options}}

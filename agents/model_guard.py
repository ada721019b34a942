"""The last word on a model call: no half answer becomes a tool call, and no error carries the key.

LangChain reads streamed arguments leniently: a call that was cut off after `{"amount": 12` is a whole call for 12 to it,
whatever was to follow. And a call whose arguments cannot be read at all is dropped, so that the run would end as if the
model had nothing more to do.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage

from agents import faults
from agents.canonical import Uncanonical, canonical
from agents.contracts import Parked
from middleware.notes import Notebook

CUT_OFF = frozenset(
    {
        "content_filter",
        "incomplete",
        "length",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "pause_turn",
        "refusal",
        "safety",
    }
)
SAY_WHY = frozenset({"anthropic", "openai"})  # end every answer with a reason: without one it was cut off
NOT_LET_IN = (401, 403)


class ModelFailed(RuntimeError):
    """The model gave nothing that may be acted upon; the text is for people and holds no key."""


class ModelGuard(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lies innermost, so that retries and fallbacks of the spec see its errors.

    Args:
        model: The model as the spec names it.
        key_env: Name of the environment variable that holds its key.
        thread_id: For kill points.
        notebook: Holds what was done before the call, which goes into its answer.
    """

    def __init__(
        self, model: str, key_env: str | None, thread_id: str = "", notebook: Notebook | None = None
    ) -> None:
        super().__init__()
        self.model, self.key_env, self.thread_id = model, key_env, thread_id
        self.notebook = notebook or Notebook()

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        faults.point("model_in", self.thread_id)
        try:
            response = handler(request)
        except Exception as error:
            if (retold := self.retold(error)) is None:
                raise
            raise retold from None  # the first text must not reach a log either
        self._check(response.result)
        for message in response.result:
            if isinstance(message, AIMessage):
                self.notebook.onto(message)
        faults.point("model_out", self.thread_id)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        try:
            response = await handler(request)
        except Exception as error:
            if (retold := self.retold(error)) is None:
                raise
            raise retold from None
        self._check(response.result)
        return response

    def retold(self, error: Exception) -> ModelFailed | None:
        """The error without the key and with what to do; None if it can stand as it is."""
        key = os.environ.get(self.key_env or "", "")
        said = str(error).replace(key, "[the key]") if key else str(error)
        status = getattr(error, "status_code", None)
        if status in NOT_LET_IN:
            where = f" in {self.key_env}" if self.key_env else ""
            return ModelFailed(
                f"{self.model}: the provider refused the key{where} ({status}). Check it and restart the workers. "
                f"It said: {said}"
            )
        return None if said == str(error) else ModelFailed(f"{self.model}: {said}")

    def _check(self, messages: Iterable[BaseMessage]) -> None:
        for message in messages:
            if isinstance(message, AIMessage):
                if fault := fault_of(message):
                    raise ModelFailed(f"{self.model}: {fault}, so it was not acted upon")
                _refuse_what_no_page_can_show(message)


def _refuse_what_no_page_can_show(message: AIMessage) -> None:
    """Before it is saved: some of it no checkpoint could hold, and the model would be asked again in vain."""
    for call in message.tool_calls:
        try:
            canonical(call["args"])
        except Uncanonical as error:
            raise Parked(f"The call {call['name']} cannot be shown safely: {error}.") from error


def fault_of(message: AIMessage) -> str | None:
    """Why the calls of an answer must not be acted upon; None if they may."""
    if any(0xD800 <= ord(letter) < 0xE000 for letter in str(message.text)):
        return "the answer holds half a character"  # no database can store it
    if message.invalid_tool_calls:
        name = message.invalid_tool_calls[0].get("name")
        return f"the answer calls {name} with arguments that are no JSON"
    if not message.tool_calls:
        return None  # half a sentence harms nobody
    ids = [call["id"] for call in message.tool_calls]
    if len(set(ids)) < len(ids):
        return "the answer gives two calls the same id"  # whose result, whose approval?
    metadata = message.response_metadata
    reason = _reason(metadata)
    if reason.lower() in CUT_OFF:
        return f"the answer was cut off in the middle of a call ({reason})"
    if not reason and metadata.get("model_provider") in SAY_WHY:
        return "the answer was cut off in the middle of a call (the stream ended early)"
    return None


def _reason(metadata: Mapping[str, Any]) -> str:
    """Why the answer ended, in the provider's own word."""
    details = metadata.get("incomplete_details") or {}
    names = ("finish_reason", "stop_reason", "stopReason", "status")
    said = details.get("reason") or next((metadata[name] for name in names if metadata.get(name)), "")
    return str(said)

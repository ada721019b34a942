"""A loopback server that speaks OpenAI's Chat Completions and Responses, and refuses what OpenAI refuses."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.providers import responses
from tests.providers.loopback import (
    Call,
    Event,
    Json,
    Loopback,
    Received,
    Result,
    Say,
    Turn,
    needs,
    only,
    pieces,
    tokens,
)

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
TOP = (
    "model messages tools tool_choice parallel_tool_calls stream stream_options n seed stop user metadata store "
    "temperature top_p max_completion_tokens reasoning_effort verbosity response_format logprobs service_tier"
)
KEYS = {
    "system": "role content name",
    "developer": "role content name",
    "user": "role content name",
    "assistant": "role content name tool_calls refusal audio",
    "tool": "role content tool_call_id",
}


class OpenAIServer(Loopback):
    provider = "openai"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def key_of(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def bad_key(self, key: str) -> str:
        shown = f"{key[:7]}{'*' * 20}{key[-4:]}"
        return f"Incorrect API key provided: {shown}. You can find your API key at https://platform.openai.com/account/api-keys."

    def call_id(self) -> str:
        return f"call_{self.new_id()}"

    def check(self, request: Received) -> None:
        needs(request.path in (CHAT, RESPONSES), f"Invalid URL (POST {request.path})")
        needs(request.body.get("model"), "you must provide a model parameter")

    def read(self, request: Received) -> Turn:
        reader = responses.read if request.path == RESPONSES else read
        return reader(request.body, lenient=self.lenient)

    def whole(self, request: Received, say: Say, calls: list[Call]) -> Json:
        if request.path == RESPONSES:
            return responses.whole(request.body, say, calls)
        message: dict[str, Any] = {"role": "assistant", "content": say.text or None, "refusal": None}
        if calls:
            message["tool_calls"] = [_call(call) for call in calls]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish(say, calls),
        }
        return {
            **_envelope(request.body, "chat.completion"),
            "choices": [choice],
            "usage": _usage(request, say),
        }

    def events(self, request: Received, say: Say, calls: list[Call]) -> Iterable[Event]:
        if request.path == RESPONSES:
            return responses.events(request.body, say, calls)
        return _chunks(request, say, calls)

    def error(self, status: int, message: str) -> Json:
        kinds = {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error"}
        return {
            "error": {
                "message": message,
                "type": "invalid_request_error" if status < 500 else "server_error",
                "param": None,
                "code": kinds.get(status),
            }
        }


# --- what is refused ----------------------------------------------------------------------------------------------------
def read(body: dict[str, Any], *, lenient: bool = False) -> Turn:
    """The newest turn of a Chat Completions request."""
    _check_top(body)
    tools = {_tool_name(tool) for tool in body.get("tools", [])}
    needs(body.get("messages"), "'messages' must contain at least one message")
    message, results, waiting = "", [], {}
    for at, entry in enumerate(body["messages"]):
        role = entry.get("role")
        needs(role in KEYS, f"Invalid value: '{role}'. [messages.{at}.role]")
        only(entry, KEYS[role], f"messages.{at}")
        if role == "tool":
            call = waiting.pop(entry.get("tool_call_id"), None)
            needs(
                call,
                "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
                f"'tool_calls'. [messages.{at}]",
            )
            results.append(Result(call, _text(entry["content"], at)))
            continue
        _needs_no_waiting(waiting)
        if role == "assistant":
            waiting = {call.id: call for call in _calls(entry, at, None if lenient else tools)}
        elif role == "user":
            message, results = _text(entry["content"], at), []
        else:
            _text(entry["content"], at)
    _needs_no_waiting(waiting)
    return Turn(message, tuple(results))


def _check_top(body: Mapping[str, Any]) -> None:
    for name in body:
        needs(name in TOP.split(), f"Unrecognized request argument supplied: {name}")
    needs(
        body.get("stream") or "stream_options" not in body,
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    )
    needs(
        body.get("temperature", 1) == 1,
        "Unsupported value: 'temperature' does not support this value with this model. Only the default (1) is supported.",
    )


def _needs_no_waiting(waiting: Mapping[str, Call]) -> None:
    needs(
        not waiting,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
    )


def _tool_name(tool: Mapping[str, Any]) -> str:
    only(tool, "type function", "tools")
    function = tool["function"]
    only(function, "name description parameters strict", "tools.function")
    needs(
        tool["type"] == "function" and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]), "Invalid tools"
    )
    needs(
        function.get("parameters", {}).get("type") == "object",
        f"Invalid schema for function '{function['name']}'",
    )
    return str(function["name"])


def _calls(entry: Mapping[str, Any], at: int, tools: set[str] | None) -> list[Call]:
    calls = entry.get("tool_calls")
    needs(calls is None or calls, f"[] is too short - 'messages.{at}.tool_calls'")
    needs(
        entry.get("content") or calls,
        f"Invalid value for 'content': expected a string, got null. [messages.{at}]",
    )
    if "name" in entry:
        needs(re.fullmatch(r"[^\s<|\\/>]{1,64}", entry["name"]), f"Invalid 'messages[{at}].name'")
    found: list[Call] = []
    for call in calls or []:
        only(call, "id type function", f"messages.{at}.tool_calls")
        function = call["function"]
        needs(0 < len(call["id"]) <= 40, f"Invalid 'messages[{at}].tool_calls.id': string too long or empty")
        needs(call["id"] not in {other.id for other in found}, f"Duplicate tool_call id {call['id']}")
        needs(
            isinstance(function["arguments"], str), f"Invalid type for 'messages[{at}].tool_calls.arguments'"
        )
        needs(
            tools is None or function["name"] in tools,
            f"messages[{at}] calls {function['name']}, which is not in 'tools'",
        )
        found.append(Call(call["id"], function["name"], function["arguments"]))
    return found


def _text(content: Json, at: int) -> str:
    if isinstance(content, list):
        needs(
            all(set(part) == {"type", "text"} for part in content), f"Invalid content part in messages[{at}]"
        )
        content = "".join(part["text"] for part in content)
    needs(isinstance(content, str), f"Invalid type for 'messages[{at}].content'")
    return str(content)


# --- what is said -------------------------------------------------------------------------------------------------------
def _chunks(request: Received, say: Say, calls: list[Call]) -> Iterator[Event]:
    envelope = _envelope(request.body, "chat.completion.chunk")
    wants_usage = (request.body.get("stream_options") or {}).get("include_usage")

    def chunk(delta: Json, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return None, {**envelope, "choices": [choice], **({"usage": None} if wants_usage else {})}

    yield chunk({"role": "assistant", "content": "", "refusal": None})
    for piece in pieces(say.text):
        yield chunk({"content": piece})
    for index, call in enumerate(calls):
        yield chunk(
            {
                "tool_calls": [
                    {"index": index, **_call(call), "function": {"name": call.name, "arguments": ""}}
                ]
            }
        )
        for piece in pieces(call.args):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if say.stop != "none":
        yield chunk({}, _finish(say, calls))
    if wants_usage:
        yield None, {**envelope, "choices": [], "usage": _usage(request, say)}
    yield None, "[DONE]"


def _finish(say: Say, calls: list[Call]) -> str:
    return say.stop or ("tool_calls" if calls else "stop")


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.args}}


def _envelope(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": f"{body['model']}-2026-03-05",
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _usage(request: Received, say: Say) -> dict[str, Any]:
    sent, said = tokens(request.body["messages"]), tokens(json.dumps([say.text, say.calls]))
    return {
        "prompt_tokens": sent,
        "completion_tokens": said,
        "total_tokens": sent + said,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }

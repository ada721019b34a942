"""A loopback server that speaks Anthropic's Messages, and refuses what Anthropic refuses."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.providers.loopback import (
    Call,
    Event,
    Json,
    Loopback,
    Received,
    Refuse,
    Result,
    Say,
    Turn,
    needs,
    only,
    pieces,
    tokens,
)

TOP = (
    "model messages system max_tokens tools tool_choice stream stop_sequences temperature top_k top_p metadata thinking "
    "cache_control service_tier output_config context_management container"
)
VERSIONS = ("2023-06-01", "2026-10-21")
REMOVED = ("temperature", "top_k", "top_p")
BLOCKS = {
    "text": "type text cache_control citations",
    "tool_use": "type id name input cache_control caller",
    "tool_result": "type tool_use_id content is_error cache_control",
}
OWN_TOOLS = re.compile(r"(bash|text_editor|memory|tool_search_tool_bm25)_\d{8}")
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class AnthropicServer(Loopback):
    provider = "anthropic"

    def key_of(self, headers: Mapping[str, str]) -> str:
        """Either header is accepted; the client in use sends the second."""
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if not given:
            raise Refuse("x-api-key header is required", 401)
        return given

    def bad_key(self, key: str) -> str:
        return "invalid x-api-key"

    def call_id(self) -> str:
        return f"toolu_01{self.new_id()}"

    def check(self, request: Received) -> None:
        if request.path != "/v1/messages":
            raise Refuse("Not found", 404)
        version = request.headers.get("anthropic-version")
        needs(version in VERSIONS, "anthropic-version: header is required")
        for name in REMOVED if version == VERSIONS[-1] else ():
            needs(name not in request.body, f"{name}: this parameter was removed in API version {version}")

    def read(self, request: Received) -> Turn:
        return read(request.body, lenient=self.lenient)

    def whole(self, request: Received, say: Say, calls: list[Call]) -> Json:
        return {
            **_message(request.body),
            "content": [*_texts(say), *(_use(call, json.loads(call.args)) for call in calls)],
            "stop_reason": _stop(say, calls),
            "usage": _usage(request.body, say),
        }

    def events(self, request: Received, say: Say, calls: list[Call]) -> Iterable[Event]:
        return ((data["type"], data) for data in _events(request.body, say, calls))

    def error(self, status: int, message: str) -> Json:
        return {"type": "error", "error": {"type": ERRORS.get(status, "api_error"), "message": message}}


# --- what is refused ----------------------------------------------------------------------------------------------------
def read(body: dict[str, Any], *, lenient: bool = False) -> Turn:
    """The newest turn of a request."""
    only(body, TOP, "request")
    needs(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    tools = {_tool_name(tool, at) for at, tool in enumerate(body.get("tools", []))}
    messages = body.get("messages")
    needs(messages, "messages: at least one message is required")
    needs(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
    needs(
        messages[-1]["role"] == "user",
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    )
    text, results, seen = "", [], set()
    uses: dict[str, Call] = {}
    for at, entry in enumerate(messages):
        only(entry, "role content", f"messages.{at}")
        needs(
            entry["role"] in ("user", "assistant"),
            f"messages.{at}.role: Input should be 'user' or 'assistant'",
        )
        needs(
            at == 0 or messages[at - 1]["role"] != entry["role"],
            'messages: roles must alternate between "user" and "assistant"',
        )
        blocks = _blocks(entry["content"], at)
        if entry["role"] == "assistant":
            uses = _uses(blocks, at, None if lenient else tools, seen)
            continue
        found = _results(blocks, at, uses)
        said = "".join(block["text"] for block in blocks if block["type"] == "text")
        text, results = (said, []) if said else (text, [*results, *found])
        uses = {}
    return Turn(text, tuple(results))


def _blocks(content: Json, at: int) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    needs(blocks, f"messages.{at}: all messages must have non-empty content")
    for place, block in enumerate(blocks):
        where = f"messages.{at}.content.{place}"
        needs(
            block["type"] in BLOCKS, f"{where}: Input tag '{block['type']}' found using 'type' does not match"
        )
        only(block, BLOCKS[block["type"]], where)
        if block["type"] == "text":
            needs(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
    return list(blocks)


def _uses(blocks: list[dict[str, Any]], at: int, tools: set[str] | None, seen: set[str]) -> dict[str, Call]:
    uses: dict[str, Call] = {}
    for block in blocks:
        needs(
            block["type"] != "tool_result",
            f"messages.{at}: `tool_result` blocks can only be in `user` messages",
        )
        if block["type"] != "tool_use":
            continue
        needs(
            re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]),
            f"messages.{at}: tool_use.id: String should match pattern",
        )
        needs(block["id"] not in seen, f"messages.{at}: `tool_use` ids must be unique")
        needs(
            isinstance(block["input"], dict),
            f"messages.{at}: tool_use.input: Input should be a valid dictionary",
        )
        needs(
            tools is None or block["name"] in tools,
            f"messages.{at} uses {block['name']}, which is not in tools",
        )
        seen.add(block["id"])
        uses[block["id"]] = Call(block["id"], block["name"], json.dumps(block["input"]))
    return uses


def _results(blocks: list[dict[str, Any]], at: int, uses: Mapping[str, Call]) -> list[Result]:
    """The results of one user message: exactly one for each call of the message before, and before any text."""
    found: dict[str, Result] = {}
    said = False
    for block in blocks:
        needs(
            block["type"] != "tool_use",
            f"messages.{at}: `tool_use` blocks can only be in `assistant` messages",
        )
        if block["type"] == "text":
            said = True
            continue
        used = block["tool_use_id"]
        needs(not said, f"messages.{at}: tool_result blocks must come before text")
        if used not in uses:
            raise Refuse(
                f"messages.{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: {used}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        needs(
            used not in found,
            f"messages.{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {used}",
        )
        found[used] = Result(uses[used], _text(block.get("content", "")))
    missing = ", ".join(set(uses) - set(found))
    needs(
        not missing,
        f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
    )
    return list(found.values())


def _tool_name(tool: Mapping[str, Any], at: int) -> str:
    if OWN_TOOLS.fullmatch(tool.get("type", "")):  # Claude knows these: they have no schema
        only(tool, "name type cache_control", f"tools.{at}")
        return str(tool["name"])
    only(tool, "name description input_schema cache_control type strict defer_loading", f"tools.{at}")
    needs(
        re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]),
        f"tools.{at}.custom.name: String should match pattern",
    )
    needs(
        tool["input_schema"].get("type") == "object", f"tools.{at}.custom.input_schema.type: Field required"
    )
    return str(tool["name"])


def _text(content: Json) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


# --- what is said -------------------------------------------------------------------------------------------------------
def _events(body: Mapping[str, Any], say: Say, calls: list[Call]) -> Iterator[dict[str, Any]]:
    usage = _usage(body, say)
    yield {
        "type": "message_start",
        "message": {
            **_message(body),
            "content": [],
            "stop_reason": None,
            "usage": {**usage, "output_tokens": 1},
        },
    }
    yield {"type": "ping"}
    blocks: list[tuple[dict[str, Any], str, str]] = [
        ({"type": "text", "text": ""}, "text_delta", block["text"]) for block in _texts(say)
    ]
    blocks += [(_use(call, {}), "input_json_delta", call.args) for call in calls]
    for index, (block, kind, text) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        name = "text" if kind == "text_delta" else "partial_json"
        for piece in ("", *pieces(text)) if name == "partial_json" else pieces(text):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
        yield {"type": "content_block_stop", "index": index}
    if say.stop != "none":
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": _stop(say, calls), "stop_sequence": None},
            "usage": usage,
        }
        yield {"type": "message_stop"}


def _stop(say: Say, calls: list[Call]) -> str:
    return say.stop or ("tool_use" if calls else "end_turn")


def _texts(say: Say) -> list[dict[str, Any]]:
    return [{"type": "text", "text": say.text}] if say.text else []


def _use(call: Call, values: Json) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": values}


def _message(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_01{uuid.uuid4().hex[:22]}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "stop_sequence": None,
    }


def _usage(body: Mapping[str, Any], say: Say) -> dict[str, Any]:
    return {
        "input_tokens": tokens(body["messages"]),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": tokens([say.text, list(say.calls)]),
        "service_tier": "standard",
    }

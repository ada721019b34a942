"""The wire format of OpenAI's Responses: what LangChain's client uses by itself for some models with tools."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from tests.providers.loopback import Call, Event, Json, Result, Say, Turn, needs, only, pieces, tokens

TOP = (
    "model input instructions tools tool_choice parallel_tool_calls stream stream_options store include metadata "
    "previous_response_id reasoning text temperature top_p max_output_tokens truncation user service_tier"
)
KEYS = {
    "message": "type role content id status phase",
    "function_call": "type id call_id name arguments status",
    "function_call_output": "type id call_id output status",
    "reasoning": "type id summary content encrypted_content status",
}


def read(body: dict[str, Any], *, lenient: bool = False) -> Turn:
    """The newest turn of a request."""
    for name in body:
        needs(name in TOP.split(), f"Unknown parameter: '{name}'.")
    tools = {_tool_name(tool) for tool in body.get("tools", [])}
    message, results = "", []
    calls: dict[str, Call] = {}
    answered: set[str] = set()
    for at, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        needs(kind in KEYS, f"Invalid value: '{kind}'. [input[{at}].type]")
        only(item, KEYS[kind], f"input[{at}]")
        if kind == "function_call":
            call = _call(item, at, None if lenient else tools)
            needs(call.id not in calls, f"Duplicate call_id {call.id}")
            calls[call.id] = call
        elif kind == "function_call_output":
            called = calls.get(item["call_id"])
            if called is None:
                needs(False, f"No tool call found for function call output with call_id {item['call_id']}.")
                raise AssertionError
            needs(item["call_id"] not in answered, f"Duplicate output for call_id {item['call_id']}")
            answered.add(item["call_id"])
            results.append(Result(called, _text(item["output"])))
        elif kind == "message":
            _check_id(item, "msg_", at)
            if item["role"] == "user":
                message, results = _text(item["content"]), []
        else:
            _check_id(item, "rs_", at)
            follows = body["input"][at + 1].get("type", "message") if at + 1 < len(body["input"]) else ""
            needs(
                follows in ("message", "function_call", "reasoning"),
                f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
            )
    for call_id in calls:
        needs(call_id in answered, f"No tool output found for function call {call_id}.")
    return Turn(message, tuple(results))


def _tool_name(tool: Mapping[str, Any]) -> str:
    only(tool, "type name description parameters strict", "tools")
    needs(tool["type"] == "function" and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]), "Invalid tools")
    needs(tool.get("parameters", {}).get("type") == "object", f"Invalid schema for function '{tool['name']}'")
    return str(tool["name"])


def _call(item: Mapping[str, Any], at: int, tools: set[str] | None) -> Call:
    _check_id(item, "fc_", at)
    needs(
        tools is None or item["name"] in tools, f"input[{at}] calls {item['name']}, which is not in 'tools'"
    )
    needs(isinstance(item["arguments"], str), f"Invalid type for 'input[{at}].arguments'")
    return Call(item["call_id"], item["name"], item["arguments"])


def _check_id(item: Mapping[str, Any], prefix: str, at: int) -> None:
    needs(
        str(item.get("id", prefix)).startswith(prefix),
        f"Invalid 'input[{at}].id': '{item.get('id')}'. Expected an ID that begins with '{prefix[:-1]}'.",
    )


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


# --- what is said -------------------------------------------------------------------------------------------------------
def whole(body: Mapping[str, Any], say: Say, calls: list[Call]) -> Json:
    return {**_response(body), **_end(body, say, _output(say, calls))}


def events(body: Mapping[str, Any], say: Say, calls: list[Call]) -> Iterator[Event]:
    response = _response(body)
    output = _output(say, calls)
    number = 0

    def event(kind: str, **data: Any) -> Event:
        nonlocal number
        number += 1
        return f"response.{kind}", {"type": f"response.{kind}", "sequence_number": number - 1, **data}

    yield event("created", response=response)
    yield event("in_progress", response=response)
    for index, item in enumerate(output):
        yield event("output_item.added", output_index=index, item=_empty(item))
        where = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part = item["content"][0]
            yield event("content_part.added", **where, content_index=0, part={**part, "text": ""})
            for piece in pieces(part["text"]):
                yield event("output_text.delta", **where, content_index=0, delta=piece, logprobs=[])
            yield event("output_text.done", **where, content_index=0, text=part["text"], logprobs=[])
            yield event("content_part.done", **where, content_index=0, part=part)
        elif item["type"] == "function_call":
            for piece in pieces(item["arguments"]):
                yield event("function_call_arguments.delta", **where, delta=piece)
            yield event(
                "function_call_arguments.done", **where, name=item["name"], arguments=item["arguments"]
            )
        yield event("output_item.done", output_index=index, item=item)
    if say.stop != "none":
        end = {**response, **_end(body, say, output)}
        yield event("incomplete" if say.stop else "completed", response=end)


def _output(say: Say, calls: list[Call]) -> list[dict[str, Any]]:
    """Reasoning first, as reasoning models do: its items have to come back with the next request."""
    items: list[dict[str, Any]] = [{"id": _id("rs"), "type": "reasoning", "summary": []}]
    if say.text:
        part = {"type": "output_text", "text": say.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": _id("msg"),
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "id": _id("fc"),
            "type": "function_call",
            "status": "completed",
            "name": call.name,
            "call_id": call.id,
            "arguments": call.args,
        }
        for call in calls
    ]
    return items


def _empty(item: Mapping[str, Any]) -> dict[str, Any]:
    blank: dict[str, Any] = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(
        item["type"], {}
    )
    return {**item, **blank, **({"status": "in_progress"} if "status" in item else {})}


def _response(body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": body["model"],
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _end(body: Mapping[str, Any], say: Say, output: list[dict[str, Any]]) -> dict[str, Any]:
    sent, said = tokens(body["input"]), tokens([say.text, say.calls])
    return {
        "status": "incomplete" if say.stop else "completed",
        "incomplete_details": {"reason": say.stop} if say.stop else None,
        "output": output,
        "usage": {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + said,
        },
    }


def _id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"

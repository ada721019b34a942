"""Bodies: strict JSON. What has no single safe meaning is refused, and the answer says where it stands."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest
from ninja.parser import Parser

from agents.canonical import MAX_BYTES, MAX_INT, MIN_INT, Uncanonical, parse
from approvals.api.problems import Problem, invalid, too_large


class StrictParser(Parser):
    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type not in ("", "application/json"):
            raise Problem(415, "media-type", "Send JSON, with Content-Type: application/json.")
        return read(request.body)


def read(data: bytes) -> Any:
    """The value of a body. Raises `Problem`: 413 too large, 400 not JSON, 422 JSON that nobody should approve."""
    if len(data) > MAX_BYTES:
        raise too_large()
    try:
        return parse(data.decode())
    except Uncanonical as error:
        field, text = next(culprits(data.decode()), ("body", f"Not acceptable: {error}."))
        raise invalid({field: text}) from error
    except json.JSONDecodeError as error:
        detail = f"The body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
        raise Problem(400, "malformed", detail) from error
    except ValueError as error:
        raise Problem(400, "malformed", "The body is not JSON in UTF-8.") from error


class _Object(dict[str, Any]):
    repeated: str = ""


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    found, seen = _Object(pairs), set()
    for name, _value in pairs:
        if name in seen:
            found.repeated = name
        seen.add(name)
    return found


def culprits(text: str) -> Iterator[tuple[str, str]]:
    """(field, sentence) for every place that `agents.canonical` refuses."""
    try:
        yield from _walk(json.loads(text, object_pairs_hook=_object), ())
    except RecursionError:
        yield "body", "Nested too deeply."


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    here = "/".join(path) or "body"
    match value:
        case _Object():
            if value.repeated:
                yield "/".join((*path, value.repeated)), "This field appears twice: send it once."
            for name, item in value.items():
                yield from _walk(item, (*path, name))
        case list():
            for place, item in enumerate(value):
                yield from _walk(item, (*path, str(place)))
        case float() if not math.isfinite(value):
            yield here, "This is not a finite number."
        case int() if not MIN_INT <= value <= MAX_INT:
            yield here, "This number does not fit into 64 bits."
        case str() if any("\ud800" <= letter <= "\udfff" for letter in value):
            yield here, "This text contains half a character (a lone surrogate)."

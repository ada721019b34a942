"""JSON Schema -> what kind of field to show. Whatever is not understood is "json": shown and edited as raw JSON."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from approvals.argform.pointer import Json, Schema, unescape

LONG_TEXT = 200
FORMAT_KINDS = {"date": "date", "time": "time", "email": "email", "uri": "url"}

# A native input silently empties or trims text it does not accept, and that would look like an edit.
# So it is used only for text it keeps as it is.
KEPT_BY_INPUT = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "time": re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,3})?)?"),
    "email": re.compile(r"\S+"),
    "url": re.compile(r"\S+"),
}
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


class Kind(NamedTuple):
    name: str
    schema: Schema  # with references resolved
    nullable: bool = False
    choices: tuple[Json, ...] = ()


def classify(schema: Any, root: Schema, value: Json = None) -> Kind:
    schema, nullable = _without_null(resolve(schema, root))
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return _one_of(schema, [resolve(a, root) for a in alternatives], root, value)
    if "const" in schema:
        return Kind("enum", schema, nullable, (schema["const"],))
    if "enum" in schema:
        choices = tuple(c for c in schema["enum"] if c is not None)
        return Kind("enum", schema, nullable or len(choices) < len(schema["enum"]), choices)
    return Kind(_simple_kind(schema, value), schema, nullable)


def _without_null(schema: Schema) -> tuple[Schema, bool]:
    """{"type": ["string", "null"]} -> {"type": "string"}, True"""
    types = schema.get("type")
    if not isinstance(types, list):
        return schema, False
    real = [t for t in types if t != "null"]
    return {**schema, "type": real[0] if len(real) == 1 else None}, len(real) < len(types)


def _one_of(schema: Schema, alternatives: list[Schema], root: Schema, value: Json) -> Kind:
    real = [a for a in alternatives if a.get("type") != "null"]
    nullable = len(real) < len(alternatives)
    outer = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf", "discriminator")}
    if {a.get("type") for a in real} == {"number", "string"}:  # what pydantic emits for Decimal
        number = next(a for a in real if a.get("type") == "number")
        return Kind("decimal", {**outer, **number}, nullable)
    if "discriminator" in schema:
        tag = schema["discriminator"]["propertyName"]
        real = [a for a in real if _has_tag(a, tag, value)]
    if len(real) != 1:
        return Kind("json", outer, nullable)
    inner = classify({**real[0], **outer}, root, value)
    return inner._replace(nullable=nullable or inner.nullable)


def _has_tag(branch: Schema, tag: str, value: Json) -> bool:
    allowed = branch.get("properties", {}).get(tag, {})
    return isinstance(value, dict) and value.get(tag) in allowed.get("enum", [allowed.get("const")])


def _simple_kind(schema: Schema, value: Json) -> str:
    match schema.get("type"):
        case "string":
            return _text_kind(schema, value if isinstance(value, str) else "")
        case "integer" | "number" | "boolean" as kind:
            return str(kind)
        case "object" if schema.get("properties"):
            return "object"
        case "array" if isinstance(schema.get("items"), dict):
            return "array"
    return "json"


def _text_kind(schema: Schema, text: str) -> str:
    if UNPRINTABLE.search(text):
        return "json"
    kind = FORMAT_KINDS.get(schema.get("format", ""), "text")
    if text and kind in KEPT_BY_INPUT and not KEPT_BY_INPUT[kind].fullmatch(text):
        kind = "text"
    is_short = (
        "format" in schema or "pattern" in schema or schema.get("maxLength", LONG_TEXT + 1) <= LONG_TEXT
    )
    if kind == "text" and (not is_short or "\n" in text or "\r" in text):
        return "long"  # a one-line input would drop the line breaks
    return kind


def resolve(schema: Any, root: Schema) -> Schema:
    """Follow local $ref and a single allOf. Remote, endless or broken references give {} and so raw JSON."""
    seen: set[str] = set()
    while isinstance(schema, dict) and "$ref" in schema:
        reference = schema["$ref"]
        if not reference.startswith("#/") or reference in seen:
            return {}
        seen.add(reference)
        rest = {k: v for k, v in schema.items() if k != "$ref"}
        schema = {**_lookup(reference, root), **rest}
    if isinstance(schema, dict) and len(schema.get("allOf", ())) == 1:
        rest = {k: v for k, v in schema.items() if k != "allOf"}
        schema = {**resolve(schema["allOf"][0], root), **rest}
    return schema if isinstance(schema, dict) else {}


def _lookup(reference: str, root: Schema) -> Schema:
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(unescape(part), {}) if isinstance(target, dict) else {}
    return target if isinstance(target, dict) else {}

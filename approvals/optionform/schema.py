"""JSON schemas for the form: named things become choices, which the model itself only checks."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from agents.catalogue import AgentSpec
from approvals.specdiff import OWN
from middleware.detectors import DETECTORS
from middleware.entry import Entry
from middleware.options.privacy import BUILT_IN
from middleware.predicates import PREDICATES

type Schema = dict[str, Any]

TOOL_NAME = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
ENV_NAME = r"^[A-Z_][A-Z0-9_]{0,79}$"
NAMED_BY_TOOL = frozenset({"interrupt_on", "allow"})  # maps whose keys are tools


def of_entry(entry: Entry, tools: Sequence[str], queues: Sequence[str] = ()) -> Schema:
    """Of the options of a middleware; `tools`: what the agent has, its own and those that are brought; `queues`: the
    groups that may be asked."""
    schema = copy.deepcopy(entry.options.model_json_schema())
    parts: Schema = schema.setdefault("$defs", {})
    if "Gate" in parts:
        for name in ("queue", "escalate_to"):
            parts["Gate"]["properties"][name]["x-offers"] = list(queues)
        parts["Gate"]["properties"]["when"] = _rules(parts["Gate"]["properties"]["when"], parts)
    if "pii_type" in schema.get("properties", {}):
        schema["properties"]["pii_type"]["x-offers"] = list(BUILT_IN)
    if "Detector" in parts:
        parts["Detector"]["properties"]["use"]["enum"] = list(DETECTORS)
    _name_tools(schema, list(tools))
    if "id" in schema.get("properties", {}):  # rarely needed: last
        schema["properties"]["id"] = schema["properties"].pop("id")
    return schema


def of_agent(tools: Sequence[str]) -> Schema:
    """Of an agent's own fields."""
    whole = AgentSpec.model_json_schema()
    properties: Schema = {name: copy.deepcopy(whole["properties"][name]) for name in OWN}
    properties["title"] |= {"minLength": 1, "maxLength": 120}
    properties["model"] |= {"minLength": 1, "maxLength": 200}
    properties["tools"] = {"type": "array", "items": {"type": "string", "enum": list(tools)}, "x-set": True}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in whole["required"] if name in properties],
    }
    _name_tools(schema, list(tools))
    return schema


def _rules(field: Schema, parts: Schema) -> Schema:
    """`when`: one of the named rules with its options."""
    branches = []
    for name, predicate in PREDICATES.items():
        options = predicate.options.model_json_schema()
        parts.update(options.pop("$defs", {}))
        use = {"use": {"const": name, "type": "string"}}
        branches.append(
            {
                "type": "object",
                "title": name,
                "additionalProperties": False,
                "properties": {**use, **options.get("properties", {})},
                "required": ["use", *options.get("required", ())],
            }
        )
    rest = {key: value for key, value in field.items() if key != "anyOf"}
    return {
        **rest,
        "anyOf": [*branches, {"type": "null"}],
        "discriminator": {"propertyName": "use"},
    }


def _name_tools(schema: Any, tools: list[str]) -> None:
    """Wherever the name of a tool is wanted, the agent's are offered; environment variables are marked."""
    if isinstance(schema, list):
        for part in schema:
            _name_tools(part, tools)
    if isinstance(schema, dict):
        _name_here(schema, tools)
        for part in schema.values():
            _name_tools(part, tools)


def _name_here(schema: Schema, tools: list[str]) -> None:
    items, alternatives = schema.get("items"), schema.get("anyOf")
    if isinstance(items, dict) and items.get("pattern") == TOOL_NAME:
        schema["items"] = items = {**items, "enum": tools}
    if isinstance(items, dict) and isinstance(items.get("enum"), list):
        schema["x-set"] = True
    if isinstance(alternatives, list) and {"type": "null"} in alternatives:
        for one in alternatives:
            if one.get("pattern") == TOOL_NAME:
                one["enum"] = tools
    for name, field in _properties(schema).items():
        if name in NAMED_BY_TOOL:
            field["x-keys"] = tools
        if name == "api_key_env":
            field["x-env"] = True


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return {k: v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}

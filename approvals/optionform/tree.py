"""The tree of fields of an options form."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.translation import gettext as _

from agents.words import gettext_noop
from approvals.argform.fields import humanize
from approvals.argform.pointer import escape
from approvals.argform.schema import resolve
from approvals.argform.values import text_of, to_json
from approvals.optionform.schema import Schema

type Kind = Literal[
    "text", "long", "integer", "number", "boolean", "enum", "json", "lines", "set", "object", "array", "map", "union"
]  # fmt: skip

NAMES: Mapping[str, str] = {  # of alternatives, by the title or the type of their schema
    "ModelRef": gettext_noop("A model with its address"),
    "string": gettext_noop("A text"),
    "array": gettext_noop("A list"),
    "object": gettext_noop("Named parts"),
    "Detector": gettext_noop("A detector by name"),
    "always": gettext_noop("Every call"),
    "never": gettext_noop("No call"),
    "amount_over": gettext_noop("An amount over a limit"),
    "amount_over_by_currency": gettext_noop("An amount over the limit of its currency"),
    "text_outside": gettext_noop("A text other than these"),
}
LABELS: Mapping[str, str] = {  # where the name of an option says too little
    "interrupt_on": gettext_noop("Tools that wait for a person"),
    "allowed_decisions": gettext_noop("Possible answers"),
    "when": gettext_noop("When it asks"),
    "queue": gettext_noop("Who decides"),
    "expires_in": gettext_noop("Time to decide"),
    "remind_after": gettext_noop("Remind after"),
    "on_expiry": gettext_noop("When nobody decided"),
    "escalate_to": gettext_noop("Pass on to"),
    "run_limit": gettext_noop("At most in one run"),
    "thread_limit": gettext_noop("At most in one case"),
    "on_limit": gettext_noop("At the limit"),
    "hard_cap": gettext_noop("Never more than"),
    "pii_type": gettext_noop("Kind of data"),
    "strategy": gettext_noop("What becomes of it"),
    "detector": gettext_noop("How it is found"),
    "system_prompt": gettext_noop("Instructions"),
    "api_key_env": gettext_noop("Environment variable of the key"),
    "base_url": gettext_noop("Address of the provider"),
    "model_options": gettext_noop("Further options of the model"),
    "title": gettext_noop("Title"),
    "arg": gettext_noop("Argument of the call"),
    "currency_arg": gettext_noop("Argument with the currency"),
    "value": gettext_noop("Limit"),
    "id": gettext_noop("Own name"),
}
WRITTEN = re.compile(
    r"prompt|description|instructions|criteria|_when$|_answer$|_message$"
)  # names of longer texts
GROUPS = frozenset({"object", "array", "map", "union"})
MAX_DEPTH = 8


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    is_chosen: bool
    note: str = ""


@dataclass
class Field:
    """One control, or a group of them. `value`: what it shows; a default where nothing is said (`present` False)."""

    pointer: str
    kind: Kind
    schema: Schema
    value: Any = None
    present: bool = True
    required: bool = False
    nullable: bool = False
    unknown: bool = False
    key: str = ""  # of a named part
    position: int = 0  # in a list, from 1
    length: int = 0  # of that list
    children: list[Field] = field(default_factory=list)
    branches: list[tuple[str, Any]] = field(default_factory=list)  # (label, what it begins with)
    branch: int = 0
    about: str = ""  # what the chosen alternative is
    text: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        return f"o{self.pointer}"

    @property
    def id(self) -> str:
        return "f-" + re.sub(r"[^\w-]", "-", self.name)

    @property
    def label(self) -> str:
        if self.key or self.position:
            return self.key or f"{self.position}"
        return _(LABELS.get(self.code) or humanize(self.code)) if self.code else ""

    @property
    def code(self) -> str:
        """As it is called in a spec."""
        return self.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")

    @property
    def hint(self) -> str:
        said = str(self.schema.get("description", ""))
        return _(said) if said and not self.key and not self.position else ""

    @property
    def is_multiline(self) -> bool:
        return self.kind in ("long", "json", "lines")

    @property
    def described_by(self) -> str:
        ids = (f"{self.id}-hint" if self.hint else "", f"{self.id}-error" if self.error else "")
        return " ".join(filter(None, ids))

    @property
    def input_mode(self) -> str:
        return {"integer": "numeric", "number": "decimal"}.get(self.kind, "")

    @property
    def options(self) -> list[Choice]:
        """Of a select. Holds the text itself, because a browser would pick the first for one that is not listed."""
        known = dict.fromkeys(text_of(value) for value in self.schema.get("enum", ()) if value is not None)
        labels = {text: text for text in known}
        if self.kind == "boolean":
            labels = {"true": _("Yes"), "false": _("No")}
        if self.nullable or self.text == "":
            labels = {"": "—", **labels}
        if self.text not in labels:
            labels = {self.text: _("%(value)s (not in the list)") % {"value": self.text}, **labels}
        return [Choice(value, label, value == self.text) for value, label in labels.items()]

    @property
    def boxes(self) -> list[Choice]:
        """Of a set: what may be ticked, and what is ticked without being known."""
        known = list(dict.fromkeys(str(value) for value in self.schema["items"].get("enum", ())))
        ticked = [str(value) for value in self.value] if isinstance(self.value, list) else []
        strange = [value for value in ticked if value not in known]
        return [
            *(Choice(value, value, value in ticked) for value in known),
            *(Choice(value, value, True, _("not known here")) for value in strange),
        ]

    @property
    def offers(self) -> list[str]:
        """Usual values of a text."""
        return list(self.schema.get("x-offers", ()))

    @property
    def is_short(self) -> bool:
        """Whether its boxes fit beside each other."""
        return sum(len(box.value) + 4 for box in self.boxes) < 48

    @property
    def keys(self) -> list[str]:
        """What a map may have besides what it has."""
        names = self.schema.get("propertyNames", {}).get("enum") or self.schema.get("x-keys") or []
        taken = self.value if isinstance(self.value, dict) else {}
        return [name for name in names if name not in taken]

    @property
    def keys_are_fixed(self) -> bool:
        return "enum" in self.schema.get("propertyNames", {})

    @property
    def opens(self) -> bool:
        """Whether its label is worth a line of its own."""
        return bool(self.pointer)


def walk(node: Field) -> Iterator[Field]:
    yield node
    for child in node.children:
        yield from walk(child)


def build(schema: Schema, value: Any) -> Field:
    return _Builder(schema).node(schema, value, "", required=True, present=True, depth=0)


class _Builder:
    def __init__(self, root: Schema) -> None:
        self.root = root

    def node(
        self, schema: Any, value: Any, pointer: str, *, required: bool, present: bool, depth: int, **more: Any
    ) -> Field:
        schema, alternatives, nullable = _read(schema, self.root)
        found = Field(
            pointer, "json", schema, value, present=present, required=required, nullable=nullable, **more
        )
        if depth > MAX_DEPTH:
            return _worded(found)
        if alternatives:
            return self._union(found, alternatives, depth)
        found.kind = kind_of(schema)
        if not _fits(found):
            found.kind = "json"
        match found.kind:
            case "object":
                found.children = list(self._members(found, depth + 1))
            case "array":
                found.children = list(self._items(found, depth + 1))
            case "map":
                found.children = list(self._named(found, depth + 1))
        return _worded(found)

    def _union(self, found: Field, alternatives: Sequence[Schema], depth: int) -> Field:
        found.kind = "union"
        found.branches = [(_branch_name(one, self.root), blank(one, self.root)) for one in alternatives]
        if found.nullable:
            found.branches.insert(0, (_("None"), None))
        tag = found.schema.get("discriminator", {}).get("propertyName", "")
        chosen = next((n for n, one in enumerate(alternatives) if _is(one, found.value, tag)), None)
        if found.value is None and found.nullable:
            return found
        if chosen is None and found.value is None:
            chosen, found.value = 0, blank(alternatives[0], self.root)
        if chosen is None:
            found.kind, found.branches = "json", []
            return _worded(found)
        found.branch = chosen + found.nullable
        inner = {**alternatives[chosen]}
        inner.pop("title", None)
        child = self.node(
            inner, found.value, found.pointer, required=found.required, present=found.present, depth=depth + 1
        )
        said = str(alternatives[chosen].get("description", ""))
        found.about = _(said) if said else ""
        child.schema = {**child.schema, "description": ""}
        found.children = [child]
        return found

    def _members(self, found: Field, depth: int) -> Iterator[Field]:
        value = found.value if isinstance(found.value, dict) else {}
        for key, schema in found.schema["properties"].items():
            if "const" in schema:
                continue  # it cannot be chosen, and comes with the alternative
            present = key in value
            shown = value[key] if present else default_of(schema, self.root)
            yield self.node(
                schema,
                copy.deepcopy(shown),
                f"{found.pointer}/{escape(key)}",
                required=key in found.schema.get("required", ()),
                present=present and found.present,
                depth=depth,
            )
        for key in value:
            if key not in found.schema["properties"]:
                yield self.node(
                    {}, value[key], f"{found.pointer}/{escape(key)}", required=False, present=True, depth=depth,
                    unknown=True,
                )  # fmt: skip

    def _items(self, found: Field, depth: int) -> Iterator[Field]:
        values = found.value if isinstance(found.value, list) else []
        fixed = found.schema.get("prefixItems")
        for n, item in enumerate(values):
            schema = fixed[n] if fixed else found.schema["items"]
            more = {} if fixed else {"position": n + 1, "length": len(values)}
            yield self.node(
                schema,
                item,
                f"{found.pointer}/{n}",
                required=True,
                present=found.present,
                depth=depth,
                **more,
            )

    def _named(self, found: Field, depth: int) -> Iterator[Field]:
        for key, item in (found.value or {}).items():
            yield self.node(
                value_schema(found.schema), item, f"{found.pointer}/{escape(key)}", required=True,
                present=found.present, depth=depth, key=key,
            )  # fmt: skip


def _read(schema: Any, root: Schema) -> tuple[Schema, list[Schema], bool]:
    """(schema without alternatives, the alternatives if there is a choice, whether null is one of them)"""
    schema = resolve(schema, root)
    listed = schema.get("anyOf") or schema.get("oneOf")
    if not listed:
        return schema, [], False
    outer = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
    flat = [one for part in listed for one in _flat(part, root)]
    real = [one for one in flat if one.get("type") != "null"]
    nullable = len(real) < len(flat)
    if all("enum" in one and "pattern" not in one for one in real):
        values = [value for one in real for value in one["enum"]]
        return {**outer, "type": "string", "enum": list(dict.fromkeys(values))}, [], nullable
    if len(real) > 1 and {one.get("type") for one in real} <= {"integer", "number"}:
        return {**outer, **real[-1], "type": "number"}, [], nullable
    if len(real) == 1 and (not nullable or _is_simple(real[0])):
        return {**real[0], **outer}, [], nullable
    return outer, real, nullable


def _flat(schema: Any, root: Schema) -> list[Schema]:
    schema = resolve(schema, root)
    listed = schema.get("anyOf")
    return [one for part in listed for one in _flat(part, root)] if listed else [schema]


def _is_simple(schema: Schema) -> bool:
    return schema.get("type") in ("string", "integer", "number", "boolean")


def kind_of(schema: Schema) -> Kind:
    if "enum" in schema:
        return "enum"
    match schema.get("type"):
        case "string":
            return "text"
        case "integer":
            return "integer"
        case "number":
            return "number"
        case "boolean":
            return "boolean"
        case "object":
            if schema.get("properties"):
                return "object"
            return "map" if value_schema(schema) else "json"
        case "array":
            return _list_kind(schema)
    return "json"


def _list_kind(schema: Schema) -> Kind:
    if schema.get("x-set"):
        return "set"
    if schema.get("prefixItems"):
        return "array"
    items = schema.get("items")
    if not isinstance(items, dict):
        return "json"
    if items.get("type") == "string" and "enum" not in items:
        return "lines"
    return "json" if items.get("type") == "object" and not items.get("properties") else "array"


def value_schema(schema: Schema) -> Schema | None:
    """Of the parts of a map; None if anything goes."""
    found = schema.get("additionalProperties")
    if isinstance(found, dict):
        return found
    return next(iter(schema.get("patternProperties", {}).values()), None)


def _fits(found: Field) -> bool:
    value, kind = found.value, found.kind
    if value is None:
        return found.nullable or not found.present or kind not in GROUPS
    match kind:
        case "object" | "map":
            return isinstance(value, dict)
        case "set" | "array" | "lines":
            if not isinstance(value, list):
                return False
            if kind == "array" and (fixed := found.schema.get("prefixItems")):
                return len(fixed) == len(value)
            texts = all(isinstance(item, str) for item in value)
            return kind == "array" or (texts and (kind == "set" or not any("\n" in item for item in value)))
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "text" | "long":
            return isinstance(value, str)
        case "enum":
            return not isinstance(value, dict | list)
    return True


def _worded(found: Field) -> Field:
    """What its control shows."""
    if found.kind == "lines":
        found.text = "\n".join(found.value or [])
    elif found.kind == "json":
        found.text = "" if found.value is None and not found.required else to_json(found.value)
    elif found.kind not in GROUPS and found.kind != "set":
        found.text = text_of(found.value)
        if found.kind == "text" and ("\n" in found.text or WRITTEN.search(found.code)):
            found.kind = "long"
    return found


def _is(schema: Schema, value: Any, tag: str) -> bool:
    """Whether a value belongs to an alternative, as far as its shape tells."""
    if tag:
        named = schema.get("properties", {}).get(tag, {})
        wanted = named.get("const", named.get("default"))
        return isinstance(value, dict) and value.get(tag, named.get("default")) == wanted
    if "const" in schema or "enum" in schema:
        return isinstance(value, str) and (
            "pattern" in schema or value in schema.get("enum", [schema.get("const")])
        )
    shapes: Mapping[str, type | tuple[type, ...]] = {
        "string": str, "array": list, "object": dict, "boolean": bool, "integer": int, "number": (int, float),
    }  # fmt: skip
    shape = shapes.get(str(schema.get("type")))
    if shape is None or not isinstance(value, shape):
        return False
    fixed = schema.get("properties", {}).get("use", {}).get("const")
    return fixed is None or (isinstance(value, dict) and value.get("use", fixed) == fixed)


def _branch_name(schema: Schema, root: Schema) -> str:
    """What an alternative is called in its select."""
    if schema.get("title") in NAMES:
        return _(NAMES[schema["title"]])
    tag = schema.get("properties", {}).get("use", {})
    if isinstance(tag, dict) and "const" in tag:
        return str(tag["const"])
    if schema.get("prefixItems"):
        return _("One threshold")
    if "enum" in schema and "pattern" not in schema:
        return _("One of these")
    return _(NAMES[str(schema.get("type"))]) if str(schema.get("type")) in NAMES else str(schema.get("type"))


def default_of(schema: Any, root: Schema) -> Any:
    schema = resolve(schema, root)
    if "default" in schema:
        return copy.deepcopy(schema["default"])
    return {"object": {}, "array": []}.get(str(schema.get("type")))


def blank(schema: Any, root: Schema) -> Any:
    """What a new part begins with; what must be filled in is left out."""
    schema = resolve(schema, root)
    if "default" in schema:
        return copy.deepcopy(schema["default"])
    if "const" in schema:
        return schema["const"]
    if schema.get("prefixItems"):
        return [blank(one, root) for one in schema["prefixItems"]]
    if listed := schema.get("anyOf") or schema.get("oneOf"):
        return blank(listed[0], root)
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {k: v["const"] for k, v in schema.get("properties", {}).items() if "const" in v}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
    return ""

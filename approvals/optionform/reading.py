"""A posted options form: read back, grown or switched, and what the model says of it put at its field."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from django.utils.translation import gettext as _
from pydantic import ValidationError

from approvals import cleaning, phrases
from approvals.argform.fields import Node
from approvals.argform.pointer import Json, escape, get, parts, put
from approvals.argform.values import InvalidText, parse
from approvals.optionform.schema import ENV_NAME, Schema
from approvals.optionform.tree import Field, blank, build, value_schema, walk

type Act = Literal["add", "remove", "up", "down", "switch"]

ACTS = frozenset({"add", "remove", "up", "down", "switch"})
NOTHING = object()


class Posted(Protocol):
    """Django's `QueryDict`."""

    def __contains__(self, name: object, /) -> bool: ...
    def getlist(self, name: str, /) -> list[Any]: ...


def _text_of(posted: Posted, name: str) -> str:
    """The last one of that name, as `QueryDict` has it."""
    sent = posted.getlist(name)
    return str(sent[-1]) if sent else ""


@dataclass
class Read:
    value: Any
    errors: dict[str, str] = field(default_factory=dict)  # by pointer


def read(tree: Field, posted: Posted) -> Read:
    """The value that the form says, as far as its texts can be read. What is not posted stays."""
    found = Read(None)
    value = _value(tree, posted, found.errors)
    found.value = {} if value is NOTHING else value
    return found


def _value(node: Field, posted: Posted, errors: dict[str, str]) -> Any:
    """`NOTHING`: it is not said, so the default holds."""
    match node.kind:
        case "union":
            return _value(node.children[0], posted, errors) if node.children else _kept(node)
        case "object":
            return _object(node, posted, errors)
        case "map":
            return _unless_default(node, {child.key: _said(child, posted, errors) for child in node.children})
        case "array":
            return _unless_default(node, [_said(child, posted, errors) for child in node.children])
        case "set":
            return _set(node, posted)
        case "lines":
            return _lines(node, posted, errors)
    return _leaf(node, posted, errors)


def _said(node: Field, posted: Posted, errors: dict[str, str]) -> Any:
    """Of a part that is there whatever is said of it."""
    value = _value(node, posted, errors)
    return node.value if value is NOTHING else value


def _object(node: Field, posted: Posted, errors: dict[str, str]) -> Any:
    value = dict(node.value) if isinstance(node.value, dict) else {}
    for child in node.children:
        key = parts(child.pointer)[-1]
        said = _value(child, posted, errors)
        if said is not NOTHING:
            value[key] = said
        elif child.present:
            value.pop(key, None)
    return _unless_default(node, value)


def _unless_default(node: Field, value: Any) -> Any:
    return NOTHING if not node.present and not node.required and value == node.value else value


def _kept(node: Field) -> Any:
    return node.value if node.present else NOTHING


def _set(node: Field, posted: Posted) -> Any:
    if node.name not in posted:  # an empty field of that name says that the boxes were shown
        return _kept(node)
    old = [str(value) for value in node.value] if isinstance(node.value, list) else []
    ticked = list(dict.fromkeys(text for text in posted.getlist(node.name) if text))
    if set(ticked) == set(old):
        return _kept(node)
    return [*(text for text in old if text in ticked), *(text for text in ticked if text not in old)]


def _lines(node: Field, posted: Posted, errors: dict[str, str]) -> Any:
    text = _posted(node, posted, errors)
    if text is None or text == node.text:
        return _kept(node)
    return [line.strip() for line in text.split("\n") if line.strip()]


def _leaf(node: Field, posted: Posted, errors: dict[str, str]) -> Any:
    text = _posted(node, posted, errors)
    if text is None or (text == node.text and not (node.required and text == "")):
        return _kept(node)
    if text == "" and not node.required:
        return None if node.nullable and node.schema.get("default") is not None else NOTHING
    if text == "":
        errors[node.pointer] = _("Fill in this field.")
        return _kept(node)
    if node.schema.get("x-env") and not re.fullmatch(ENV_NAME, text):
        errors[node.pointer] = _(
            "Enter the name of an environment variable in capitals, never the key itself."
        )
        return _kept(node)
    try:
        return parse(_as_argument(node), text)
    except InvalidText as error:
        errors[node.pointer] = str(error)
        return _kept(node)


def _posted(node: Field, posted: Posted, errors: dict[str, str]) -> str | None:
    """The text as it is compared: browsers send CRLF."""
    if node.name not in posted:
        return None
    text = _text_of(posted, node.name).replace("\r\n", "\n").replace("\r", "\n")
    if "\x00" in text:
        errors[node.pointer] = _("Remove the NUL character.")
        return None
    return text


def _as_argument(node: Field) -> Node:
    """What `argform` parses. A choice that is not listed stays possible only as long as nobody changes it."""
    choices = tuple(value for value in node.schema.get("enum", ()) if value is not None)
    value = node.value if isinstance(node.value, int | float) and node.kind == "number" else None
    if node.kind == "number" and value is None:
        value = 0  # whole numbers stay whole
    return Node(node.pointer, node.kind, node.label, node.schema, value, node.nullable, choices)


# --- growing, shrinking, switching ----------------------------------------------------------------------------------------
def act(schema: Schema, value: Any, did: Act, pointer: str, key: str = "", to: int = 0) -> Any:
    """The value after a press on one of the form's buttons. Raises `ValueError` for a place that has no such button.

    Args:
        did: "add" to the list or map at `pointer`; "remove", "up" or "down" of the part at `pointer`; "switch" the
            choice at `pointer` to its alternative number `to`.
        key: Name of the new part of a map.
    """
    tree = build(schema, value)
    value = _spelled_out(tree, copy.deepcopy(value), pointer)
    if did == "add":
        node = _at(tree, pointer, ("array", "map"))
        return put(value, pointer, _grown(node, schema, key))
    if did == "switch":
        node = _at(tree, pointer, ("union",))
        if not 0 <= to < len(node.branches):
            raise ValueError("no such alternative")
        return put(value, pointer, copy.deepcopy(node.branches[to][1]))
    return _without_or_moved(value, did, pointer)


def _grown(node: Field, schema: Schema, key: str) -> Any:
    if node.kind == "array":
        if node.schema.get("prefixItems"):
            raise ValueError("this list has a fixed length")
        return [*(node.value or []), blank(node.schema["items"], schema)]
    if not key.strip() or key in (node.value or {}):
        raise ValueError("a new part needs a new name")
    return {**(node.value or {}), key.strip(): blank(value_schema(node.schema), schema)}


def _without_or_moved(value: Any, did: Act, pointer: str) -> Any:
    parent, _slash, last = pointer.rpartition("/")
    held = get(value, parent)
    if isinstance(held, dict) and did == "remove":
        name = parts(pointer)[-1]
        held.pop(name, None)
        return value
    if not isinstance(held, list) or not last.isdigit() or int(last) >= len(held):
        raise ValueError(f"{pointer} is not a part of a list")
    n = int(last)
    item = held.pop(n)
    if did != "remove":
        held.insert(max(0, n - 1) if did == "up" else n + 1, item)
    return value


def _at(tree: Field, pointer: str, kinds: Sequence[str]) -> Field:
    found = next((node for node in walk(tree) if node.pointer == pointer and node.kind in kinds), None)
    if found is None:
        raise ValueError(f"there is nothing to change at {pointer}")
    return found


def _spelled_out(tree: Field, value: Any, pointer: str) -> Any:
    """Defaults on the way become part of the value, else there would be nothing to change."""
    way = [node for node in walk(tree) if node.pointer and (pointer + "/").startswith(node.pointer + "/")]
    for node in way:
        if get(value, node.pointer) is None and node.value is not None:
            value = put(value, node.pointer, copy.deepcopy(node.value))
    return value


# --- what the model says --------------------------------------------------------------------------------------------------
def place(tree: Field, error: ValidationError) -> dict[str, str]:
    """Pointer -> sentence. What belongs to no single field is at ""."""
    found: dict[str, str] = {}
    for one in error.errors():
        found.setdefault(_pointer(tree, one["loc"]), sentence(one))
    return found


def _pointer(node: Field, loc: Sequence[int | str]) -> str:
    """Down the tree as far as the parts of `loc` name something; tags of alternatives name nothing."""
    for part in loc:
        below = {child.pointer: child for child in _through(node)}
        wanted = f"{node.pointer}/{escape(str(part))}"
        if wanted in below:
            node = below[wanted]
    return node.pointer


def _through(node: Field) -> list[Field]:
    """Children, those of a choice being its alternative's."""
    found = list(node.children)
    while node.kind == "union" and node.children:
        node = node.children[0]
        found += node.children
    return found


def sentence(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "missing" | "string_too_short":
            return _("Fill in this field.")
        case "too_short":
            return _("Choose or add at least one.")
        case "greater_than_equal":
            return _("Enter at least %(limit)s.") % {"limit": context["ge"]}
        case "greater_than":
            return _("Enter more than %(limit)s.") % {"limit": context["gt"]}
        case "less_than_equal":
            return _("Enter at most %(limit)s.") % {"limit": context["le"]}
        case "string_too_long":
            return _("Shorten it to %(limit)s characters.") % {"limit": context["max_length"]}
        case "string_pattern_mismatch" if str(context["pattern"]).startswith("^[a-z][a-z0-9"):
            return _("Small letters, digits and hyphens, beginning with a letter.")
        case "string_pattern_mismatch":
            return _("It must match the pattern %(pattern)s.") % {"pattern": context["pattern"]}
        case "extra_forbidden":
            return _("There is no such option: remove it.")
        case "literal_error" | "union_tag_invalid":
            return _("Pick one of the listed values.")
        case "value_error":
            return _own_words(str(context.get("error", error["msg"])))
    return str(error["msg"])


def _own_words(text: str) -> str:
    """A sentence of the options' own checks."""
    return phrases.sentence(_(text))


def show_errors(tree: Field, errors: Mapping[str, str], posted: Posted | None = None) -> list[str]:
    """Put them at their fields, with what was typed there; what has no field comes back."""
    homeless = dict(errors)
    for node in walk(tree):
        if (
            posted is not None
            and node.name in posted
            and node.kind not in ("set", "union", "object", "array", "map")
        ):
            node.text = _text_of(posted, node.name)
        if node.pointer in homeless and node.pointer and not (node.kind == "union" and node.children):
            node.error = homeless.pop(node.pointer)
    return list(homeless.values())


def as_base(value: Json) -> str:
    """The value a form was rendered from, for its hidden field."""
    return json.dumps(value, ensure_ascii=False)


def from_base(text: str, most: int = 200_000) -> Any:
    """Raises `ValueError`."""
    if len(text) > most:
        raise ValueError("too large")
    value = json.loads(text)
    if not isinstance(value, dict) or cleaning.is_deep(value):
        raise ValueError("no object of a sensible depth")
    return value

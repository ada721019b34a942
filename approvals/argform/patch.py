"""Posted form -> new arguments, what changed, what is wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from django.utils.translation import gettext as _

from approvals.argform.fields import Node, build, leaves
from approvals.argform.pointer import Json, Schema, escape, get, is_within, put
from approvals.argform.schema import classify
from approvals.argform.values import InvalidText, parse, show

type ListOperation = Literal["add", "remove", "up", "down"]


@dataclass(frozen=True)
class Change:
    pointer: str
    old: Json
    new: Json


@dataclass
class Edit:
    args: Json
    changes: list[Change] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)  # by name of the form control


def apply_edit(
    schema: Schema,
    proposed: Json,
    posted: Mapping[str, str],
    *,
    locked: frozenset[str] = frozenset(),
    masked: frozenset[str] = frozenset(),
) -> Edit:
    """Read a posted form as a patch. Validation by the tool's own model comes after this."""
    edit = Edit(copy.deepcopy(proposed))
    for node in leaves(build(schema, proposed, locked=locked, masked=masked)):
        if node.name in posted:
            _apply(node, _newlines(posted[node.name]), edit)
    edit.changes = list(compare(proposed, edit.args))
    _check_locks(edit, proposed, locked)
    return edit


def _apply(node: Node, text: str, edit: Edit) -> None:
    is_untouched = text == _newlines(show(node))
    stays_absent = text == "" and not node.present
    if is_untouched or stays_absent:
        return
    if node.locked:
        edit.errors[node.name] = _("Locked by a rule: reject the call to change it.")
        return
    try:
        edit.args = put(edit.args, node.pointer, parse(node, text))
    except InvalidText as error:
        edit.errors[node.name] = str(error)


def _check_locks(edit: Edit, proposed: Json, locked: frozenset[str]) -> None:
    """A raw JSON field can hold a locked value: look at the outcome, not only at the field."""
    for pointer in locked:
        if list(compare(get(proposed, pointer), get(edit.args, pointer))):
            edit.errors.setdefault(f"args{pointer}", _("Locked by a rule: reject the call to change it."))


def compare(old: Json, new: Json, pointer: str = "") -> Iterator[Change]:
    """Every place where two documents differ. 1, 1.0, True and "1" are four different values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old | new:
            below = f"{pointer}/{escape(key)}"
            if key in old and key in new:
                yield from compare(old[key], new[key], below)
            else:
                yield Change(below, old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from compare(before, after, f"{pointer}/{i}")
    elif old != new or type(old) is not type(new):
        yield Change(pointer, old, new)


def change_list(schema: Schema, args: Json, operation: ListOperation, pointer: str) -> Json:
    """Add an item to the list at `pointer`, or remove or move the item at `pointer`. Used by the /draft/ view."""
    args = copy.deepcopy(args)
    if operation == "add":
        items = get(args, pointer)
        new = _blank(_node_at(build(schema, args), pointer), schema)
        return put(args, pointer, [*(items if isinstance(items, list) else []), new])
    parent, _, last = pointer.rpartition("/")
    items, i = get(args, parent), int(last)
    if not isinstance(items, list) or not 0 <= i < len(items):
        raise ValueError(f"{pointer} is not an item of a list")
    item = items.pop(i)
    if operation != "remove":
        items.insert(max(0, i - 1) if operation == "up" else i + 1, item)
    return args


def _node_at(node: Node, pointer: str) -> Node:
    if node.pointer == pointer and node.kind == "array":
        return node
    for child in node.children:
        if is_within(pointer, frozenset({child.pointer})):
            return _node_at(child, pointer)
    raise ValueError(f"{pointer} is not a list")


def _blank(node: Node, root: Schema) -> Json:
    """A starting value for a new item, whose empty fields the reviewer then fills in."""
    kind = classify(node.schema["items"], root)
    if "default" in kind.schema:
        default: Json = copy.deepcopy(kind.schema["default"])
        return default
    empty: dict[str, Json] = {"object": {}, "array": [], "text": "", "long": ""}
    return empty.get(kind.name)


def _newlines(text: str) -> str:
    """Browsers send CRLF, the proposal may hold anything. Neither difference is an edit."""
    return text.replace("\r\n", "\n").replace("\r", "\n")

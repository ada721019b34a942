"""The tree of fields for one proposed call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from approvals.argform.pointer import Json, Schema, contains_any, escape, is_within
from approvals.argform.schema import classify

MAX_DEPTH = 6
MAX_NODES = 200

SCALAR_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "decimal": (int, float, str),
    "boolean": (bool,),
}


@dataclass
class Node:
    """One field, or a group of fields. `pointer` says which part of the arguments it is."""

    pointer: str
    kind: str
    label: str
    schema: Schema
    value: Json = None
    nullable: bool = False
    choices: tuple[Json, ...] = ()
    required: bool = False
    present: bool = True
    locked: bool = False
    masked: bool = False
    unknown: bool = False
    children: list[Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of its form control. The prefix keeps it clear of `rev`, `key` and the CSRF token."""
        return f"args{self.pointer}"

    @property
    def is_group(self) -> bool:
        return self.kind in ("object", "array")


def build(
    schema: Schema,
    value: Json,
    *,
    locked: frozenset[str] = frozenset(),
    masked: frozenset[str] = frozenset(),
) -> Node:
    """Pointers in `locked` and `masked` cover everything below them."""
    return _Builder(schema, locked, masked).node(schema, value, "", "Arguments", depth=0)


def leaves(node: Node) -> Iterator[Node]:
    if not node.is_group:
        yield node
    for child in node.children:
        yield from leaves(child)


class _Builder:
    def __init__(self, root: Schema, locked: frozenset[str], masked: frozenset[str]) -> None:
        self.root = root
        self.locked = locked
        self.masked = masked
        self.count = 0

    def node(self, schema: Schema, value: Json, pointer: str, name: str, *, depth: int) -> Node:
        self.count += 1
        kind = classify(schema, self.root, value)
        node = Node(
            pointer,
            kind.name,
            label(kind.schema, name),
            kind.schema,
            value,
            nullable=kind.nullable,
            choices=kind.choices,
            locked=is_within(pointer, self.locked),
        )
        if depth > MAX_DEPTH or self.count > MAX_NODES or not _fits(node):
            node.kind = "json"  # too deep, or value and schema disagree: show the truth
        if node.kind == "object":
            node.children = list(self._members(node, depth + 1))
        elif node.kind == "array":
            node.children = list(self._items(node, depth + 1))
        return self._masked(node)

    def _members(self, node: Node, depth: int) -> Iterator[Node]:
        value = node.value if isinstance(node.value, dict) else {}
        properties = node.schema["properties"]
        required = node.schema.get("required", ())
        for key, schema in properties.items():
            child = self.node(schema, value.get(key), f"{node.pointer}/{escape(key)}", key, depth=depth)
            child.present = key in value
            child.required = key in required
            yield child
        for key in value:
            if key not in properties:
                child = self.node({}, value[key], f"{node.pointer}/{escape(key)}", key, depth=depth)
                child.unknown = True
                yield child

    def _items(self, node: Node, depth: int) -> Iterator[Node]:
        items = node.value if isinstance(node.value, list) else []
        for i, item in enumerate(items):
            yield self.node(node.schema["items"], item, f"{node.pointer}/{i}", str(i + 1), depth=depth)

    def _masked(self, node: Node) -> Node:
        """A raw JSON field that contains a masked value is masked as a whole."""
        hides_one = node.kind == "json" and contains_any(node.pointer, self.masked)
        node.masked = hides_one or is_within(node.pointer, self.masked)
        return node


def _fits(node: Node) -> bool:
    value = node.value
    if value is None or node.kind == "json":
        return True
    if node.kind == "object":
        return isinstance(value, dict)
    if node.kind == "array":
        return isinstance(value, list)
    if node.kind == "enum":
        return not isinstance(value, dict | list)
    if isinstance(value, bool) != (node.kind == "boolean"):
        return False
    return isinstance(value, SCALAR_TYPES.get(node.kind, (str,)))


def label(schema: Schema, name: str) -> str:
    """The schema's title, unless it was only generated from the name."""
    title = schema.get("title", "")
    plain_name = re.sub(r"[_\-]", "", name).lower()
    is_generated = title.replace(" ", "").lower() == plain_name
    return title if title and not is_generated and name != "Arguments" else humanize(name)


def humanize(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.sub(r"[_\-]+", " ", spaced).strip().capitalize()

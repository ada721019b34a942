"""Tree of fields -> HTML, through templates/argform/. Nothing here decides what an edit means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from approvals.argform.diff import inline_diff
from approvals.argform.fields import Node
from approvals.argform.values import show, text_of

INPUT_TYPES = {"date": "date", "time": "time", "email": "email", "url": "url"}
INPUT_MODES = {"integer": "numeric", "number": "decimal", "decimal": "decimal"}


@dataclass(frozen=True)
class Option:
    value: str
    label: str
    is_selected: bool


@dataclass(frozen=True)
class FieldContext:
    """What templates/argform/field.html needs, and nothing it would have to work out."""

    node: Node
    id: str
    text: str
    error: str
    options: list[Option]
    prefix: str = ""

    @property
    def original(self) -> str:
        return show(self.node)

    @property
    def diff(self) -> SafeString | None:
        """What was typed against what was proposed."""
        if self.text.replace("\r\n", "\n") == self.original.replace("\r\n", "\n"):
            return None
        return inline_diff(self.original, self.text)

    @property
    def hint(self) -> str:
        described = str(self.node.schema.get("description", ""))
        return _(described) if described else ""

    @property
    def described_by(self) -> str:
        ids = [
            f"{self.id}-hint" if self.hint and not self.node.locked else "",
            f"{self.id}-error" if self.error else "",
        ]
        return " ".join(filter(None, ids))

    @property
    def is_multiline(self) -> bool:
        return self.node.kind in ("long", "json")

    @property
    def input_type(self) -> str:
        return INPUT_TYPES.get(self.node.kind, "text")

    @property
    def input_mode(self) -> str:
        return INPUT_MODES.get(self.node.kind, "")


def render(
    node: Node,
    *,
    errors: Mapping[str, str] | None = None,
    posted: Mapping[str, str] | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> SafeString:
    """`posted` wins over the value, so a form that comes back with errors shows what the person typed. `prefixes`:
    pointer -> what stands before the field, such as a currency."""
    errors, posted, prefixes = errors or {}, posted or {}, prefixes or {}
    if node.is_group:
        children = [render(child, errors=errors, posted=posted, prefixes=prefixes) for child in node.children]
        return render_to_string("argform/group.html", {"node": node, "children": children})
    text = posted.get(node.name, show(node))
    field = FieldContext(
        node=node,
        id="f-" + re.sub(r"[^\w-]", "-", node.name),
        text=text,
        error=errors.get(node.name, ""),
        options=options(node, text),
        prefix=prefixes.get(node.pointer, ""),
    )
    return render_to_string("argform/field.html", {"field": field})


def options(node: Node, text: str) -> list[Option]:
    """Always holds `text` itself: a browser would silently pick the first option for a value that is not listed."""
    if node.kind == "boolean":
        known = {"true": _("Yes"), "false": _("No")}
    elif node.kind == "enum":
        known = {text_of(choice): text_of(choice) for choice in node.choices}
    else:
        return []
    if node.nullable or not node.required or text == "":
        known = {"": "—", **known}
    if text not in known:
        known = {text: _("%(value)s (not in the list)") % {"value": text}, **known}
    return [Option(value, label, value == text) for value, label in known.items()]

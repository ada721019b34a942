"""Whether a published version can still be rebuilt by the code that is installed, and if not, what differs. Light."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from agents.catalogue import AgentSpec, fingerprint, tool_marks
from agents.words import gettext_noop

type Marks = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """English message id with `%(name)s` places, as in checks."""

    text: str
    params: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text % self.params


UNREADABLE = gettext_noop("its stored form cannot be read by this version of Counterseal")
TOOL_GONE = gettext_noop("there is no tool %(tool)s any more")
EFFECT = gettext_noop("%(tool)s has another effect, or treats repeats differently")
ARGUMENT_GONE = gettext_noop("%(tool)s takes no %(name)s any more")
ARGUMENT_NEW = gettext_noop("%(tool)s also takes %(name)s now")
ARGUMENT_CHANGED = gettext_noop("%(tool)s reads %(name)s differently")
SCHEMA = gettext_noop("%(tool)s takes other arguments")
SOMETHING = gettext_noop("the code of its tools changed")


def differences(spec: Mapping[str, Any], stored: str, marks: Marks) -> list[Difference]:
    """Empty: a run of this version can be driven. `stored` is its fingerprint, `marks` its tools at that time."""
    try:
        known = AgentSpec.model_validate(spec)
    except ValidationError:
        return [Difference(UNREADABLE)]
    if fingerprint(known) == stored:
        return []
    now = tool_marks(known)
    gone = [Difference(TOOL_GONE, {"tool": name}) for name in known.tools if name not in now]
    return [*gone, *_changed(marks, now)] or [Difference(SOMETHING)]


def _changed(then: Marks, now: Marks) -> Iterator[Difference]:
    for tool in sorted(then.keys() & now.keys()):
        if then[tool] == now[tool]:
            continue
        found = list(_arguments(tool, _properties(then[tool]), _properties(now[tool])))
        if list(then[tool][:2]) != list(now[tool][:2]):
            found.append(Difference(EFFECT, {"tool": tool}))
        yield from found or [Difference(SCHEMA, {"tool": tool})]


def _properties(mark: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = mark[2].get("properties", {})
    return found


def _arguments(tool: str, then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in sorted(then.keys() | now.keys()):
        if then.get(name) == now.get(name):
            continue
        text = ARGUMENT_GONE if name not in now else ARGUMENT_NEW if name not in then else ARGUMENT_CHANGED
        yield Difference(text, {"tool": tool, "name": name})

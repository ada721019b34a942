"""A spec as a file: read with older spellings, looked at before it is published. Light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.catalogue import AgentSpec, all_tools, tools_of
from middleware.legacy import Note, modernise
from middleware.stack import Lint, lint


class BadSpec(ValueError):
    """This is no spec of an agent; the text says why."""


@dataclass(frozen=True)
class Imported:
    """A spec that was read, and what became of older spellings."""

    spec: AgentSpec
    notes: tuple[Note, ...]


def read(data: Any) -> Imported:
    """From JSON. Raises `BadSpec`."""
    if not isinstance(data, Mapping):
        raise BadSpec("a spec is a JSON object")
    given = dict(data)
    given.pop("$schema", None)
    listed, known = given.get("middleware", []), all_tools()
    reads = [n for n in given.get("tools", []) if n in known and known[n].effect == "read"]
    notes: list[Note] = []
    if isinstance(listed, list) and all(isinstance(entry, Mapping) for entry in listed):
        entries = []
        for entry in listed:
            new, told = modernise(entry, reads=reads, model=str(given.get("model", "")))
            entries.append(new)
            notes += told
        given["middleware"] = entries
    try:
        return Imported(AgentSpec.model_validate(given), tuple(notes))
    except ValidationError as error:
        reasons = (f"{'.'.join(map(str, e['loc'])) or 'spec'}: {e['msg']}" for e in error.errors())
        raise BadSpec("; ".join(reasons)) from error


def examine(spec: AgentSpec) -> list[Lint]:
    """Everything that is wrong or doubtful about a spec, errors first."""
    known = all_tools()
    missing = [name for name in tools_of(spec) if name not in known]
    if missing:
        return [Lint("error", "no-facts", {"tool": name}) for name in missing]
    tools = {name: known[name] for name in tools_of(spec)}
    return lint(spec.middleware, tools, model=spec.model, own=spec.tools)

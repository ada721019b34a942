"""Every middleware an agent's spec may name: options, hooks and tools as data, the class only when it is built. Light.

A new entry of a package is one more `Entry` in the module of its family, an options model under `options/` and a
factory under `factories/`. An own one is one file in `middleware/own/` (`manage.py new_middleware NAME`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from middleware import own
from middleware.catalogue import context, files, models, people, privacy, providers, tools
from middleware.entry import (
    HOOKS,
    AddedTool,
    BadEntry,
    Entry,
    Hook,
    Middleware,
    NotProvided,
    Surroundings,
)

__all__ = [
    "ENTRIES", "HOOKS", "AddedTool", "BadEntry", "Entry", "Hook", "Middleware", "NotProvided", "Surroundings",
    "brought", "describe", "parse",
]  # fmt: skip

_FAMILIES = (people, models, tools, context, privacy, files, providers)

ENTRIES: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (*(entry for family in _FAMILIES for entry in family.ENTRIES), *own.entries())
}


def parse(spec_entry: Mapping[str, Any]) -> tuple[Entry, Any]:
    """One element of `AgentSpec.middleware` -> (entry, its options). Raises `BadEntry` with every reason."""
    given = dict(spec_entry)
    name = given.pop("use", None)
    entry = ENTRIES.get(name) if isinstance(name, str) else None
    if entry is None:
        raise BadEntry(f"there is no middleware {name!r}; known are {', '.join(sorted(ENTRIES))}")
    try:
        return entry, entry.options.model_validate(given)
    except ValidationError as error:
        reasons = (f"{place_of(e['loc'], given) or 'options'}: {e['msg']}" for e in error.errors())
        raise BadEntry(f"{name}: {'; '.join(dict.fromkeys(reasons))}") from error


def place_of(loc: Sequence[int | str], given: Any) -> str:
    """Where in what was given: pydantic also names the alternatives that it tried."""
    kept, here = [], given
    for at, part in enumerate(loc):
        is_key = isinstance(here, Mapping) and part in here
        is_index = isinstance(here, Sequence) and isinstance(part, int) and part < len(here)
        if is_key or is_index:
            kept.append(str(part))
            here = here[part]
        elif at == len(loc) - 1 and isinstance(here, Mapping) and str(part).isidentifier():
            kept.append(str(part))  # missing, or of the whole
    return ".".join(kept)


def brought() -> dict[str, AddedTool]:
    """Writes that a middleware can bring, by their usual name: what pages say about them."""
    return {tool.name: tool for tool in files.WRITES}


def describe() -> list[dict[str, Any]]:
    """The catalogue as JSON."""
    return [
        {
            "name": entry.name,
            "label": entry.label,
            "family": entry.family,
            "summary": entry.summary,
            "help": entry.help,
            "hooks": list(entry.hooks),
            "options_schema": entry.options.model_json_schema(),
            "notes": list(entry.notes),
            "available": entry.unavailable() is None,
            "reason": entry.unavailable(),
        }
        for entry in ENTRIES.values()
    ]

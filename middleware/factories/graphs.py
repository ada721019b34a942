"""Compiled graphs by name, for sub-agents that are more than a prompt. A package registers its own when imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from middleware.entry import NotProvided

type Make = Callable[[], Any]

_GRAPHS: dict[str, Make] = {}


def register_graph(name: str, make: Make) -> None:
    """`make()` gives a compiled graph whose state has "messages". Raises `ValueError` if the name is taken."""
    if _GRAPHS.setdefault(name, make) is not make:
        raise ValueError(f"the graph {name} is taken")


def graph(name: str) -> Any:
    if name not in _GRAPHS:
        raise NotProvided(f"there is no graph {name!r}; known are {', '.join(sorted(_GRAPHS)) or 'none'}")
    return _GRAPHS[name]()

"""The team's own middleware: one file each, made by `manage.py new_middleware NAME`, found by itself. Light.

A file may import LangChain under `TYPE_CHECKING` only, or inside its hooks: the web process reads this folder too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from middleware.entry import Entry

FOLDERS_ENV = (
    "COUNTERSEAL_OWN_MIDDLEWARE"  # a package beside this one; for tests and for teams that keep theirs apart
)
HELPERS = frozenset({"base", "building", "template"})


def packages() -> tuple[str, ...]:
    named = os.environ.get(FOLDERS_ENV, "")
    return ("middleware.own", *(name.strip() for name in named.split(",") if name.strip()))


def entries() -> Iterator[Entry]:
    """One for each file, by its name."""
    for package in packages():
        for module in sorted(iter_modules(import_module(package).__path__), key=lambda found: found.name):
            if module.name not in HELPERS and not module.name.startswith("_"):
                yield import_module(f"{package}.{module.name}").OWN.entry(package, module.name)

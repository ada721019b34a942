"""Copies for display and search of what Postgres cannot hold: `text` and `jsonb` refuse NUL and lone surrogates.

The bytes that count are kept elsewhere, untouched (`ApprovalRequest.canonical`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

SHAPELESS = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs", "Mn"})
FILLERS = "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols that are drawn as nothing
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def text(value: str) -> str:
    """Unstorable characters spelled out: ⟨U+0000⟩."""
    return UNSTORABLE.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", value)


def is_blank(value: str) -> bool:
    """Whether nobody would see anything: only spaces, control characters and characters without a shape."""
    return all(c in FILLERS or unicodedata.category(c) in SHAPELESS for c in value)


def json(value: Any) -> Any:
    """The same for every string of a JSON value; numbers beyond 64 bits become text."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


def is_deep(value: Any, most: int = 60) -> bool:
    """Whether JSON is nested deeper than anybody writes: what walks through it would run out of stack."""
    level = [value]
    for _ in range(most):
        level = [
            item
            for part in level
            if isinstance(part, dict | list | tuple)
            for item in (part.values() if isinstance(part, dict) else part)
        ]
        if not level:
            return False
    return True

"""How one turn of an agent runs through its middleware."""

from __future__ import annotations

from typing import Any

from middleware.catalogue import ENTRIES


def of(subject: Any) -> list[dict[str, Any]]:
    """Of a draft or a version: its entries with their hooks, outermost first."""
    listed = subject.spec.get("middleware", [])
    return [
        {
            "n": n,
            "use": one.get("use"),
            "hooks": ENTRIES[one["use"]].hooks if one.get("use") in ENTRIES else (),
        }
        for n, one in enumerate(listed, 1)
    ]

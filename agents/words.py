"""Marks English message ids for translation; the web process translates them when it shows them."""

from __future__ import annotations

CASE = "The case: "  # begins the line of facts at the end of an agent's instructions


def gettext_noop(text: str) -> str:
    """Found by `makemessages`; returns the message id unchanged."""
    return text

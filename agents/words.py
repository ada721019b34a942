"""Marks English message ids for translation; the web process translates them when it shows them."""

from __future__ import annotations


def gettext_noop(text: str) -> str:
    """Found by `makemessages`; returns the message id unchanged."""
    return text

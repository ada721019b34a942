"""What a middleware did to a step, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _t

from middleware.catalogue import ENTRIES

WORDS = {  # what a note of `middleware.notes` says; filled from its numbers and names
    "answered": _t("answered in place of the tool"),
    "attempts": _t("attempt %(n)s of %(of)s"),
    "cache": _t("marked for the provider's cache"),
    "cleared": _t("old results left out: %(n)s"),
    "deferred": _t("tools are found by searching"),
    "dropped": _t("messages left out: %(n)s"),
    "ended": _t("ended the run"),
    "limit": _t("call %(n)s of %(of)s"),
    "masked": _t("masked %(n)s"),
    "messages": _t("messages replaced: %(n)s"),
    "model": _t("answered by %(name)s"),
    "passed": _t("judged safe"),
    "prompt": _t("added to the instructions"),
    "refused": _t("calls refused: %(n)s"),
    "result": _t("changed the result"),
    "shortened": _t("messages summarised: %(n)s"),
    "spent": _t("%(n)s of %(of)s spent before it"),
    "subagents": _t("handed to %(name)s"),
    "todos": _t("%(n)s of %(of)s done"),
    "told": _t("the model was told of the error"),
    "tools": _t("%(n)s of %(of)s tools offered"),
}


def noted(note: Mapping[str, Any]) -> str:
    """ "Personal data: masked 2". A note of code that is not installed any more has its plain name."""
    use, what = str(note.get("use", "")), str(note.get("what", ""))
    entry = ENTRIES.get(use)
    label = _(entry.label) if entry else use
    words = str(WORDS.get(what, what)) % {name: _number(value) for name, value in note.items()}
    about = str(note.get("tool", "") or note.get("unit", ""))
    return f"{label}: {words} ({about})" if about else f"{label}: {words}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)

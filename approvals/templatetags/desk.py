"""How pages show icons, times, money, and text that somebody else wrote."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from datetime import datetime
from functools import cache
from typing import Any
from zlib import crc32

from babel.dates import format_datetime, format_skeleton
from babel.units import format_unit
from django import template
from django.utils import timezone, translation
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from lucide.templatetags.lucide import lucide

from agents.words import gettext_noop
from approvals import display, money, phrases
from approvals.argform.fields import Node
from approvals.argform.pointer import parts
from approvals.models import Decision

register = template.Library()

DATE_LOCALES = {"zh-hans": "zh_Hans_CN", "en": "en_GB"}
NUMBERED = re.compile(r"(?<![\w-])([A-Za-z]{1,4}-\d{2,})(?![\w-])")  # an order, a customer
RING = 50.3  # circumference of the ring's circle
UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def reader() -> str:
    return translation.get_language() or "en"


def _locale() -> str:
    return DATE_LOCALES.get(reader(), "en_GB")


@register.simple_tag
def icon(name: str, size: str = "") -> str:
    """A Lucide icon beside a word; `size`: "sm"."""
    return _drawn(name, size)


@cache
def _drawn(name: str, size: str) -> str:
    """Each once: drawing copies its whole tree, and a list shows dozens. Their names come from our code alone."""
    return lucide(name, size=None, **{"class": "i i-sm" if size == "sm" else "i", "aria_hidden": "true"})


# --- text of others ---------------------------------------------------------------------------------------------------
def language_of(text: str) -> str:
    """What decides the shapes of its glyphs: zh, ja, ko, or "" for everything else."""
    if not isinstance(text, str) or text.isascii():
        return ""
    scripts = Counter(unicodedata.name(ch, "").split(" ", 1)[0] for ch in text if ord(ch) > 0x1100)
    if scripts["HIRAGANA"] or scripts["KATAKANA"]:
        return "ja"
    if scripts["HANGUL"]:
        return "ko"
    return "zh" if scripts["CJK"] else ""


@register.filter
def shown(value: object) -> SafeString:
    """Text of a model, a customer or a tool: escaped, whole, hidden characters spelled out, direction isolated."""
    return _isolated(value, "")


@register.filter
def titled(value: object) -> SafeString:
    """A title that we put together: it reads from our side, whatever the name at its start is written in."""
    return _isolated(value, "ltr")


def _isolated(value: object, direction: str) -> SafeString:
    text = value if isinstance(value, str) else "" if value is None else str(value)
    parts = format_html_join(
        "",
        "{}",
        (
            (format_html('<mark class="hid">{}</mark>', piece) if spelled else _whole_numbers(piece),)
            for piece, spelled in display.segments(text)
        ),
    )
    given = {"lang": language_of(text), "dir": direction}
    attributes = format_html_join("", ' {}="{}"', ((name, value) for name, value in given.items() if value))
    return format_html("<bdi{}>{}</bdi>", attributes, parts)


def _whole_numbers(text: str) -> SafeString:
    """A-20931 is never broken at its hyphen."""
    pieces = NUMBERED.split(text)
    marked = (
        (format_html('<span class="nb">{}</span>', piece) if n % 2 else piece,)
        for n, piece in enumerate(pieces)
    )
    return format_html_join("", "{}", marked)


@register.filter
def visible(value: object) -> str:
    """The same as plain text, for attributes and titles."""
    return display.visible("" if value is None else str(value))


@register.filter
def warnings(value: object) -> list[str]:
    """One line for each kind of deceptive character in a text."""
    found: dict[str, list[str]] = {}
    for finding in display.findings(value if isinstance(value, str) else ""):
        if finding.kind != "emoji joiner":
            found.setdefault(finding.kind, []).append(finding.detail)
    return [f"{gettext(KINDS[kind])}: {_counted(details)}" for kind, details in found.items()]


def _counted(details: list[str]) -> str:
    return ", ".join(f"{d} ×{n}" if n > 1 else d for d, n in Counter(details).items())


KINDS = {
    "bidi": gettext_noop("Characters that reverse the direction of text"),
    "tag": gettext_noop("Invisible tag characters"),
    "invisible": gettext_noop("Invisible characters"),
    "blank": gettext_noop("Characters that draw nothing"),
    "control": gettext_noop("Control characters"),
    "no character": gettext_noop("Unassigned characters"),
    "space": gettext_noop("Unusual spaces"),
    "digit": gettext_noop("Digits of another script"),
    "look-alike": gettext_noop("Characters that look like plain letters or digits"),
    "mixed scripts": gettext_noop("Words that mix scripts"),
    "combining flood": gettext_noop("Many combining marks"),
}


# --- times --------------------------------------------------------------------------------------------------------------
def clock(moment: datetime, *, seconds: bool = False) -> str:
    """14:03 today, 29 Nov, 14:03 on other days, in the reader's time zone."""
    local = timezone.localtime(moment)
    time = format_datetime(local, "HH:mm:ss" if seconds else "HH:mm")
    if local.date() == timezone.localdate():
        return time
    return f"{day(moment)}, {time}"


def day(moment: datetime) -> str:
    local = timezone.localtime(moment)
    same_year = local.year == timezone.localdate().year
    return format_skeleton("MMMd" if same_year else "yMMMd", local, locale=_locale())


@register.simple_tag
def when(moment: datetime | None, style: str = "") -> SafeString | str:
    """<time> with a short text; style "s" adds seconds, "full" says everything."""
    if moment is None:
        return ""
    if style == "full":
        text = format_datetime(timezone.localtime(moment), "medium", locale=_locale())
    else:
        text = clock(moment, seconds=style == "s")
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), text)


@register.filter
def day_name(moment: datetime) -> str:
    """Today, Sunday 29 November"""
    local = timezone.localtime(moment)
    name = format_skeleton("yMMMMEEEEd", local, locale=_locale())
    return gettext("Today, %(day)s") % {"day": name} if local.date() == timezone.localdate() else name


@register.filter
def local_date(moment: datetime) -> Any:
    return timezone.localtime(moment).date()


def duration(seconds: float) -> str:
    """The largest unit that is not zero: 14 min."""
    rest = max(0, round(seconds))
    size, unit = next(((size, unit) for size, unit in UNITS if rest >= size), UNITS[-1])
    return format_unit(rest // size, unit, length="short", locale=money.BABEL_LOCALES.get(reader(), "en"))


@register.filter
def lasted(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return duration(seconds) if seconds >= 1 else gettext("under 1 sec")


@register.simple_tag
def left(seconds: float) -> SafeString:
    """A time that the page counts down; the script formats it the same way."""
    return format_html(
        '<span class="tnum" data-left="{}">{}</span>', f"{max(0.0, seconds):.1f}", duration(seconds)
    )


@register.simple_tag
def sending(decision: Decision, seconds: float) -> SafeString:
    """ "Runs in 4 sec.", counting down."""
    return format_html(phrases.waits_for_sending(decision).replace("%(time)s", "{}"), left(seconds))


@register.filter
def sent_words(decision: Decision) -> str:
    return phrases.sent(decision)


@register.simple_tag
def ring(part: float) -> SafeString:
    """How much is left, as a ring. Attributes, not styles: the policy forbids those."""
    filled = f"{max(0.0, min(1.0, part)) * RING:.1f} {RING}"
    return format_html(
        '<svg class="ring" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="8"/>'
        '<circle cx="10" cy="10" r="8" stroke-dasharray="{}"/></svg>',
        filled,
    )


# --- people and amounts --------------------------------------------------------------------------------------------------
HUES = 5


@register.simple_tag
def avatar(name: str, size: str = "") -> SafeString:
    words = name.split()
    initials = "".join(word[0] for word in words[:2]).upper() if len(words) > 1 else name[:2].upper()
    first = name[:1]
    initials = first if language_of(first) else initials
    hue = crc32(name.encode()) % HUES
    return format_html('<span class="av h{} {}" aria-hidden="true">{}</span>', hue, size, initials)


@register.simple_tag
def spoken(amount: Any, currency: str) -> str:
    return money.spoken(amount, str(currency or ""), reader())


@register.filter
def thousands(number: Any) -> str:
    return f"{int(number or 0):,}"


@register.filter
def arg_label(node: Node) -> str:
    """The name of an argument in the reader's language."""
    name = parts(node.pointer)[-1] if node.pointer else ""
    return phrases.label(name) if name in phrases.LABELS else node.label


@register.filter
def arg_name(node: Node) -> str:
    return ".".join(parts(node.pointer))


@register.filter
def call_words(call: dict[str, Any]) -> str:
    """A proposed call as a sentence."""
    return phrases.call(str(call.get("name", "")), call.get("args"))


@register.filter
def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def queue_name(queue: str) -> str:
    return phrases.queue_name(queue)


@register.filter
def agent_name(title: str) -> str:
    return phrases.agent(title)


@register.filter
def actor_name(name: str) -> str:
    return phrases.actor(name)


@register.filter
def order_state(state: Any) -> str:
    return phrases.order_state(str(state or ""))


@register.filter
def explained(text: Any) -> str:
    return phrases.explanation(str(text or ""))


@register.filter
def said_again(text: Any) -> str:
    """A title of the demo shop, which stores English; one that is not in the catalogue stays as it is."""
    return gettext(text) if isinstance(text, str) and text else ""


@register.simple_tag
def chord(key: str = "↵") -> SafeString:
    """The modifier as this machine calls it: page.js says which."""
    return format_html(
        '<kbd class="chord"><span class="pc">Ctrl</span><span class="mac">⌘</span>{}</kbd>', key
    )


@register.filter
def right_name(right: str) -> str:
    return phrases.right(right)


@register.filter
def entry_number(entry: Any) -> str:
    return f"{entry.event.pk:,}"


@register.simple_tag
def drawing(picture: Any, selected: int | None) -> Any:
    """The shapes of a picture, with one entry of its list marked."""
    return picture.drawn(selected)

"""How one turn of an agent runs through its middleware: a drawing, and the same in words.

Drawn from what a worker found when it built the stack; until one has looked, from what the catalogue says.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from approvals.models import AgentDraft, AgentVersion
from approvals.services import pictures
from middleware.catalogue import ENTRIES

COLUMN, MIDDLE = 136, 164  # width of the lists at the sides; where the rings begin
ROW, BAND, INSET, CORE = 28, 24, 9, 54
MODEL_CALLS, TOOL_CALLS = 3, 2  # of the turn that is told in words


@dataclass(frozen=True)
class Layer:
    """One entry of the list."""

    n: int
    use: str
    hooks: tuple[str, ...]
    error: str = ""  # why a worker could not build it

    @property
    def label(self) -> str:
        entry = ENTRIES.get(self.use)
        return _(entry.label) if entry else self.use

    @property
    def is_odd(self) -> bool:
        """The class has a hook that the catalogue does not know of. Fewer are fine: options choose among classes."""
        entry = ENTRIES.get(self.use)
        return not self.error and entry is not None and not set(self.hooks) <= set(entry.hooks)

    @property
    def times(self) -> list[tuple[str, int]]:
        """Hook -> how often it runs in the turn that is told."""
        return [(hook, TIMES[hook]) for hook in TIMES if hook in self.hooks]


TIMES = {
    "before_agent": 1,
    "before_model": MODEL_CALLS,
    "wrap_model_call": MODEL_CALLS,
    "after_model": MODEL_CALLS,
    "wrap_tool_call": TOOL_CALLS,
    "after_agent": 1,
}


@dataclass(frozen=True)
class Box:
    x: int
    y: int
    width: int
    height: int
    css: str
    text: str
    whole: str = ""  # of a text that was cut
    middle: bool = False
    radius: int = 7
    below: str = ""

    @property
    def tx(self) -> int:
        return self.x + (self.width // 2 if self.middle else 10)

    @property
    def by(self) -> int:
        return self.ty + 17

    @property
    def ty(self) -> int:
        return self.y + (24 if self.middle else 16 if "wrap" in self.css else 18)


@dataclass(frozen=True)
class Line:
    """A heading, or a remark."""

    x: int
    y: int
    text: str
    middle: bool = False


@dataclass
class Drawing:
    width: int = 0
    height: int = 0
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    arrows: list[str] = field(default_factory=list)


@dataclass
class Picture:
    layers: Sequence[Layer]
    model: str
    tools: Sequence[str]
    checked_at: datetime | None  # when a worker looked; None: none has
    address: str = ""  # where the page asks again

    @property
    def odd(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.is_odd]

    @property
    def broken(self) -> list[Layer]:
        return [layer for layer in self.layers if layer.error]

    def having(self, hook: str) -> list[Layer]:
        return [layer for layer in self.layers if hook in layer.hooks]

    def drawn(self, selected: int | None) -> Drawing:
        return _Pen(self, selected).draw()

    @cached_property
    def sentences(self) -> list[tuple[str, str]]:
        """(when, what) of a run with three model calls and two tool calls."""
        back = [
            "before_agent",
            "before_model",
            "wrap_model_call",
            "after_model",
            "wrap_tool_call",
            "after_agent",
        ]
        who = {hook: _named(self.having(hook)) for hook in back}
        turned = {hook: _named(self.having(hook)[::-1]) for hook in back}
        nobody = _("nothing")
        core = self.model or _("the model")
        return [
            (_("Once, when the message arrives"), who["before_agent"] or nobody),
            (_("Before each of the 3 model calls, in this order"), who["before_model"] or nobody),
            (
                _("Around each of the 3 model calls, from the outside in"),
                _then(who["wrap_model_call"], core),
            ),
            (_("After each of the 3 model calls, in reverse"), turned["after_model"] or nobody),
            (
                _("Around each of the 2 tool calls, from the outside in"),
                _then(who["wrap_tool_call"], _("the tool")),
            ),
            (_("Once, at the end, in reverse"), turned["after_agent"] or nobody),
        ]


def of(subject: AgentDraft | AgentVersion) -> Picture:
    spec = subject.spec
    listed = [entry for entry in spec.get("middleware") or [] if isinstance(entry, dict)]
    row = pictures.of_spec(spec)
    found = row.entries if row.entries is not None and len(row.entries) == len(listed) else None
    layers = [
        Layer(
            n, str(entry.get("use", "")), *_looked(found[n - 1] if found else None, str(entry.get("use", "")))
        )
        for n, entry in enumerate(listed, 1)
    ]
    tools = [str(name) for name in spec.get("tools") or []]
    which = f"?v={subject.number}" if isinstance(subject, AgentVersion) else ""
    address = reverse("approvals:picture", args=[subject.agent_id]) + which
    return Picture(layers, str(spec.get("model", "")), tools, row.made_at if found else None, address)


def _looked(found: Mapping[str, Any] | None, use: str) -> tuple[tuple[str, ...], str]:
    entry = ENTRIES.get(use)
    told = tuple(entry.hooks) if entry else ()
    if found is None:
        return told, ""
    error = str(found.get("error", ""))
    return (told if error else tuple(found.get("hooks", ()))), error


def _named(layers: Iterable[Layer]) -> str:
    return ", ".join(f"{layer.n} {layer.label}" for layer in layers)


def _then(who: str, core: str) -> str:
    return f"{who} → {core}" if who else core


class _Pen:
    def __init__(self, picture: Picture, selected: int | None) -> None:
        self.picture, self.selected = picture, selected
        rings = max(len(picture.having(hook)) for hook in ("wrap_model_call", "wrap_tool_call"))
        self.ring_width = max(250, 180 + 2 * INSET * rings)
        self.right = MIDDLE + self.ring_width + 28
        self.sheet = Drawing(width=self.right + COLUMN + 2)

    def draw(self) -> Drawing:
        p, top = self.picture, 30
        self.line(MIDDLE, 18, _("wrap_model_call: outer first"))
        height = self.rings(top, p.having("wrap_model_call"), _("Model"), p.model, "core")
        left = self.column(2, (_("before_agent, once"), p.having("before_agent")))
        left = self.column(2, (_("before_model, in order ↓"), p.having("before_model")), left)
        right = self.column(self.right, (_("after_model, reversed ↓"), p.having("after_model")[::-1]))
        right = self.column(
            self.right, (_("after_agent, once, reversed"), p.having("after_agent")[::-1]), right
        )
        tool_top = max(top + height, left + 8, right + 8) + 44
        self.line(MIDDLE, tool_top - 12, _("wrap_tool_call: outer first, once per call"))
        tools = " · ".join(p.tools)
        tool_height = self.rings(tool_top, p.having("wrap_tool_call"), _("Tool"), tools, "core act")
        self.loop(top + height - 34, tool_top + tool_height - 34)
        self.sheet.height = tool_top + tool_height + 26
        return self.sheet

    def line(self, x: int, y: int, text: str, *, middle: bool = False) -> None:
        self.sheet.lines.append(Line(x, y, text, middle))

    def box(self, x: int, y: int, width: int, height: int, css: str, text: str, **more: Any) -> None:
        cut = shortened(text, width - 18)
        whole = text if cut != text else ""
        self.sheet.boxes.append(Box(x, y, width, height, css, cut, whole, **more))

    def column(self, x: int, listed: tuple[str, Sequence[Layer]], y: int = 0) -> int:
        """Where the next one begins."""
        title, layers = listed
        if not layers:
            return y
        self.line(x, y + 18, title)
        for k, layer in enumerate(layers):
            css = "sel" if layer.n == self.selected else ""
            self.box(x, y + 28 + k * (ROW + 6), COLUMN, ROW, css, f"{layer.n}  {layer.label}")
        return y + 28 + len(layers) * (ROW + 6) + 10

    def rings(self, y: int, layers: Sequence[Layer], core: str, below: str, css: str) -> int:
        """Boxes inside each other, the first outermost, around what they wrap. The height."""
        count = len(layers)
        height = count * BAND + CORE + 8 + count * 8
        for k, layer in enumerate(layers):
            style = "wrap sel" if layer.n == self.selected else "wrap"
            width = self.ring_width - 2 * k * INSET
            size = (MIDDLE + k * INSET, y + k * BAND, width, height - k * (BAND + 8))
            self.box(*size, style, f"{layer.n}  {layer.label}", radius=10)
        x, width = MIDDLE + count * INSET + 4, self.ring_width - 2 * count * INSET - 8
        self.box(
            x, y + count * BAND + 2, width, CORE, css, core, middle=True, below=shortened(below, width - 12)
        )
        return height

    def loop(self, model_y: int, tool_y: int) -> None:
        """Model -> tools -> model."""
        turn, edge = 6, MIDDLE + self.ring_width
        right, left = edge + 14, MIDDLE - 14
        self.sheet.paths += [
            f"M{edge} {model_y}H{right - turn}q{turn} 0 {turn} {turn}V{tool_y - turn}q0 {turn} -{turn} {turn}H{edge + 9}",
            f"M{MIDDLE} {tool_y}H{left + turn}q-{turn} 0 -{turn} -{turn}V{model_y + turn}q0 -{turn} {turn} -{turn}H{MIDDLE - 9}",
        ]
        self.sheet.arrows += [f"M{edge + 2} {tool_y}l8 -4.5v9z", f"M{MIDDLE - 2} {model_y}l-8 -4.5v9z"]
        self.line(COLUMN // 2, tool_y + 4, _("until no tool call"), middle=True)
        self.line(edge + 28 + COLUMN // 2, tool_y + 4, _("tool calls"), middle=True)


def shortened(text: str, width: float) -> str:
    """What fits into so many units of the drawing, at 12 px."""
    room = float(width)
    for at, letter in enumerate(text):
        room -= 12 if unicodedata.east_asian_width(letter) in "WF" else 6.3
        if room < 0:
            return text[: max(1, at - 1)].rstrip() + "…"
    return text

"""What the agent read before it asked: results of tools, and which of them a proposed value appears in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from approvals import money
from approvals.enums import StepKind
from approvals.models import Step
from approvals.phrases import facts_of

SHAPES: dict[str, tuple[str, ...]] = {  # keys a result must have to be laid out; else it is shown as text
    "order": ("id", "currency", "captured", "refunded", "items"),
    "policy": ("policies",),
    "computation": ("order_id", "amount", "currency", "explanation"),
    "refund": ("order_id", "amount", "currency"),
}
ICONS = {"order": "package", "policy": "book-open", "computation": "calculator", "refund": "banknote"}
LEAST = 3  # characters of a text before finding it elsewhere means anything


@dataclass(frozen=True)
class Result:
    """One tool result, as it was when the agent read it."""

    step: Step
    data: dict[str, Any] | None
    template: str  # "" shows it as text

    @property
    def anchor(self) -> str:
        return f"step-{self.step.position}"

    @property
    def icon(self) -> str:
        facts = facts_of(self.step.tool)
        return ICONS.get(self.template) or (facts.icon if facts else "braces")

    @property
    def page(self) -> str:
        return f"evidence/{self.template or 'text'}.html"


def results(steps: Sequence[Step]) -> list[Result]:
    """Newest result of each call, in the order the agent read them."""
    return [_result(step) for step in steps if step.kind == StepKind.TOOL]


def _result(step: Step) -> Result:
    data = parsed(step.text)
    facts = facts_of(step.tool)
    wanted = facts.evidence if facts else ""
    return Result(
        step, data, wanted if data is not None and not step.is_error and _fits(data, wanted) else ""
    )


def _fits(data: dict[str, Any], template: str) -> bool:
    """Whether a result has the shape its layout expects."""
    lists = all(isinstance(data[key], list) for key in ("items", "policies") if key in data)
    return template in SHAPES and lists and all(key in data for key in SHAPES[template])


def parsed(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def source_of(value: Any, found: Sequence[Result], message: str) -> Result | str | None:
    """The newest result that holds this very value; "message" if the request of the person has it; None: the agent
    wrote it."""
    for result in reversed(found):
        if result.data is not None and any(_same(value, other) for other in _leaves(result.data)):
            return result
    return "message" if isinstance(value, str) and len(value) >= LEAST and value in message else None


def _same(value: Any, other: Any) -> bool:
    number = None if isinstance(value, str) else money.decimal_of(value)
    if number is not None:
        return number == money.decimal_of(other)
    return isinstance(value, str) and len(value) >= LEAST and value == other


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if depth > 8:
        return
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, depth + 1)
    else:
        yield value

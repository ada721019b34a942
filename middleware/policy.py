"""What a spec says about decisions: who is asked, for how long, by which rule. Light: the web process reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from middleware import predicates
from middleware.options.people import Gate, HumanInTheLoopOptions
from middleware.ports import Judge

type SpecMiddleware = Iterable[Mapping[str, Any]]
"""`AgentSpec.middleware`: [{"use": catalogue name, **options}], outermost first."""

HITL = "human_in_the_loop"


@dataclass(frozen=True)
class ApprovalPolicy:
    """How calls of one tool are decided."""

    queue: str
    expires_in: int  # seconds
    allowed_decisions: tuple[str, ...]
    rule: str  # in words
    escalate_to: str = ""  # "": it expires
    remind_after: int | None = None  # seconds
    default_answer: str = ""


def gates(spec_middleware: SpecMiddleware) -> dict[str, Gate]:
    """Tool name -> gate. Raises `pydantic.ValidationError` for a spec that was never linted."""
    for entry in spec_middleware:
        if entry.get("use") == HITL:
            options = {key: value for key, value in entry.items() if key != "use"}
            return dict(HumanInTheLoopOptions.model_validate(options).interrupt_on)
    return {}


def policy_for(spec_middleware: SpecMiddleware, tool: str) -> ApprovalPolicy | None:
    """None: no person is ever asked about this tool."""
    gate = gates(spec_middleware).get(tool)
    if gate is None:
        return None
    return ApprovalPolicy(
        queue=gate.queue,
        expires_in=gate.expires_in,
        allowed_decisions=tuple(gate.allowed_decisions),
        rule=predicates.rule(gate.when).words,
        escalate_to=gate.escalate_to or "" if gate.on_expiry == "escalate" else "",
        remind_after=gate.remind_after,
        default_answer=gate.default_answer or "",
    )


def judges(spec_middleware: SpecMiddleware) -> dict[str, Judge]:
    """Tool name -> the one rule that the question and the gate inside the write tool share."""
    return {tool: predicates.judge_of(gate.when) for tool, gate in gates(spec_middleware).items()}

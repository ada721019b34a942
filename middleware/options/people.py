"""Options of what asks people: approvals and limits. Light."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from middleware import predicates
from middleware.options.base import Options, ToolName

Decision = Literal["approve", "edit", "reject", "respond"]


class Gate(BaseModel):
    """How one tool is decided by people."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed_decisions: tuple[Decision, ...] = Field(default=("approve", "edit", "reject"), min_length=1)
    when: dict[str, Any] | None = Field(default=None, description="A rule by name; none: every call asks.")
    queue: str = Field(default="reviewers", pattern=r"^[a-z][a-z0-9-]{0,39}$")
    expires_in: int = Field(default=1800, ge=10, le=90 * 86400, description="Seconds.")
    remind_after: int | None = Field(default=None, ge=5, description="Seconds; the group is reminded once.")
    on_expiry: Literal["expire", "escalate"] = Field(
        default="expire", description="Escalate: another group gets the same time again, then it expires."
    )
    escalate_to: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9-]{0,39}$")
    default_answer: str | None = Field(
        default=None,
        min_length=1,
        max_length=2000,
        description="Of a question to staff: what counts when nobody answered in time.",
    )

    @field_validator("when")
    @classmethod
    def _known(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        predicates.rule(value)
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.on_expiry == "escalate" and not self.escalate_to:
            raise ValueError("escalate_to must name the queue to escalate to")
        if self.escalate_to == self.queue:
            raise ValueError("escalate_to must name another queue")
        if self.remind_after is not None and self.remind_after >= self.expires_in:
            raise ValueError("remind_after must be shorter than expires_in")
        if self.default_answer is not None and self.allowed_decisions != ("respond",):
            raise ValueError('default_answer is for questions: allowed_decisions must be just "respond"')
        return self


class HumanInTheLoopOptions(Options):
    interrupt_on: dict[str, Gate] = Field(min_length=1, description="Tool name: how it is decided.")
    interrupt_mode: Literal["per_call"] = "per_call"  # batched threads can be bricked by one bad answer


class _LimitOptions(Options):
    """`on_limit: "ask"` pauses for a person, up to `hard_cap`; "end" is LangChain's own limit.

    With "ask" a `run_limit` counts through all pauses of a run. LangChain's own forgets its count at every resume.
    """

    thread_limit: int | None = Field(default=None, ge=1, description="In all runs of a case.")
    run_limit: int | None = Field(
        default=None, ge=1, description="From one message of the case to its answer."
    )
    on_limit: Literal["ask", "end"] = "end"
    hard_cap: int | None = Field(default=None, ge=1, description="Nobody can grant more than this.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        limits = [limit for limit in (self.thread_limit, self.run_limit) if limit is not None]
        if not limits:
            raise ValueError("give thread_limit or run_limit")
        if self.on_limit == "ask" and len(limits) > 1:
            raise ValueError('with on_limit "ask" give one of thread_limit and run_limit')
        if self.hard_cap is not None and (self.on_limit != "ask" or self.hard_cap < limits[0]):
            raise ValueError('hard_cap goes with on_limit "ask" and is not below the limit')
        return self

    @property
    def limit(self) -> int:
        """The one limit of on_limit "ask"."""
        return self.run_limit or self.thread_limit or 1


class ModelCallLimitOptions(_LimitOptions):
    exit_behavior: Literal["end", "error"] = "end"


class ToolCallLimitOptions(_LimitOptions):
    tool_name: ToolName | None = Field(default=None, description="None: all tools together.")
    exit_behavior: Literal["continue", "end", "error"] = "continue"

    @model_validator(mode="after")
    def _one_tool(self) -> Self:
        if self.on_limit == "ask" and not self.tool_name:
            raise ValueError('with on_limit "ask" give tool_name: a person is asked about one tool')
        both = self.thread_limit is not None and self.run_limit is not None
        if both and (self.run_limit or 0) > (self.thread_limit or 0):
            raise ValueError("run_limit is not above thread_limit")
        return self


class SpendLimitOptions(Options):
    """Tokens, or money when prices are given. A person is asked for more, up to `hard_cap`."""

    tokens: int | None = Field(default=None, ge=1, description="Input and output tokens together.")
    cost: float | None = Field(default=None, gt=0, description="In the currency of the prices.")
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    input_price: float = Field(default=0, ge=0, description="For a million input tokens.")
    output_price: float = Field(default=0, ge=0, description="For a million output tokens.")
    hard_cap: float | None = Field(default=None, gt=0, description="Nobody can grant more than this in all.")
    scope: Literal["run", "thread"] = "run"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.tokens is None) == (self.cost is None):
            raise ValueError("give tokens or cost")
        if self.cost is not None and not (self.input_price or self.output_price):
            raise ValueError("a limit by cost needs input_price and output_price")
        if self.hard_cap is not None and self.hard_cap < self.limit:
            raise ValueError("hard_cap is not below the limit")
        return self

    @property
    def limit(self) -> float:
        return self.cost if self.cost is not None else float(self.tokens or 1)


class RepeatGuardOptions(Options):
    tools: tuple[ToolName, ...] = Field(
        default=(),
        description="Tools whose repeated proposals are answered at once; none: every tool that asks.",
    )

"""Options of the middleware we ship, as pydantic models: what may stand beside "use" in an agent's spec. Light."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from middleware import predicates

Decision = Literal["approve", "edit", "reject", "respond"]
RetryOn = Literal["connection", "timeout", "any"]


class Options(BaseModel):
    """Base of all: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_-]{0,39}$",
        description="Tells two instances of the same middleware apart.",
    )


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
    interrupt_on: dict[str, Gate] = Field(min_length=1)
    interrupt_mode: Literal["per_call"] = "per_call"  # batched threads can be bricked by one bad answer


class _LimitOptions(Options):
    """`on_limit: "ask"` pauses for a person, up to `hard_cap`; "end" is LangChain's own limit.

    With "ask" a `run_limit` counts through all pauses of a run. LangChain's own forgets its count at every resume.
    """

    thread_limit: int | None = Field(default=None, ge=1)
    run_limit: int | None = Field(default=None, ge=1)
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
    tool_name: str | None = None
    exit_behavior: Literal["continue", "end", "error"] = "continue"

    @model_validator(mode="after")
    def _one_tool(self) -> Self:
        if self.on_limit == "ask" and not self.tool_name:
            raise ValueError('with on_limit "ask" give tool_name: a person is asked about one tool')
        return self


class PiiOptions(Options):
    pii_type: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    strategy: Literal["block", "redact", "mask", "hash"] = "redact"
    detector: str | None = Field(
        default=None, max_length=500, description="A regular expression, for own types."
    )
    apply_to_input: bool = True
    apply_to_output: bool = False
    apply_to_tool_results: bool = False

    @model_validator(mode="after")
    def _detectable(self) -> Self:
        if self.detector is None and self.pii_type not in (
            "email",
            "credit_card",
            "ip",
            "mac_address",
            "url",
        ):
            raise ValueError(f"pii_type {self.pii_type!r} is not built in: give a detector")
        return self


class ToolErrorOptions(Options):
    tools: tuple[str, ...] = Field(min_length=1, description="Reads whose errors the model may see.")


class WriteGuardOptions(Options):
    pass


class _RetryOptions(Options):
    max_retries: int = Field(default=2, ge=0, le=10)
    retry_on: tuple[RetryOn, ...] = Field(default=("connection", "timeout"), min_length=1)
    backoff_factor: float = Field(default=2.0, ge=0, le=10)
    initial_delay: float = Field(default=1.0, ge=0, le=60, description="Seconds.")
    max_delay: float = Field(default=30.0, ge=0, le=300, description="Seconds.")
    jitter: bool = True


class ToolRetryOptions(_RetryOptions):
    tools: tuple[str, ...] = Field(min_length=1, description="Reads only; a retried write may happen twice.")


class ModelRetryOptions(_RetryOptions):
    retry_on: tuple[RetryOn, ...] = Field(default=("any",), min_length=1)
    on_failure: Literal["error", "continue"] = "error"

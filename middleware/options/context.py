"""Options of what keeps the conversation small and the agent on its plan. Light."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from middleware.options.base import Closed, Model, Options, ToolName

type Size = tuple[Literal["fraction", "tokens", "messages"], float]
"""JSON: ["tokens", 4000]."""

type Clause = Size | dict[Literal["fraction", "tokens", "messages"], float]
"""One threshold, or several that must all be met."""


def checked(kind: str, value: float) -> tuple[str, float | int]:
    """LangChain compares the type: fractions are floats in (0, 1], the others whole numbers."""
    if kind == "fraction":
        if not 0 < value <= 1:
            raise ValueError("a fraction lies between 0 and 1")
        return kind, float(value)
    if value < 1 or value != int(value):
        raise ValueError(f"{kind} is a whole number above 0")
    return kind, int(value)


class SummarizationOptions(Options):
    model: Model | None = Field(default=None, description="Writes the summary; none: the agent's own model.")
    trigger: Annotated[list[Clause], Field(min_length=1)] = Field(
        default=[("messages", 50)],
        description='Any of these starts it; one {"tokens": .., "messages": ..} needs all of its parts.',
    )
    keep: Size = Field(default=("messages", 20), description="What is kept as it is.")
    token_counter: Literal["approximate", "model"] = "approximate"
    summary_prompt: str | None = Field(default=None, description="Contains {messages}.")
    trim_tokens_to_summarize: int | None = Field(default=4000, ge=100)
    summarizer: Model | None = Field(
        default=None, description="Writes the summary in place of `model`, whose size still counts."
    )

    @field_validator("trigger", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """One threshold may stand alone, as in LangChain."""
        alone = isinstance(value, dict) or (
            isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str)
        )
        return [value] if alone else value

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        checked(*self.keep)
        for clause in self.trigger:
            for kind, number in clause.items() if isinstance(clause, dict) else [clause]:
                checked(kind, number)
        if self.summary_prompt is not None and "{messages}" not in self.summary_prompt:
            raise ValueError("summary_prompt must contain {messages}")
        return self


class ClearToolUses(Closed):
    use: Literal["clear_tool_uses"] = "clear_tool_uses"
    trigger: int = Field(default=100_000, ge=1, description="Tokens of the conversation.")
    clear_at_least: int = Field(default=0, ge=0)
    keep: int = Field(default=3, ge=0, description="Newest results that stay.")
    clear_tool_inputs: bool = False
    exclude_tools: tuple[ToolName, ...] = ()
    placeholder: str = "[cleared]"


class ContextEditingOptions(Options):
    edits: tuple[ClearToolUses, ...] = Field(default=(ClearToolUses(),), min_length=1)
    token_count_method: Literal["approximate", "model"] = "approximate"


class TodoListOptions(Options):
    system_prompt: str | None = None
    tool_description: str | None = None

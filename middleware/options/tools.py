"""Options of what stands around tool calls. Light."""

from __future__ import annotations

from pydantic import Field

from middleware.options.base import Model, Options, ToolName
from middleware.options.models import RetryOptions, Words


class ToolErrorOptions(Options):
    tools: tuple[ToolName, ...] = Field(min_length=1, description="Reads whose errors the model may see.")
    words: Words = Field(default="plain", description="How an error is told to the model.")


class WriteGuardOptions(Options):
    pass


class ToolRetryOptions(RetryOptions):
    tools: tuple[ToolName, ...] = Field(
        min_length=1, description="Reads only; a retried write may happen twice."
    )


class LlmToolEmulatorOptions(Options):
    tools: tuple[ToolName, ...] | None = Field(default=None, description="None: every tool is emulated.")
    model: Model | None = Field(default=None, description="None: the agent's own model.")


class RoleToolsOptions(Options):
    allow: dict[ToolName, tuple[str, ...]] = Field(
        min_length=1,
        description="Tool name: roles of the requester that may use it. Other tools are for all.",
    )


class ObserverOptions(Options):
    """Writes times and counts to the log and to the state; never arguments, results or texts."""

    slow_seconds: float = Field(default=10.0, gt=0, description="A call that takes longer is a warning.")

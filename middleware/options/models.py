"""Options of what stands around the model: other models, repeats, tools it may see, what it is told. Light."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from middleware.options.base import Closed, Model, Options, Seconds, ToolName

RetryOn = Literal[
    "retryable", "any", "connection", "timeout", "rate_limit", "server_error", "http", "os", "value"
]
"""Names of exception classes; `factories.failures` knows them."""

Words = Literal["plain", "type_only", "with_text"]
"""Names of ways to tell an error; `factories.failures` knows them."""


class RetryOptions(Options):
    """LangChain's waits: `initial_delay * backoff_factor ** n` seconds, never above `max_delay`."""

    max_retries: int = Field(default=2, ge=0, le=10, description="After the first call.")
    retry_on: tuple[RetryOn, ...] = Field(default=("connection", "timeout"), min_length=1)
    backoff_factor: float = Field(default=2.0, ge=0, le=10, description="0: always the same wait.")
    initial_delay: Seconds = Field(default=1.0, le=60, description="Seconds.")
    max_delay: Seconds = Field(default=30.0, le=300, description="Seconds.")
    jitter: bool = Field(
        default=True, description="Waits differ by a quarter, so that not all come back at once."
    )


class ModelRetryOptions(RetryOptions):
    retry_on: tuple[RetryOn, ...] = Field(default=("retryable",), min_length=1)
    on_failure: Literal["error", "continue"] | Words = Field(
        default="error",
        description='"error" fails the run; all others end it with an error text as if it were the answer.',
    )


class ModelFallbackOptions(Options):
    models: tuple[Model, ...] = Field(min_length=1, description="Tried in this order when the model fails.")


class ModelRefusalOptions(Options):
    pass


class ProviderToolSearchOptions(Options):
    searchable_tools: tuple[ToolName, ...] = Field(
        default=(), description="Tools that the provider shows to the model only when it looks for them."
    )


class LlmToolSelectorOptions(Options):
    model: Model | None = Field(default=None, description="None: the agent's own model.")
    system_prompt: str | None = None
    max_tools: int | None = Field(default=None, ge=1)
    always_include: tuple[ToolName, ...] = ()
    max_retries: int = Field(default=1, ge=0, le=5)
    on_parsing_failure: Literal["error", "none", "all"] | tuple[ToolName, ...] = "error"


class Classifier(Closed):
    """Who judges. `chat`: any chat model, asked for a JSON answer; `openai_decisions`: OpenAI's Decisions API."""

    use: Literal["chat", "openai_decisions"] = "chat"
    model: Model


class RouteChoice(Closed):
    model: Model
    criteria: str = Field(min_length=1, description="Which tasks this model is for.")


class ModelRouterOptions(Options):
    choices: dict[str, RouteChoice] = Field(min_length=1)
    instructions: str = Field(min_length=1)
    classifier: Classifier


class DynamicPromptOptions(Options):
    """`lines` are filled from the case: `{customer_name}`, `{language}`, `{order_id}`, `{requester}`."""

    lines: tuple[str, ...] = Field(
        min_length=1, description="Each is left out when a name in it is not known."
    )
    for_roles: dict[str, str] = Field(
        default_factory=dict, description="Role of the requester: a line that is added for it."
    )


class AutoModeOptions(Options):
    tools: tuple[ToolName, ...] = Field(min_length=1)
    classifier: Classifier
    instructions: str | None = None
    risky_when: str | None = Field(default=None, description="What counts as risky.")
    safe_when: str | None = Field(default=None, description="What counts as safe.")


def as_ref(model: Model) -> dict[str, Any]:
    """One shape for both spellings."""
    return {"model": model} if isinstance(model, str) else model.model_dump()

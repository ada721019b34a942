"""What every options model shares: closed, frozen, and models named by a string or with their address. Light."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(ge=0, le=3600)]
ToolName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]


class Closed(BaseModel):
    """Unknown keys are refused, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Options(Closed):
    """Base of the options of every entry."""

    id: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_-]{0,39}$",
        description="Tells two instances of the same middleware apart.",
    )


class ModelRef(Closed):
    """A chat model with its address, for a model that is not reached as the provider's package does by itself."""

    model: str = Field(min_length=1, description='As in "openai:gpt-5.4-mini", or "demo:<name>".')
    base_url: str | None = None
    api_key_env: str | None = Field(default=None, description="Environment variable that holds the key.")
    options: dict[str, Any] = Field(default_factory=dict)


Model = Annotated[str, Field(min_length=1)] | ModelRef
"""A chat model: "provider:name", or the same with its address and key."""


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"this is no regular expression: {error}") from error
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_compiles)]
"""A regular expression."""


def _virtual(path: str) -> str:
    if not path.startswith("/") or ".." in PurePosixPath(path).parts:
        raise ValueError('a path starts with "/" and does not contain ".."')
    return path


VirtualPath = Annotated[str, AfterValidator(_virtual)]
"""A path as the model sees it."""

Folder = Annotated[str, Field(min_length=1, max_length=400)]
"""A folder on the machine of the workers."""

Strategy = Literal["block", "redact", "mask", "hash"]


class Detector(Closed):
    """A way of finding personal data, by name."""

    use: str = Field(description="Name of a detector.")

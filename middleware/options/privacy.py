"""Options of what looks for personal data and unwanted text. Light."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from middleware import detectors
from middleware.options.base import Closed, Detector, Options, Pattern, Strategy

BUILT_IN = ("email", "credit_card", "ip", "mac_address", "url")


class _Found(Closed):
    """What is looked for, and how."""

    pii_type: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,39}$", description=f"One of {', '.join(BUILT_IN)}, or an own name."
    )
    strategy: Strategy = "redact"
    detector: Pattern | Detector | None = Field(
        default=None, description='A regular expression, or a detector by name: {"use": "us_ssn"}.'
    )

    @field_validator("detector")
    @classmethod
    def _known(cls, value: str | Detector | None) -> str | Detector | None:
        if isinstance(value, Detector) and value.use not in detectors.DETECTORS:
            raise ValueError(
                f"there is no detector {value.use!r}; known are {', '.join(detectors.DETECTORS)}"
            )
        return value

    @model_validator(mode="after")
    def _detectable(self) -> Self:
        if self.detector is None and self.pii_type not in BUILT_IN:
            raise ValueError(f"pii_type {self.pii_type!r} is not built in: give a detector")
        return self


class PiiOptions(_Found, Options):
    apply_to_input: bool = Field(default=True, description="Messages of people, before the model sees them.")
    apply_to_output: bool = Field(default=False, description="Answers of the model.")
    apply_to_tool_results: bool = Field(default=False, description="Results of tools.")

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if not (self.apply_to_input or self.apply_to_output or self.apply_to_tool_results):
            raise ValueError("it applies to nothing: switch on one of the three apply_to options")
        return self


class RedactionRule(_Found):
    """What is removed from the output of a shell command."""


class OpenaiModerationOptions(Options):
    model: Literal[
        "omni-moderation-latest",
        "omni-moderation-2024-09-26",
        "text-moderation-latest",
        "text-moderation-stable",
    ] = "omni-moderation-latest"
    check_input: bool = True
    check_output: bool = True
    check_tool_results: bool = False
    exit_behavior: Literal["end", "error", "replace"] = "end"
    violation_message: str | None = Field(default=None, description="May contain {categories}.")
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"

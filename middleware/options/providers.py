"""Options of middleware that works with one provider only. Light."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from middleware.options.base import Folder, Options, VirtualPath

OnUnsupported = Literal["ignore", "warn", "raise"]


class PromptCachingOptions(Options):
    type: Literal["ephemeral"] = "ephemeral"
    ttl: Literal["5m", "1h"] = "5m"
    min_messages_to_cache: int = Field(default=0, ge=0)
    unsupported_model_behavior: OnUnsupported = Field(
        default="ignore", description="What happens with a model that cannot cache."
    )


class _PlaceOptions(Options):
    where: Literal["state", "disk"] = Field(default="state", description="state: gone with the case.")
    root_path: Folder | None = Field(default=None, description="The folder, for disk.")
    allowed_path_prefixes: tuple[VirtualPath, ...] = ()
    max_file_size_mb: int = Field(default=10, ge=1, le=1024)

    @model_validator(mode="after")
    def _place(self) -> Self:
        if (self.where == "disk") != (self.root_path is not None):
            raise ValueError('root_path goes with where "disk"')
        return self


class AnthropicTextEditorOptions(_PlaceOptions):
    pass


class AnthropicMemoryOptions(_PlaceOptions):
    system_prompt: str | None = None


class AnthropicFileSearchOptions(Options):
    state_key: Literal["text_editor_files", "memory_files"] = "text_editor_files"

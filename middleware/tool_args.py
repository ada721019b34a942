"""Arguments of the writes that a middleware may bring along: what a reviewer sees and may change. Light."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Text = Annotated[str, Field(max_length=200_000)]
Path = Annotated[str, Field(min_length=1, max_length=1000)]


class Command(BaseModel):
    command: Text | None = Field(default=None, description="What is run.")
    restart: bool | None = Field(default=None, description="Start the shell anew instead.")


class Execute(BaseModel):
    command: Text = Field(description="What is run.")
    timeout: int | None = Field(default=None, ge=1, description="Seconds.")


class WriteFile(BaseModel):
    file_path: Path = Field(description="The file.")
    content: Text = Field(description="What it will contain.")


class EditFile(BaseModel):
    file_path: Path = Field(description="The file.")
    old_string: Text = Field(description="What is replaced.")
    new_string: Text = Field(description="What stands there afterwards.")
    replace_all: bool = Field(default=False, description="Every place, not only the one.")


class DeleteFile(BaseModel):
    file_path: Path = Field(description="The file.")


class FileCommand(BaseModel):
    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"] = Field(
        description="What is done."
    )
    path: Path = Field(description="The file.")
    file_text: Text | None = Field(default=None, description="What the new file will contain.")
    old_str: Text | None = Field(default=None, description="What is replaced.")
    new_str: Text | None = Field(default=None, description="What stands there afterwards.")
    insert_line: int | None = Field(default=None, ge=0, description="Behind which line.")
    new_path: Path | None = Field(default=None, description="The new name.")
    view_range: tuple[int, int] | None = Field(default=None, description="From which line to which.")

"""Tools that a middleware brings: shell, file search, file systems, sub-agents."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Any

from middleware.entry import AddedTool, Entry, named
from middleware.inheritance import within
from middleware.options import files as o
from middleware.tool_args import Command, DeleteFile, EditFile, Execute, FileCommand, WriteFile

SHELL_NOTES = (
    "The host policy runs commands as the worker does: give such workers a machine of their own.",
    "A pause for a person ends the session: variables and the current folder are lost, files in the folder stay. "
    "The start-up commands run again for the next command.",
    "Redacted values stay in the checkpoints.",
    "A command that runs out of time may have done a part of its work: a person is asked.",
)

SEARCH = (AddedTool("glob_search", "read"), AddedTool("grep_search", "read"))


def shell(name: str) -> AddedTool:
    return AddedTool(
        name,
        "write",
        title="Run a command: {command}",
        args=Command,
        consequence="The command runs on the worker's machine, with what it does there.",
        timeout=3600.0,
        icon="terminal",
    )


def _file(name: str, title: str, args: Any, consequence: str) -> AddedTool:
    return AddedTool(name, "write", title=title, args=args, consequence=consequence, icon="file-pen")


WRITE_FILE = _file("write_file", "Write the file {file_path}", WriteFile, "The file is written.")
EDIT_FILE = _file("edit_file", "Change the file {file_path}", EditFile, "The file is changed.")
DELETE = _file("delete", "Delete the file {file_path}", DeleteFile, "The file is deleted.")
EXECUTE = AddedTool(
    "execute",
    "write",
    title="Run a command: {command}",
    args=Execute,
    consequence="The command runs on the worker's machine, with what it does there.",
    timeout=3600.0,
    icon="terminal",
)
TEXT_EDITOR = _file(
    "str_replace_based_edit_tool", "{command}: the file {path}", FileCommand, "The file is read or changed."
)
MEMORY = _file("memory", "{command}: the note {path}", FileCommand, "The note is read or changed.")

WRITES = (shell("shell"), shell("bash"), WRITE_FILE, EDIT_FILE, DELETE, EXECUTE, TEXT_EDITOR, MEMORY)

_READS = ("ls", "read_file", "glob", "grep")
_CHANGES = {"write_file": WRITE_FILE, "edit_file": EDIT_FILE, "delete": DELETE}


def program_of(policy: Any) -> str | None:
    """The policy's program, if it is not on this machine."""
    program = getattr(policy, "binary", None)
    return (
        f"needs the program {program} on the workers' PATH" if program and not shutil.which(program) else None
    )


def outlives_the_case(backend: Any) -> bool:
    """Whether a file that is written there changes something beside the thread's own state."""
    if isinstance(backend, o.CompositeFiles):
        return outlives_the_case(backend.default) or any(map(outlives_the_case, backend.routes.values()))
    return not isinstance(backend, o.StateFiles)


def _has_shell(backend: Any) -> bool:
    return isinstance(getattr(backend, "default", backend), o.ShellFiles)


def _file_tools(options: o.FilesystemOptions) -> tuple[AddedTool, ...]:
    lasting = outlives_the_case(options.backend)
    found = [AddedTool(name, "read") for name in _READS]
    found += [tool if lasting else AddedTool(name, "read") for name, tool in _CHANGES.items()]
    found.append(EXECUTE if _has_shell(options.backend) else AddedTool("execute", "read"))
    order = ("ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute")
    chosen = [tool for tool in found if options.tools is None or tool.name in options.tools]
    return tuple(sorted(chosen, key=lambda tool: order.index(tool.name)))


def _delegated(options: o.SubagentsOptions) -> Iterable[str]:
    return [name for one in options.subagents for name in within(one, ())]


ENTRIES = (
    Entry(
        name="shell_tool",
        label="Shell tool",
        family="files",
        summary="A shell for the agent; every command is asked about unless a rule lets it pass.",
        help="Gives the agent a lasting bash session on the worker's machine, in a Docker container or in the Codex "
        "sandbox. List the tool in human in the loop; the rule text_outside can let harmless commands pass.",
        options=o.ShellToolOptions,
        hooks=("before_agent", "after_agent"),
        factory="middleware.factories.files:shell_tool",
        title=named("CaseShell"),
        adds_tools=lambda options: (shell(options.tool_name),),
        missing=lambda options: program_of(options.execution_policy),
        notes=SHELL_NOTES,
    ),
    Entry(
        name="file_search",
        label="File search",
        family="files",
        summary="Finds files of a folder by name or content.",
        help="Adds glob_search and grep_search over one folder of the workers' machine, and nothing outside it. Every "
        "worker must have the same folder.",
        options=o.FileSearchOptions,
        hooks=(),
        factory="middleware.factories.files:file_search",
        title=named("FilesystemFileSearchMiddleware"),
        adds_tools=lambda _: SEARCH,
        notes=("With ripgrep the greatest file size is not observed.",),
    ),
    Entry(
        name="filesystem",
        label="File system",
        family="files",
        summary="Files for the agent: in the case, in long-term memory, or in a folder.",
        help="Adds ls, read_file, write_file, edit_file, delete, glob and grep. Files in the state belong to the case; a "
        "store keeps them for later cases; a disk is a real folder; a composite sends paths such as /memories/ "
        "elsewhere. Large tool results are moved to a file. Where a file outlives the case, changing it is asked about "
        "unless a rule lets it pass.",
        options=o.FilesystemOptions,
        hooks=("wrap_model_call", "wrap_tool_call"),
        factory="middleware.factories.files:filesystem",
        title=named("FilesystemMiddleware"),
        touches=lambda _: "none",  # it moves large results out of the way and answers no call itself
        adds_tools=_file_tools,
        package="deepagents",
        notes=(
            "Two changes of one file in one turn are refused.",
            "A disk is a folder of one machine: with several workers use a store.",
            "Checkpoints of a case with files in its state cannot be pruned to the last one.",
        ),
    ),
    Entry(
        name="subagents",
        label="Sub-agents",
        family="files",
        summary="Hands tasks to helpers with a conversation of their own.",
        help="Adds the tool task. A helper has its own prompt, tools and model and gives back only its answer, so the "
        "agent's own conversation stays small. Helpers inherit the gate: their calls are asked about like the agent's.",
        options=o.SubagentsOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.subagents:subagents",
        title=named("SubAgentMiddleware"),
        adds_tools=lambda _: (AddedTool("task", "read"),),
        delegates=_delegated,
        models=lambda options: [one.model for one in options.subagents if one.model],
        package="deepagents",
        notes=(
            "Limits of the agent do not count what helpers do: give helpers limits of their own.",
            "A helper cannot bring a shell or files that outlive the case: only tools of the agent's houses are gated there.",
            "The timeline shows a helper's answer; its inner steps only where a person is asked.",
        ),
    ),
)

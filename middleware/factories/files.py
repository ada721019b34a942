"""Tools that a middleware brings: shell, file search, file systems."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import (
    CodexSandboxExecutionPolicy,
    DockerExecutionPolicy,
    FilesystemFileSearchMiddleware,
    HostExecutionPolicy,
)

from middleware.entry import NotProvided, Surroundings
from middleware.factories.naming import Middleware, given, with_id
from middleware.factories.privacy import redaction
from middleware.options import files as o
from middleware.shell import CaseShell


class CodexSandbox(CodexSandboxExecutionPolicy):
    """Today's Codex takes the command right behind `sandbox`; LangChain still names the platform in between."""

    def _build_command(self, command: Any) -> list[str]:
        whole = super()._build_command(command)
        return [*whole[:2], *whole[3:]]


def policy(options: o.HostPolicy | o.DockerPolicy | o.CodexPolicy) -> Any:
    """The execution policy of a shell."""
    said = options.model_dump(exclude={"use"})
    if isinstance(options, o.DockerPolicy):
        return DockerExecutionPolicy(**said)
    if isinstance(options, o.CodexPolicy):
        if options.platform == "none":
            return CodexSandbox(**{**said, "platform": "linux"})
        return CodexSandboxExecutionPolicy(**said)
    return HostExecutionPolicy(**said)


def shell_options(
    options: o.ShellToolOptions | o.AnthropicBashOptions, around: Surroundings
) -> dict[str, Any]:
    """What both shells take."""
    told: dict[str, Any] = given(
        workspace_root=options.workspace_root or around.folder or None,
        tool_description=options.tool_description,
    )
    return told | {
        "startup_commands": list(options.startup_commands),
        "shutdown_commands": list(options.shutdown_commands),
        "execution_policy": policy(options.execution_policy),
        "redaction_rules": [redaction(rule) for rule in options.redaction_rules],
        "env": dict(options.env),
    }


def shell_tool(options: o.ShellToolOptions, around: Surroundings) -> Middleware:
    command: Any = given(shell_command=options.shell_command)
    shell = CaseShell(tool_name=options.tool_name, **command, **shell_options(options, around))
    return with_id(shell, options)


def file_search(options: o.FileSearchOptions, _: Surroundings) -> Middleware:
    search = FilesystemFileSearchMiddleware(
        root_path=options.root_path,
        use_ripgrep=options.use_ripgrep,
        max_file_size_mb=options.max_file_size_mb,
    )
    return with_id(search, options)


def filesystem(options: o.FilesystemOptions, around: Surroundings) -> Middleware:
    from deepagents.middleware.filesystem import FilesystemMiddleware, FilesystemPermission  # noqa: PLC0415 - slow

    files = FilesystemMiddleware(
        backend=_backend(options.backend, around),
        system_prompt=options.system_prompt,
        custom_tool_descriptions=dict(options.custom_tool_descriptions),
        tool_token_limit_before_evict=options.tool_token_limit_before_evict,
        human_message_token_limit_before_evict=options.human_message_token_limit_before_evict,
        max_execute_timeout=options.max_execute_timeout,
        grep_max_count=options.grep_max_count,
        tools=None if options.tools is None else list(options.tools),
        offload_binary_content=options.offload_binary_content,
        permissions=[
            FilesystemPermission(operations=list(rule.operations), paths=list(rule.paths), mode=rule.mode)
            for rule in options.permissions
        ],
    )
    return with_id(files, options)


def _backend(options: Any, around: Surroundings) -> Any:
    from deepagents import backends  # noqa: PLC0415 - slow

    match options:
        case o.CompositeFiles():
            routes = {path: _backend(place, around) for path, place in options.routes.items()}
            return backends.CompositeBackend(_backend(options.default, around), routes)
        case o.StoreFiles():
            return backends.StoreBackend(namespace=_namespace(options, around), store=_store(around))
        case o.DiskFiles():
            return backends.FilesystemBackend(
                options.root_dir, virtual_mode=True, max_file_size_mb=options.max_file_size_mb
            )
        case o.ShellFiles():
            return backends.LocalShellBackend(
                options.root_dir,
                timeout=options.timeout,
                max_output_bytes=options.max_output_bytes,
                env=dict(options.env),
                inherit_env=False,
            )
    return backends.StateBackend()


def _store(around: Surroundings) -> Any:
    if around.store is None:
        raise NotProvided("there is no long-term memory here")
    return around.store


def _namespace(options: o.StoreFiles, around: Surroundings) -> Any:
    known = {
        "agent": around.slug,
        "requester": str(around.context.get("requester") or "nobody"),
        "customer": str(around.context.get("customer_id") or "nobody"),
    }
    parts = tuple(known.get(word, word).replace(".", "_") for word in options.namespace)
    return lambda _: ("files", *parts)

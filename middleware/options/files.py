"""Options of tools that a middleware brings: shell, file search, file systems, sub-agents. Light."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from middleware.options.base import Closed, Folder, Model, Options, ToolName, VirtualPath
from middleware.options.privacy import RedactionRule


class _Policy(Closed):
    command_timeout: float = Field(default=30.0, gt=0, le=3600, description="Seconds.")
    startup_timeout: float = Field(default=30.0, gt=0, le=600, description="Seconds.")
    termination_timeout: float = Field(default=10.0, gt=0, le=60, description="Seconds.")
    max_output_lines: int = Field(default=100, ge=1)
    max_output_bytes: int | None = Field(default=None, ge=1)


class HostPolicy(_Policy):
    """As the worker itself, with no fence around it. For workers that are a container of their own."""

    use: Literal["host"] = "host"
    cpu_time_seconds: int | None = Field(default=None, ge=1)
    memory_bytes: int | None = Field(default=None, ge=1)
    create_process_group: bool = True


class DockerPolicy(_Policy):
    """In a container of its own, without network unless it is allowed."""

    use: Literal["docker"]
    binary: str = "docker"
    image: str = "python:3.12-alpine3.19"
    remove_container_on_exit: bool = True
    network_enabled: bool = False
    extra_run_args: tuple[str, ...] = ()
    memory_bytes: int | None = Field(default=None, ge=1)
    cpus: str | None = Field(default=None, pattern=r"^[0-9]+(\.[0-9]+)?$")
    read_only_rootfs: bool = False
    user: str | None = Field(default=None, min_length=1)


class CodexPolicy(_Policy):
    """In the sandbox of the Codex command line tool."""

    use: Literal["codex"]
    binary: str = "codex"
    platform: Literal["none", "auto", "macos", "linux"] = Field(
        default="none", description="Word that older versions of the tool want before the command."
    )
    config_overrides: dict[str, Any] = Field(default_factory=dict)


class _ShellOptions(Options):
    workspace_root: Folder | None = Field(
        default=None, description="None: a folder of the case, which stays between its runs."
    )
    startup_commands: tuple[str, ...] = ()
    shutdown_commands: tuple[str, ...] = ()
    execution_policy: HostPolicy | DockerPolicy | CodexPolicy = Field(
        default=HostPolicy(), discriminator="use"
    )
    redaction_rules: tuple[RedactionRule, ...] = ()
    tool_description: str | None = None
    env: dict[str, str] = Field(
        default_factory=dict, description="Nothing of the worker's own environment is passed on."
    )

    @field_validator("execution_policy", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value


class ShellToolOptions(_ShellOptions):
    tool_name: ToolName = "shell"
    shell_command: tuple[str, ...] | None = Field(default=None, min_length=1)


class AnthropicBashOptions(_ShellOptions):
    pass


class FileSearchOptions(Options):
    root_path: Folder
    use_ripgrep: bool = True
    max_file_size_mb: int = Field(default=10, ge=1, le=1024)


class StateFiles(Closed):
    """In the state of the case: gone with it."""

    use: Literal["state"] = "state"


class StoreFiles(Closed):
    """In Postgres, shared by all cases of the agent: long-term memory."""

    use: Literal["store"]
    namespace: tuple[str, ...] = Field(
        default=("agent",), description='Who shares it: "agent", "requester", "customer", or an own word.'
    )


class DiskFiles(Closed):
    """In a folder of the workers' machine."""

    use: Literal["disk"]
    root_dir: Folder
    virtual_mode: Literal[True] = True  # False lets the model leave the folder
    max_file_size_mb: int = Field(default=10, ge=1, le=1024)


class ShellFiles(Closed):
    """A folder with a shell: adds the tool `execute`."""

    use: Literal["local_shell"]
    root_dir: Folder
    timeout: int = Field(default=120, ge=1, le=3600)
    max_output_bytes: int = Field(default=100_000, ge=100)
    env: dict[str, str] = Field(default_factory=dict)
    inherit_env: Literal[False] = False  # True would hand over the worker's keys


type Single = StateFiles | StoreFiles | DiskFiles | ShellFiles


class CompositeFiles(Closed):
    """Paths that begin with a route go to its own place; all others to `default`."""

    use: Literal["composite"]
    default: Single = Field(default=StateFiles(), discriminator="use")
    routes: dict[VirtualPath, StateFiles | StoreFiles | DiskFiles] = Field(min_length=1)

    @field_validator("routes")
    @classmethod
    def _folders(cls, value: dict[str, Any]) -> dict[str, Any]:
        for path in value:
            if not path.endswith("/"):
                raise ValueError(f'the route {path} must end with "/"')
        return value


FileTool = Literal["ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute"]


class PathRule(Closed):
    operations: tuple[Literal["read", "write"], ...] = Field(min_length=1)
    paths: tuple[str, ...] = Field(min_length=1)
    mode: Literal["allow", "deny"] = "allow"  # "interrupt" works only inside create_deep_agent


class FilesystemOptions(Options):
    backend: StateFiles | StoreFiles | DiskFiles | ShellFiles | CompositeFiles = Field(
        default=StateFiles(), discriminator="use"
    )
    system_prompt: str | None = None
    custom_tool_descriptions: dict[FileTool, str] = Field(default_factory=dict)
    tools: tuple[FileTool, ...] | None = Field(default=None, description="None: all that the place can do.")
    permissions: tuple[PathRule, ...] = ()
    tool_token_limit_before_evict: int | None = Field(default=20_000, ge=100)
    human_message_token_limit_before_evict: int | None = Field(default=50_000, ge=100)
    max_execute_timeout: int = Field(default=3600, ge=1)
    grep_max_count: int | None = Field(default=1000, ge=1)
    offload_binary_content: bool = False

    @field_validator("backend", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _readable(self) -> Self:
        if self.tools is not None and "read_file" not in self.tools:
            raise ValueError("tools must contain read_file")
        return self


class SubAgentSpec(Closed):
    """A helper with its own prompt and conversation; only its last answer comes back."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    description: str = Field(min_length=1, description="The agent reads it to decide whom to ask.")
    system_prompt: str = ""
    tools: tuple[ToolName, ...] | None = Field(
        default=None, description="None: the tools of the agent itself."
    )
    model: Model | None = Field(default=None, description="None: the agent's own model.")
    middleware: tuple[dict[str, Any], ...] = Field(
        default=(), description="Besides the gate and the write guard, which it inherits."
    )
    mode: Literal["isolated"] = "isolated"  # "fork" is experimental and would share open calls
    graph: str | None = Field(default=None, description="A compiled graph by name, in place of a prompt.")


class SubagentsOptions(Options):
    subagents: tuple[SubAgentSpec, ...] = ()
    general_purpose: bool = Field(default=True, description="Adds a helper that is like the agent itself.")
    system_prompt: str | None = None
    task_description: str | None = None

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        names = [one.name for one in self.subagents] + (["general-purpose"] if self.general_purpose else [])
        if not names:
            raise ValueError("list a sub-agent, or keep general_purpose")
        if len(set(names)) < len(names):
            raise ValueError("two sub-agents have the same name")
        return self

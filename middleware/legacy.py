"""Older and LangChain's own spellings, accepted when a spec is imported, each with a note of what became of it. Light."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CLASSES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "SummarizationMiddleware": ("summarization", {}),
    "HumanInTheLoopMiddleware": ("human_in_the_loop", {}),
    "ModelCallLimitMiddleware": ("model_call_limit", {}),
    "ToolCallLimitMiddleware": ("tool_call_limit", {}),
    "ModelFallbackMiddleware": ("model_fallback", {}),
    "PIIMiddleware": ("pii", {}),
    "TodoListMiddleware": ("todo_list", {}),
    "PlanningMiddleware": ("todo_list", {}),
    "LLMToolSelectorMiddleware": ("llm_tool_selector", {}),
    "ToolRetryMiddleware": ("tool_retry", {}),
    "ToolErrorMiddleware": ("tool_error", {}),
    "ModelRetryMiddleware": ("model_retry", {}),
    "ModelRefusalMiddleware": ("model_refusal", {}),
    "LLMToolEmulator": ("llm_tool_emulator", {}),
    "ContextEditingMiddleware": ("context_editing", {}),
    "ShellToolMiddleware": ("shell_tool", {}),
    "FilesystemFileSearchMiddleware": ("file_search", {}),
    "FilesystemMiddleware": ("filesystem", {}),
    "SubAgentMiddleware": ("subagents", {}),
    "AutoModeMiddleware": ("auto_mode", {}),
    "ModelRouterMiddleware": ("model_router", {}),
    "ProviderToolSearchMiddleware": ("provider_tool_search", {}),
    "AnthropicPromptCachingMiddleware": ("anthropic_prompt_caching", {}),
    "ClaudeBashToolMiddleware": ("anthropic_bash", {}),
    "StateClaudeTextEditorMiddleware": ("anthropic_text_editor", {"where": "state"}),
    "FilesystemClaudeTextEditorMiddleware": ("anthropic_text_editor", {"where": "disk"}),
    "StateTextEditorToolMiddleware": ("anthropic_text_editor", {"where": "state"}),
    "FilesystemTextEditorToolMiddleware": ("anthropic_text_editor", {"where": "disk"}),
    "StateClaudeMemoryMiddleware": ("anthropic_memory", {"where": "state"}),
    "FilesystemClaudeMemoryMiddleware": ("anthropic_memory", {"where": "disk"}),
    "StateMemoryToolMiddleware": ("anthropic_memory", {"where": "state"}),
    "FilesystemMemoryToolMiddleware": ("anthropic_memory", {"where": "disk"}),
    "StateFileSearchMiddleware": ("anthropic_file_search", {}),
    "BedrockPromptCachingMiddleware": ("bedrock_prompt_caching", {}),
    "OpenAIModerationMiddleware": ("openai_moderation", {}),
}

EXCEPTIONS = {
    "Exception": "any", "ConnectionError": "connection", "TimeoutError": "timeout", "HTTPError": "http",
    "RateLimitError": "rate_limit", "InternalServerError": "server_error", "OSError": "os", "ValueError": "value",
}  # fmt: skip
POLICIES = {
    "HostExecutionPolicy": "host", "DockerExecutionPolicy": "docker", "CodexSandboxExecutionPolicy": "codex",
}  # fmt: skip
BACKENDS = {
    "StateBackend": "state", "StoreBackend": "store", "FilesystemBackend": "disk", "LocalShellBackend": "local_shell",
    "CompositeBackend": "composite",
}  # fmt: skip


@dataclass(frozen=True)
class Note:
    """What became of an older spelling. `text` is an English message id with `%(name)s` places."""

    text: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text % self.params


RENAMED = "%(old)s is called %(new)s here."
MOVED = "%(use)s: %(old)s is now %(new)s."
DROPPED = "%(use)s: %(old)s was left out: %(why)s."
ONE_BY_ONE = "human_in_the_loop: every call is asked about by itself, not in batches."
SET_FALSE = "human_in_the_loop: %(tool)s was left out: it was set to false."
ERRORS_BY_NAME = "%(use)s: exception classes are named %(names)s."
READS_ONLY = "tool_retry: it repeated every tool; now it lists those that only read: %(tools)s."
HELPERS_USE = "subagents: helpers without a model of their own use %(model)s."
NOTES = (RENAMED, MOVED, DROPPED, ONE_BY_ONE, SET_FALSE, ERRORS_BY_NAME, READS_ONLY, HELPERS_USE)

WHOLE_PROMPT = "write the whole summary_prompt instead"
PAGE_SHOWS = "the page shows the call itself"
ERRORS_GO_ON = "an error that stays goes on to tool_error, which tells the model"
TOOLS_OF_AGENT = "helpers without tools of their own have those of the agent"
REASONS = (WHOLE_PROMPT, PAGE_SHOWS, ERRORS_GO_ON, TOOLS_OF_AGENT)


def modernise(
    given: Mapping[str, Any], *, reads: Sequence[str] = (), model: str = ""
) -> tuple[dict[str, Any], list[Note]]:
    """One element of a spec's middleware in today's words.

    Args:
        given: As it was written; `use` may be the name of LangChain's class.
        reads: The agent's tools that only read, for what used to mean "all tools".
        model: The agent's model.
    """
    entry = dict(given)
    notes: list[Note] = []
    named = entry.pop("use", None) or entry.pop("type", None) or entry.pop("class", None)
    if isinstance(named, str) and named in CLASSES:
        new, more = CLASSES[named]
        notes.append(Note(RENAMED, {"old": named, "new": new}))
        named, entry = new, {**more, **entry}
    entry = {"use": named, **entry}
    change = CHANGES.get(str(named))
    if change is not None:
        notes += change(entry, _Known(tuple(reads), model))
    return entry, notes


@dataclass(frozen=True)
class _Known:
    reads: tuple[str, ...]
    model: str


type Change = Callable[[dict[str, Any], _Known], Iterator[Note]]


def _moved(entry: dict[str, Any], old: str, new: str, value: Any) -> Iterator[Note]:
    if entry.pop(old, None) is not None:
        entry.setdefault(new, value)
        yield Note(MOVED, {"use": entry["use"], "old": old, "new": new})


def _dropped(entry: dict[str, Any], why: str, *old: str) -> Iterator[Note]:
    for name in old:
        if name in entry:
            del entry[name]
            yield Note(DROPPED, {"use": entry["use"], "old": name, "why": why})


def _summarization(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    tokens, kept = entry.get("max_tokens_before_summary"), entry.get("messages_to_keep")
    yield from _moved(entry, "max_tokens_before_summary", "trigger", ["tokens", tokens])
    yield from _moved(entry, "messages_to_keep", "keep", ["messages", kept])
    yield from _dropped(entry, WHOLE_PROMPT, "summary_prefix")


def _approval(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    yield from _moved(entry, "tool_configs", "interrupt_on", entry.get("tool_configs"))
    if entry.get("interrupt_mode") == "batched":
        entry["interrupt_mode"] = "per_call"
        yield Note(ONE_BY_ONE)
    yield from _dropped(entry, PAGE_SHOWS, "description_prefix", "edit_notice")
    listed = entry.get("interrupt_on")
    if isinstance(listed, Mapping):
        kept = {name: gate for name, gate in listed.items() if gate is not False}
        for name in sorted(set(listed) - set(kept)):
            yield Note(SET_FALSE, {"tool": name})
        entry["interrupt_on"] = {name: _gate(gate) for name, gate in kept.items()}


def _gate(gate: Any) -> Any:
    if gate is True:
        return {}
    if not isinstance(gate, Mapping):
        return gate
    new = {name: value for name, value in gate.items() if name not in ("description", "args_schema")}
    old = {"allow_accept": "approve", "allow_edit": "edit", "allow_respond": "respond"}
    if set(old) & set(new):
        allowed = [word for name, word in old.items() if new.pop(name, False)]
        new.setdefault("allowed_decisions", [*allowed, "reject"])
    return new


def _retry(entry: dict[str, Any]) -> Iterator[Note]:
    named = entry.get("retry_on")
    if isinstance(named, str):
        named = [named]
    if isinstance(named, list | tuple) and any(name in EXCEPTIONS for name in named):
        entry["retry_on"] = [EXCEPTIONS.get(name, name) for name in named]
        yield Note(
            ERRORS_BY_NAME,
            {"use": entry["use"], "names": ", ".join(entry["retry_on"])},
        )


def _tool_retry(entry: dict[str, Any], known: _Known) -> Iterator[Note]:
    yield from _retry(entry)
    yield from _dropped(entry, ERRORS_GO_ON, "on_failure")
    if not entry.get("tools"):
        entry["tools"] = list(known.reads)
        yield Note(
            READS_ONLY,
            {"tools": ", ".join(known.reads)},
        )


def _model_retry(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    yield from _retry(entry)
    old = entry.get("on_failure")
    new = {"raise": "error", "return_message": "continue"}.get(str(old))
    if new:
        entry["on_failure"] = new
        yield Note(MOVED, {"use": "model_retry", "old": f"on_failure {old}", "new": f"on_failure {new}"})


def _fallback(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    first, more = entry.get("first_model"), entry.pop("additional_models", None) or []
    yield from _moved(entry, "first_model", "models", [first, *more])


def _editing(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    edits = entry.get("edits")
    if isinstance(edits, list):
        entry["edits"] = [
            {**edit, "use": "clear_tool_uses"} if isinstance(edit, Mapping) else edit for edit in edits
        ]
        entry["edits"] = [_without(edit, "type") for edit in entry["edits"]]
    return iter(())


def _without(value: Any, name: str) -> Any:
    return {key: v for key, v in value.items() if key != name} if isinstance(value, Mapping) else value


def _shell(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    policy = entry.pop("execution_policy", None)
    if policy is not None:
        entry["execution_policy"] = new = _renamed(policy, POLICIES)
        if isinstance(new, dict) and any(old in str(policy) for old in POLICIES):
            yield Note(MOVED, {"use": entry["use"], "old": "execution_policy", "new": f"named {new['use']}"})
    if isinstance(entry.get("startup_commands"), str):
        entry["startup_commands"] = [entry["startup_commands"]]
    if isinstance(entry.get("shutdown_commands"), str):
        entry["shutdown_commands"] = [entry["shutdown_commands"]]


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return {"use": names.get(value, value)}
    if isinstance(value, Mapping):
        named = value.get("use") or value.get("type") or value.get("class")
        rest = {key: v for key, v in value.items() if key not in ("use", "type", "class")}
        return {"use": names.get(str(named), named), **rest}
    return value


def _filesystem(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    if entry.pop("long_term_memory", False):
        entry["backend"] = {"use": "composite", "routes": {"/memories/": "store"}}
        yield Note(MOVED, {"use": "filesystem", "old": "long_term_memory", "new": "a composite backend"})
    if "backend" in entry:
        backend = _renamed(entry.pop("backend"), BACKENDS)
        if isinstance(backend, dict) and backend["use"] == "composite":
            routes = backend.get("routes", {})
            backend["routes"] = {path: _renamed(place, BACKENDS) for path, place in routes.items()}
            if "default" in backend:
                backend["default"] = _renamed(backend["default"], BACKENDS)
        if backend is not None:
            entry["backend"] = backend
    yield from _moved(entry, "tool_descriptions", "custom_tool_descriptions", entry.get("tool_descriptions"))


def _subagents(entry: dict[str, Any], known: _Known) -> Iterator[Note]:
    yield from _moved(
        entry, "general_purpose_agent", "general_purpose", bool(entry.get("general_purpose_agent"))
    )
    model = entry.pop("default_model", None)
    if model not in (None, known.model):
        yield Note(HELPERS_USE, {"model": model})
    yield from _dropped(entry, TOOLS_OF_AGENT, "default_tools")
    helpers = entry.get("subagents")
    if isinstance(helpers, list):
        entry["subagents"] = [_helper(one, model if model != known.model else None) for one in helpers]


def _helper(one: Any, model: Any) -> Any:
    if not isinstance(one, Mapping):
        return one
    new = dict(one)
    if "prompt" in new:
        new.setdefault("system_prompt", new.pop("prompt"))
    if model is not None and not new.get("graph"):
        new.setdefault("model", model)
    return new


def _placed(entry: dict[str, Any], _: _Known) -> Iterator[Note]:
    yield from _moved(entry, "allowed_prefixes", "allowed_path_prefixes", entry.get("allowed_prefixes"))


CHANGES: Mapping[str, Change] = {
    "summarization": _summarization,
    "human_in_the_loop": _approval,
    "tool_retry": _tool_retry,
    "model_retry": _model_retry,
    "model_fallback": _fallback,
    "context_editing": _editing,
    "shell_tool": _shell,
    "anthropic_bash": _shell,
    "filesystem": _filesystem,
    "subagents": _subagents,
    "anthropic_text_editor": _placed,
    "anthropic_memory": _placed,
}

"""What works with Claude only."""

from __future__ import annotations

from typing import Any

from langchain_anthropic import middleware as claude

from middleware.entry import Surroundings
from middleware.factories.files import shell_options
from middleware.factories.naming import Middleware, given, with_id
from middleware.options import files as fo
from middleware.options import providers as o
from middleware.shell import OneSession


class ClaudeBash(OneSession, claude.ClaudeBashToolMiddleware):
    """Claude's bash with one session for each drive."""


def prompt_caching(options: o.PromptCachingOptions, _: Surroundings) -> Middleware:
    caching = claude.AnthropicPromptCachingMiddleware(
        type=options.type,
        ttl=options.ttl,
        min_messages_to_cache=options.min_messages_to_cache,
        unsupported_model_behavior=options.unsupported_model_behavior,
    )
    return with_id(caching, options)


def bash(options: fo.AnthropicBashOptions, around: Surroundings) -> Middleware:
    return with_id(ClaudeBash(**shell_options(options, around)), options)


def text_editor(options: o.AnthropicTextEditorOptions, _: Surroundings) -> Middleware:
    prefixes = list(options.allowed_path_prefixes) or None
    if options.where == "state":
        return with_id(claude.StateClaudeTextEditorMiddleware(allowed_path_prefixes=prefixes), options)
    editor = claude.FilesystemClaudeTextEditorMiddleware(
        root_path=str(options.root_path), allowed_prefixes=prefixes, max_file_size_mb=options.max_file_size_mb
    )
    return with_id(editor, options)


def memory(options: o.AnthropicMemoryOptions, _: Surroundings) -> Middleware:
    prefixes = list(options.allowed_path_prefixes) or None
    told: Any = given(system_prompt=options.system_prompt)
    if options.where == "state":
        return with_id(claude.StateClaudeMemoryMiddleware(allowed_path_prefixes=prefixes, **told), options)
    kept = claude.FilesystemClaudeMemoryMiddleware(
        root_path=str(options.root_path),
        allowed_prefixes=prefixes,
        max_file_size_mb=options.max_file_size_mb,
        **told,
    )
    return with_id(kept, options)


def file_search(options: o.AnthropicFileSearchOptions, _: Surroundings) -> Middleware:
    return with_id(claude.StateFileSearchMiddleware(state_key=options.state_key), options)

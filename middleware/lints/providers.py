"""Middleware that belongs to one provider, with a model of another. Light."""

from __future__ import annotations

from collections.abc import Iterator

from middleware.lints.finding import Lint, Stack, error, warning

CLAUDE = ("anthropic",)
BEDROCK = ("bedrock", "bedrock_converse", "anthropic_bedrock", "aws")
FAILS_ELSEWHERE = {
    "anthropic_bash": CLAUDE,
    "anthropic_text_editor": CLAUDE,
    "anthropic_memory": CLAUDE,
    "provider_tool_search": ("anthropic", "openai"),
}
IDLE_ELSEWHERE = {"anthropic_prompt_caching": CLAUDE, "bedrock_prompt_caching": BEDROCK}


def provider_of(model: str) -> str:
    """ "" when the string does not say it."""
    head, colon, _ = model.partition(":")
    return head if colon and head != "demo" else ""


def providers(stack: Stack) -> Iterator[Lint]:
    if not stack.model or stack.model == "demo:scripted":
        return
    named = provider_of(stack.model) or stack.model
    for _, entry, options in stack.named(*FAILS_ELSEWHERE, *IDLE_ELSEWHERE):
        if entry.name == "provider_tool_search" and not options.searchable_tools:
            continue  # it then does nothing, with any model
        wanted = FAILS_ELSEWHERE.get(entry.name) or IDLE_ELSEWHERE[entry.name]
        if named in wanted or (not provider_of(stack.model) and not stack.model.startswith("demo:")):
            continue
        if entry.name in FAILS_ELSEWHERE or options.unsupported_model_behavior == "raise":
            yield error("wrong-provider", use=entry.name, wanted=" / ".join(wanted), model=stack.model)
        else:
            yield warning("idle-provider", use=entry.name, model=stack.model)


def searched_files(stack: Stack) -> Iterator[Lint]:
    kept = {
        "text_editor_files": "anthropic_text_editor",
        "memory_files": "anthropic_memory",
    }
    for _, entry, options in stack.named("anthropic_file_search"):
        wanted = kept[options.state_key]
        if not any(found.where == "state" for _, _, found in stack.named(wanted)):
            yield warning("nothing-to-search", use=entry.name, wanted=wanted)


RULES = (providers, searched_files)

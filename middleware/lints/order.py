"""What must stand outside what. Light."""

from __future__ import annotations

from collections.abc import Iterator

from middleware.lints.finding import GUARD, HITL, Lint, Stack, error, warning

INSIDE_APPROVAL = frozenset({"tool_error", "tool_retry", GUARD, "llm_tool_emulator", "auto_mode"})
CHANGES_PROMPT = (
    "dynamic_prompt", "todo_list", "filesystem", "subagents", "llm_tool_selector", "role_tools", "context_editing",
    "anthropic_memory", "anthropic_text_editor", "anthropic_bash", "provider_tool_search",
)  # fmt: skip
CACHING = ("anthropic_prompt_caching", "bedrock_prompt_caching")


def approval(stack: Stack) -> Iterator[Lint]:
    """What answers, repeats or swallows a call must stand inside the question, or nobody is asked."""
    at = stack.index(HITL)
    if at is None:
        return
    gated = stack.touched(at)
    for n in range(at):
        entry = stack.items[n][0]
        wraps = "wrap_tool_call" in entry.hooks
        if wraps and (entry.name in INSIDE_APPROVAL or stack.touched(n) & gated):
            yield error("outside-approval", use=entry.name)
    for n, entry, _ in stack.named("repeat_guard", "role_tools"):
        if n > at:
            yield warning("asked-in-vain", use=entry.name)


def errors_and_retries(stack: Stack) -> Iterator[Lint]:
    told, repeated = stack.index("tool_error"), stack.index("tool_retry")
    if told is not None and repeated is not None and repeated < told:
        yield warning("retry-outside-error")
    covered = frozenset(name for n, *_ in stack.named("tool_error") for name in stack.touched(n))
    for n, *_ in stack.named("tool_retry"):
        for name in sorted(stack.touched(n) - covered - stack.effects("write", "ask")):
            yield warning("retry-unanswered", tool=name)


def retried_writes(stack: Stack) -> Iterator[Lint]:
    codes = {"tool_retry": "retried-write", "tool_error": "caught-write"}
    for n, entry, _ in stack.named(*codes):
        for name in sorted(stack.touched(n) & stack.effects("write", "ask")):
            yield error(codes[entry.name], tool=name)


def models(stack: Stack) -> Iterator[Lint]:
    fallback = stack.index("model_fallback")
    if fallback is None:
        return
    for n, entry, _ in stack.named(*CACHING):
        if n < fallback:
            yield warning("caching-outside-fallback", use=entry.name)
    for n, *_ in stack.named("model_refusal"):
        if n < fallback:
            yield warning("refusal-outside-fallback")
    for n, *_ in stack.named("model_retry"):
        if n < fallback:
            yield warning("retry-outside-fallback")


def caching(stack: Stack) -> Iterator[Lint]:
    for n, entry, _ in stack.named(*CACHING):
        for later, other, _ in stack.named(*CHANGES_PROMPT):
            if later > n:
                yield warning("caching-too-early", use=entry.name, other=other.name)


RULES = (approval, errors_and_retries, retried_writes, models, caching)

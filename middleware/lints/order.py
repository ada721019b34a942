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
            yield error("outside-approval", f"{entry.name} must stand behind {HITL} in the list")
    for n, entry, _ in stack.named("repeat_guard", "role_tools"):
        if n > at:
            text = (
                f"{entry.name} stands behind {HITL}: people are asked about calls that it refuses afterwards"
            )
            yield warning("asked-in-vain", text)


def errors_and_retries(stack: Stack) -> Iterator[Lint]:
    told, repeated = stack.index("tool_error"), stack.index("tool_retry")
    if told is not None and repeated is not None and repeated < told:
        text = "tool_retry stands outside tool_error, which has already turned the error into a message"
        yield warning("retry-outside-error", text)
    covered = frozenset(name for n, *_ in stack.named("tool_error") for name in stack.touched(n))
    for n, *_ in stack.named("tool_retry"):
        for name in sorted(stack.touched(n) - covered - stack.effects("write", "ask")):
            text = f"when every repeat of {name} fails the run fails: list it in tool_error too"
            yield warning("retry-unanswered", text)


def retried_writes(stack: Stack) -> Iterator[Lint]:
    why = {"tool_retry": "it could happen twice", "tool_error": "its exceptions are not failures"}
    for n, entry, _ in stack.named(*why):
        for name in sorted(stack.touched(n) & stack.effects("write", "ask")):
            yield error("not-a-read", f"{entry.name} lists {name}, which is not a read: {why[entry.name]}")


def models(stack: Stack) -> Iterator[Lint]:
    fallback = stack.index("model_fallback")
    if fallback is None:
        return
    for n, entry, _ in stack.named(*CACHING):
        if n < fallback:
            text = f"{entry.name} stands outside model_fallback: the fallback's requests are not marked"
            yield warning("caching-outside-fallback", text)
    for n, *_ in stack.named("model_refusal"):
        if n < fallback:
            text = "model_refusal stands outside model_fallback, which then never sees a refusal"
            yield warning("refusal-outside-fallback", text)
    for n, *_ in stack.named("model_retry"):
        if n < fallback:
            text = "model_retry stands outside model_fallback: each repeat goes through all the models again"
            yield warning("retry-outside-fallback", text)


def caching(stack: Stack) -> Iterator[Lint]:
    for n, entry, _ in stack.named(*CACHING):
        for later, other, _ in stack.named(*CHANGES_PROMPT):
            if later > n:
                text = (
                    f"{entry.name} stands outside {other.name}, which changes the request after it was marked"
                )
                yield warning("caching-too-early", text)


RULES = (approval, errors_and_retries, retried_writes, models, caching)

"""Where text goes before it is looked at. Light."""

from __future__ import annotations

from collections.abc import Iterator

from middleware.lints.finding import HITL, Lint, Stack, warning


def personal_data(stack: Stack) -> Iterator[Lint]:
    summary, moderation = stack.index("summarization"), stack.index("openai_moderation")
    for n, _, options in stack.named("pii"):
        if summary is not None and summary < n:
            text = f"pii ({options.pii_type}) stands behind summarization: the summary is made from the original text"
            yield warning("pii-late", text)
        if moderation is not None and moderation < n and options.apply_to_input:
            text = f"pii ({options.pii_type}) stands behind openai_moderation, which sends the original text to OpenAI"
            yield warning("pii-after-moderation", text)
        if options.apply_to_output:
            text = f"pii ({options.pii_type}) redacts the stored answer, not the text that is streamed before"
            yield warning("pii-stream", text)


def shells(stack: Stack) -> Iterator[Lint]:
    for _, entry, options in stack.named("shell_tool", "anthropic_bash"):
        if options.execution_policy.use == "host":
            text = (
                f"{entry.name} with the host policy runs commands as the worker does, with all it may reach"
            )
            yield warning("shell-on-host", text)
        if stack.index(HITL) is not None:
            text = f"a pause ends the session of {entry.name}: variables and the current folder are lost, files stay"
            yield warning("shell-session-lost", text)


RULES = (personal_data, shells)

"""Where text goes before it is looked at. Light."""

from __future__ import annotations

from collections.abc import Iterator

from middleware.lints.finding import HITL, Lint, Stack, warning


def personal_data(stack: Stack) -> Iterator[Lint]:
    summary, moderation = stack.index("summarization"), stack.index("openai_moderation")
    for n, _, options in stack.named("pii"):
        if summary is not None and summary < n:
            yield warning("pii-late", kind=options.pii_type)
        if moderation is not None and moderation < n and options.apply_to_input:
            yield warning("pii-after-moderation", kind=options.pii_type)
        if options.apply_to_output:
            yield warning("pii-stream", kind=options.pii_type)


def shells(stack: Stack) -> Iterator[Lint]:
    for _, entry, options in stack.named("shell_tool", "anthropic_bash"):
        if options.execution_policy.use == "host":
            yield warning("shell-on-host", use=entry.name)
        if stack.index(HITL) is not None:
            yield warning("shell-session-lost", use=entry.name)


RULES = (personal_data, shells)

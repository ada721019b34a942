"""Counts, waits and sizes that do not hold. Light."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from middleware.lints.finding import HITL, Lint, Stack, error, warning

LONG_WAIT = 120.0  # seconds that one call may keep a worker waiting


def limits(stack: Stack) -> Iterator[Lint]:
    pauses = stack.index(HITL) is not None
    for _, entry, options in stack.named("model_call_limit", "tool_call_limit"):
        if options.on_limit == "end" and options.run_limit and pauses:
            yield warning("limit-resets", use=entry.name)
    if stack.index("model_call_limit") is None:
        yield warning("no-limit")


def waits(stack: Stack) -> Iterator[Lint]:
    for _, entry, options in stack.named("tool_retry", "model_retry"):
        seconds = _longest(options)
        if seconds > LONG_WAIT:
            yield warning("long-wait", use=entry.name, seconds=round(seconds))
        if entry.name == "model_retry" and options.on_failure != "error":
            yield warning("failure-as-answer", value=options.on_failure)


def _longest(options: Any) -> float:
    factor: float = options.backoff_factor
    waits = (options.initial_delay * (factor**n if factor else 1.0) for n in range(options.max_retries))
    return float(sum(min(wait, options.max_delay) for wait in waits))


def summaries(stack: Stack) -> Iterator[Lint]:
    for _, _, options in stack.named("summarization"):
        kind, kept = options.keep
        starts = [clause[1] for clause in options.trigger if isinstance(clause, tuple) and clause[0] == kind]
        if starts and min(starts) <= kept:
            yield warning("summary-of-nothing", start=f"{min(starts):g}", kind=kind, kept=f"{kept:g}")
        sizes = [kind, *(part for clause in options.trigger for part in _kinds(clause))]
        named = str(options.model or stack.model)
        if "fraction" in sizes and named.startswith("demo:"):
            yield error("unknown-size", model=named)


def _kinds(clause: Any) -> list[str]:
    return list(clause) if isinstance(clause, dict) else [clause[0]]


RULES = (limits, waits, summaries)

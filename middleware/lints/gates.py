"""Writes need a gate that can ask; questions need a person; nothing stands in for a write. Light."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from middleware.lints.finding import GUARD, HITL, Lint, Stack, error, warning
from middleware.predicates import rule


def availability(stack: Stack) -> Iterator[Lint]:
    for entry, options in stack.items:
        if entry.unavailable():
            yield error("unavailable", use=entry.name, package=entry.install or entry.package)
        if what := entry.missing(options):
            yield warning("missing-here", use=entry.name, what=what)


def names(stack: Stack) -> Iterator[Lint]:
    counted = Counter(entry.title(options) for entry, options in stack.items)
    for name, times in counted.items():
        if times > 1:
            yield error("duplicate", name=name, times=times)
    for once in (HITL, GUARD):
        if sum(entry.name == once for entry, _ in stack.items) > 1:
            yield error("two-gates" if once == HITL else "two-guards")


def clashes(stack: Stack, own: frozenset[str]) -> Iterator[Lint]:
    added = [tool.name for entry, options in stack.items for tool in entry.adds_tools(options)]
    for name, times in Counter([*added, *own]).items():
        if times > 1:
            yield error("tool-clash", tool=name)


def known_tools(stack: Stack) -> Iterator[Lint]:
    for n, (entry, options) in enumerate(stack.items):
        listed = stack.touched(n) | set(entry.names_tools(options)) | set(entry.delegates(options))
        for name in sorted(listed - set(stack.tools)):
            yield error("unknown-tool", use=entry.name, tool=name)


def gates(stack: Stack) -> Iterator[Lint]:
    options = stack.options(HITL)
    listed = dict(options.interrupt_on) if options else {}
    for name in sorted(stack.effects("write") - set(listed)):
        yield error("ungated-write", tool=name)
    for name in sorted(stack.effects("ask") - set(listed)):
        yield error("unasked", tool=name)
    for name, gate in listed.items():
        effect = stack.tools[name].effect if name in stack.tools else ""
        if effect == "write":
            yield from _of_write(name, gate)
        if effect == "ask":
            yield from _of_question(name, gate)


def _of_write(name: str, gate: object) -> Iterator[Lint]:
    if "respond" in gate.allowed_decisions:  # type: ignore[attr-defined]
        yield error("respond-on-write", tool=name)
    if not rule(gate.when).predicate.gates:  # type: ignore[attr-defined]
        yield error("never-asks", tool=name)


def _of_question(name: str, gate: object) -> Iterator[Lint]:
    if not set(gate.allowed_decisions) <= {"respond", "reject"}:  # type: ignore[attr-defined]
        yield error("ask-decisions", tool=name)
    if gate.when is not None and not rule(gate.when).judge({}).asks:  # type: ignore[attr-defined]
        yield error("ask-rule", tool=name)


def guard(stack: Stack) -> Iterator[Lint]:
    at = stack.index(GUARD)
    if at is None:
        yield error("no-guard")
        return
    writes = stack.effects("write", "ask")
    for n in range(at + 1, len(stack.items)):
        if touched := stack.touched(n) & writes:
            entry = stack.items[n][0]
            yield error("inside-guard", use=entry.name, tools=", ".join(sorted(touched)))


def emulation(stack: Stack) -> Iterator[Lint]:
    for n, entry, _ in stack.named("llm_tool_emulator"):
        for name in sorted(stack.touched(n) & stack.effects("write")):
            yield warning("emulated-write", use=entry.name, tool=name)


def jumps(stack: Stack) -> Iterator[Lint]:
    for entry, _ in stack.items:
        for hook in entry.jumps:
            yield error("jump-undeclared", hook=hook, use=entry.name)


RULES = (availability, names, known_tools, gates, guard, emulation, jumps)

"""Writes need a gate that can ask; questions need a person; nothing stands in for a write. Light."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from middleware.lints.finding import GUARD, HITL, Lint, Stack, error, warning
from middleware.predicates import rule


def availability(stack: Stack) -> Iterator[Lint]:
    for entry, options in stack.items:
        if reason := entry.unavailable():
            yield error("unavailable", f"{entry.name} {reason}")
        if reason := entry.missing(options):
            yield warning("missing-here", f"{entry.name} {reason}, which is not there on this machine")


def names(stack: Stack) -> Iterator[Lint]:
    counted = Counter(entry.title(options) for entry, options in stack.items)
    for name, times in counted.items():
        if times > 1:
            yield error("duplicate", f"{name} is listed {times} times: give one of them an id")
    for once in (HITL, GUARD):
        if sum(entry.name == once for entry, _ in stack.items) > 1:
            code = "two-gates" if once == HITL else "two-guards"
            yield error(
                code,
                f"{once} is listed twice: one list of gates decides"
                if once == HITL
                else f"{once} is listed twice",
            )


def clashes(stack: Stack, own: frozenset[str]) -> Iterator[Lint]:
    added = [tool.name for entry, options in stack.items for tool in entry.adds_tools(options)]
    for name, times in Counter([*added, *own]).items():
        if times > 1:
            yield error("tool-clash", f"two tools are called {name}")


def known_tools(stack: Stack) -> Iterator[Lint]:
    for n, (entry, options) in enumerate(stack.items):
        listed = stack.touched(n) | set(entry.names_tools(options)) | set(entry.delegates(options))
        for name in sorted(listed - set(stack.tools)):
            yield error("unknown-tool", f"{entry.name} names {name}, which is not a tool of this agent")


def gates(stack: Stack) -> Iterator[Lint]:
    options = stack.options(HITL)
    listed = dict(options.interrupt_on) if options else {}
    for name in sorted(stack.effects("write") - set(listed)):
        yield error("ungated-write", f"{name} writes but is not listed in {HITL}")
    for name in sorted(stack.effects("ask") - set(listed)):
        yield error("unasked", f"{name} is a question to a person but is not listed in {HITL}")
    for name, gate in listed.items():
        effect = stack.tools[name].effect if name in stack.tools else ""
        if effect == "write":
            yield from _of_write(name, gate)
        if effect == "ask":
            yield from _of_question(name, gate)


def _of_write(name: str, gate: object) -> Iterator[Lint]:
    if "respond" in gate.allowed_decisions:  # type: ignore[attr-defined]
        text = f"{name} writes: answering in its place would tell the model that something happened"
        yield error("respond-on-write", text)
    if not rule(gate.when).predicate.gates:  # type: ignore[attr-defined]
        yield error("never-asks", f"the rule of {name} never asks: a write needs a rule that can")


def _of_question(name: str, gate: object) -> Iterator[Lint]:
    if not set(gate.allowed_decisions) <= {"respond", "reject"}:  # type: ignore[attr-defined]
        yield error("ask-decisions", f"{name} is a question: only respond and reject make sense")
    if gate.when is not None and not rule(gate.when).judge({}).asks:  # type: ignore[attr-defined]
        yield error("ask-rule", f"{name} is a question: it is always asked")


def guard(stack: Stack) -> Iterator[Lint]:
    at = stack.index(GUARD)
    if at is None:
        yield error("no-guard", f"{GUARD} is missing")
        return
    writes = stack.effects("write", "ask")
    for n in range(at + 1, len(stack.items)):
        if touched := stack.touched(n) & writes:
            entry = stack.items[n][0]
            text = f"{entry.name} stands inside {GUARD} and may change calls of {', '.join(sorted(touched))}"
            yield error("inside-guard", text)


def emulation(stack: Stack) -> Iterator[Lint]:
    for n, entry, _ in stack.named("llm_tool_emulator"):
        for name in sorted(stack.touched(n) & stack.effects("write")):
            text = f"{entry.name} makes up what {name} answers: the model is told of something that did not happen"
            yield warning("emulated-write", text)


def jumps(stack: Stack) -> Iterator[Lint]:
    for entry, _ in stack.items:
        for hook in entry.jumps:
            text = f"{hook} of {entry.name} returns jump_to without can_jump_to: LangChain would not jump"
            yield error("jump-undeclared", text)


RULES = (availability, names, known_tools, gates, guard, emulation, jumps)

"""From the middleware of a spec to an ordered list, refused with reasons when the order would open a gate. Light.

The first of the list is the outermost: its `wrap_*` hooks see a call first and its result last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from middleware.catalogue import AddedTool, BadEntry, Entry, Middleware, Surroundings, parse
from middleware.policy import HITL, SpecMiddleware, judges
from middleware.ports import Approvals, ToolInfo
from middleware.predicates import rule

__all__ = ["Lint", "StackError", "all_facts", "build_stack", "judges", "lint"]

GUARD = "write_guard"
RETRIES = frozenset({"tool_retry"})


@dataclass(frozen=True)
class Lint:
    """One finding about a stack. An `error` refuses it."""

    level: Literal["error", "warning"]
    code: str
    text: str


class StackError(ValueError):
    """The stack must not be built. `findings` are its errors."""

    def __init__(self, findings: list[Lint]) -> None:
        super().__init__("; ".join(finding.text for finding in findings))
        self.findings = findings


@dataclass(frozen=True)
class _Stack:
    """A spec that could be read, with the facts about its tools."""

    items: list[tuple[Entry, Any]]
    tools: Mapping[str, ToolInfo]

    def index(self, name: str) -> int | None:
        return next((n for n, (entry, _) in enumerate(self.items) if entry.name == name), None)

    def options(self, name: str) -> Any | None:
        return next((options for entry, options in self.items if entry.name == name), None)

    def touched(self, n: int) -> frozenset[str]:
        """Tools that the n-th middleware may answer, repeat or change."""
        entry, options = self.items[n]
        touches = entry.touches(options)
        if touches == "all":
            return frozenset(self.tools)
        return frozenset() if touches == "none" else touches

    def names(self, *effects: str) -> frozenset[str]:
        return frozenset(name for name, tool in self.tools.items() if tool.effect in effects)


def all_facts(spec_middleware: SpecMiddleware, tools: Mapping[str, ToolInfo]) -> dict[str, ToolInfo]:
    """The agent's tools and those its middleware brings. Raises `BadEntry`."""
    added: list[AddedTool] = []
    for spec_entry in spec_middleware:
        entry, options = parse(spec_entry)
        added += entry.adds_tools(options)
    return {**{tool.name: tool for tool in added}, **tools}


def lint(spec_middleware: SpecMiddleware, tools: Mapping[str, ToolInfo]) -> list[Lint]:
    """Everything that is wrong or doubtful, errors first. `tools`: facts of the agent's own tools by name."""
    spec, items, found = list(spec_middleware), [], []
    for spec_entry in spec:
        try:
            items.append(parse(spec_entry))
        except BadEntry as error:
            found.append(Lint("error", "unreadable", str(error)))
    if found:
        return found  # the order of a list with holes says nothing
    stack = _Stack(items, all_facts(spec, tools))
    for check in (_availability, _names, _listed_tools, _gates, _guard, _order, _retries, _limits, _privacy):
        found += check(stack)
    found += _clashes(items, tools)
    return sorted(found, key=lambda finding: finding.level)


def build_stack(
    spec_middleware: SpecMiddleware, *, tools: Mapping[str, ToolInfo], approvals: Approvals
) -> list[Middleware]:
    """The middleware in order, outermost first. Imports LangChain. Raises `StackError`."""
    spec = list(spec_middleware)
    errors = [finding for finding in lint(spec, tools) if finding.level == "error"]
    if errors:
        raise StackError(errors)
    around = Surroundings(tools=all_facts(spec, tools), approvals=approvals)
    return [entry.build(options, around) for entry, options in map(parse, spec)]


def _availability(stack: _Stack) -> Iterator[Lint]:
    for entry, _ in stack.items:
        if reason := entry.unavailable():
            yield Lint("error", "unavailable", f"{entry.name} {reason}")


def _names(stack: _Stack) -> Iterator[Lint]:
    counted = Counter(entry.title(options) for entry, options in stack.items)
    for name, times in counted.items():
        if times > 1:
            yield Lint("error", "duplicate", f"{name} is listed {times} times: give one of them an id")
    if sum(entry.name == HITL for entry, _ in stack.items) > 1:
        yield Lint("error", "two-gates", f"{HITL} is listed twice: one list of gates decides")


def _clashes(items: list[tuple[Entry, Any]], tools: Mapping[str, ToolInfo]) -> Iterator[Lint]:
    added = [tool.name for entry, options in items for tool in entry.adds_tools(options)]
    for name, times in Counter([*added, *tools]).items():
        if times > 1:
            yield Lint("error", "tool-clash", f"two tools are called {name}")


def _listed_tools(stack: _Stack) -> Iterator[Lint]:
    for n, (entry, _) in enumerate(stack.items):
        for name in sorted(stack.touched(n) - set(stack.tools)):
            yield Lint(
                "error", "unknown-tool", f"{entry.name} names {name}, which is not a tool of this agent"
            )


def _gates(stack: _Stack) -> Iterator[Lint]:
    """Writes need a gate that can ask; questions need a person; an answer never stands in for a write."""
    options = stack.options(HITL)
    gates = dict(options.interrupt_on) if options else {}
    for name in sorted(stack.names("write") - set(gates)):
        yield Lint("error", "ungated-write", f"{name} writes but is not listed in {HITL}")
    for name in sorted(stack.names("ask") - set(gates)):
        yield Lint("error", "unasked", f"{name} is a question to a person but is not listed in {HITL}")
    for name, gate in gates.items():
        effect = stack.tools[name].effect if name in stack.tools else ""
        if effect == "write" and "respond" in gate.allowed_decisions:
            text = f"{name} writes: answering in its place would tell the model that something happened"
            yield Lint("error", "respond-on-write", text)
        if effect == "write" and not rule(gate.when).predicate.gates:
            yield Lint("error", "never-asks", f"the rule of {name} never asks: a write needs a rule that can")
        if effect == "ask" and not set(gate.allowed_decisions) <= {"respond", "reject"}:
            yield Lint("error", "ask-decisions", f"{name} is a question: only respond and reject make sense")
        if effect == "ask" and gate.when is not None and not rule(gate.when).judge({}).asks:
            yield Lint("error", "ask-rule", f"{name} is a question: it is always asked")


def _guard(stack: _Stack) -> Iterator[Lint]:
    at = stack.index(GUARD)
    if at is None:
        yield Lint("error", "no-guard", f"{GUARD} is missing")
        return
    writes = stack.names("write", "ask")
    for n in range(at + 1, len(stack.items)):
        if touched := stack.touched(n) & writes:
            entry = stack.items[n][0]
            text = f"{entry.name} stands inside {GUARD} and may change calls of {', '.join(sorted(touched))}"
            yield Lint("error", "inside-guard", text)


def _order(stack: _Stack) -> Iterator[Lint]:
    """What answers, repeats or swallows a call must stand inside the question, or nobody is asked."""
    at = stack.index(HITL)
    if at is None:
        return
    gated = stack.touched(at)
    for n in range(at):
        entry = stack.items[n][0]
        if "wrap_tool_call" in entry.hooks and (entry.name in _MUST_BE_INSIDE or stack.touched(n) & gated):
            yield Lint("error", "outside-approval", f"{entry.name} must stand behind {HITL} in the list")
    error, retry = stack.index("tool_error"), stack.index("tool_retry")
    if error is not None and retry is not None and retry < error:
        text = "tool_retry stands outside tool_error, which has already turned the error into a message"
        yield Lint("warning", "retry-outside-error", text)


_MUST_BE_INSIDE = frozenset({"tool_error", "tool_retry", GUARD, "llm_tool_emulator"})


def _retries(stack: _Stack) -> Iterator[Lint]:
    for n, (entry, options) in enumerate(stack.items):
        effects = {"tool_retry": ("write", "ask"), "tool_error": ("write", "ask")}.get(entry.name, ())
        for name in sorted(stack.touched(n) & stack.names(*effects)):
            reason = "it could happen twice" if entry.name in RETRIES else "its exceptions are not failures"
            yield Lint("error", "not-a-read", f"{entry.name} lists {name}, which is not a read: {reason}")
        if entry.name == "model_retry" and options.on_failure == "continue":
            text = (
                "model_retry with on_failure continue ends a failed run as if the error text were the answer"
            )
            yield Lint("warning", "failure-as-answer", text)


def _limits(stack: _Stack) -> Iterator[Lint]:
    pauses = stack.index(HITL) is not None
    for entry, options in stack.items:
        if entry.name not in ("model_call_limit", "tool_call_limit"):
            continue
        if options.on_limit == "end" and options.run_limit and pauses:
            text = f"the run_limit of {entry.name} starts again after every pause: use thread_limit or on_limit ask"
            yield Lint("warning", "limit-resets", text)
    if stack.index("model_call_limit") is None:
        yield Lint("warning", "no-limit", "no model_call_limit: a run may call the model thousands of times")


def _privacy(stack: _Stack) -> Iterator[Lint]:
    summary = stack.index("summarization")
    for n, (entry, options) in enumerate(stack.items):
        if entry.name != "pii":
            continue
        if summary is not None and summary < n:
            text = f"pii ({options.pii_type}) stands behind summarization: the summary is made from the original text"
            yield Lint("warning", "pii-late", text)
        if options.apply_to_output:
            text = f"pii ({options.pii_type}) redacts the stored answer, not the text that is streamed before"
            yield Lint("warning", "pii-stream", text)

"""What to do about the findings of a spec: which entry is meant, and a move or an addition that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.catalogue import AgentSpec, all_tools
from agents.exchange import examine
from agents.words import gettext_noop
from middleware.catalogue import ENTRIES
from middleware.lints import Lint

type SpecEntry = Mapping[str, Any]
type Spec = Mapping[str, Any]
type Tried = dict[tuple[int, int], frozenset[str]]
"""(from, to) -> marks of the findings that would be left after that move."""


@dataclass(frozen=True)
class Step:
    """One press that helps. Positions count from 1."""

    did: str  # "move" or "add"
    use: str
    to: int
    start: int = 0  # where it stands, of a move


@dataclass(frozen=True)
class Advice:
    """A finding, the position of the entry it is about (None: the agent itself), what to do, and a press that does it."""

    lint: Lint
    at: int | None
    remedy: str = ""  # message id with the places of the finding
    step: Step | None = None


ORDER = frozenset({
    "inside-guard", "outside-approval", "asked-in-vain", "retry-outside-error", "caching-outside-fallback",
    "refusal-outside-fallback", "retry-outside-fallback", "caching-too-early", "pii-late", "pii-after-moderation",
})  # fmt: skip
ABOUT = {  # findings that name no middleware in their places
    "ungated-write": "human_in_the_loop",
    "unasked": "human_in_the_loop",
    "respond-on-write": "human_in_the_loop",
    "never-asks": "human_in_the_loop",
    "ask-decisions": "human_in_the_loop",
    "ask-rule": "human_in_the_loop",
    "two-gates": "human_in_the_loop",
    "two-guards": "write_guard",
    "retry-outside-error": "tool_retry",
    "retry-unanswered": "tool_error",
    "retried-write": "tool_retry",
    "caught-write": "tool_error",
    "refusal-outside-fallback": "model_refusal",
    "retry-outside-fallback": "model_retry",
    "failure-as-answer": "model_retry",
    "summary-of-nothing": "summarization",
    "unknown-size": "summarization",
    "pii-late": "pii",
    "pii-after-moderation": "pii",
    "pii-stream": "pii",
    "subagent-gate": "subagents",
    "nested-subagents": "subagents",
    "graph-with-options": "subagents",
}
MISSING = {
    "no-guard": "write_guard",
    "no-limit": "model_call_limit",
    "ungated-write": "human_in_the_loop",
    "unasked": "human_in_the_loop",
}
REMEDIES = {
    "unreadable": gettext_noop("Open it and fill in what is missing."),
    "unavailable": gettext_noop("Install the package on every worker, or remove it from the list."),
    "missing-here": gettext_noop("Make sure that the workers have it; this machine may be another one."),
    "duplicate": gettext_noop("Open the second one and give it an id, or remove it."),
    "two-gates": gettext_noop("Keep one, with all tools in it."),
    "two-guards": gettext_noop("Keep one."),
    "tool-clash": gettext_noop("Take one of the two away, or rename it in its options."),
    "unknown-tool": gettext_noop("Untick it there, or give the tool to the agent."),
    "no-facts": gettext_noop("Untick it in the agent’s tools until its package is installed."),
    "ungated-write": gettext_noop("Add it to the tools that wait for a person."),
    "unasked": gettext_noop("Add it to the tools that wait for a person, with respond as the only answer."),
    "respond-on-write": gettext_noop("Untick respond for this tool."),
    "never-asks": gettext_noop("Choose a rule that asks, at least for some calls."),
    "ask-decisions": gettext_noop("Tick only respond and reject for this tool."),
    "ask-rule": gettext_noop("Leave its rule empty."),
    "no-guard": gettext_noop("Add the write guard: it lets no write through without a decision."),
    "inside-guard": gettext_noop("Move it in front of the write guard."),
    "emulated-write": gettext_noop("List only reads there."),
    "outside-approval": gettext_noop("Move it behind human in the loop."),
    "asked-in-vain": gettext_noop("Move it in front of human in the loop."),
    "retry-outside-error": gettext_noop("Move tool retry behind tool errors."),
    "retry-unanswered": gettext_noop("Tick it in tool errors as well."),
    "retried-write": gettext_noop("Untick it there."),
    "caught-write": gettext_noop("Untick it there."),
    "caching-outside-fallback": gettext_noop("Move it behind model fallback."),
    "refusal-outside-fallback": gettext_noop("Move it behind model fallback."),
    "retry-outside-fallback": gettext_noop("Move it behind model fallback."),
    "caching-too-early": gettext_noop("Move it behind %(other)s."),
    "limit-resets": gettext_noop("Choose ask, or limit the whole case with thread_limit."),
    "no-limit": gettext_noop("Add a model call limit that asks."),
    "long-wait": gettext_noop("Fewer repeats, or shorter pauses."),
    "failure-as-answer": gettext_noop("Choose error."),
    "summary-of-nothing": gettext_noop("Let it start later, or keep less."),
    "unknown-size": gettext_noop("Give tokens or messages in place of a fraction."),
    "pii-late": gettext_noop("Move it in front of summarization."),
    "pii-after-moderation": gettext_noop("Move it in front of the moderation."),
    "pii-stream": gettext_noop("Accept it, or have only inputs redacted."),
    "shell-on-host": gettext_noop("Choose docker, or give the workers a container of their own."),
    "shell-session-lost": gettext_noop("Let the agent write what it needs later into files."),
    "wrong-provider": gettext_noop("Remove it, or choose a model of that provider."),
    "idle-provider": gettext_noop("Remove it, or choose a model that uses it."),
    "nothing-to-search": gettext_noop("Add %(wanted)s with its files in the state, or remove it."),
}
# Usual places, outermost first: where an addition goes when nothing else decides.
RANK = (
    "observer", "model_call_limit", "spend_limit", "tool_call_limit", "pii", "openai_moderation", "dynamic_prompt",
    "summarization", "context_editing", "todo_list", "subagents", "filesystem", "llm_tool_selector", "model_router",
    "provider_tool_search", "model_fallback", "model_refusal", "model_retry", "anthropic_prompt_caching",
    "bedrock_prompt_caching", "file_search", "shell_tool", "role_tools", "repeat_guard", "human_in_the_loop", "auto_mode", "llm_tool_emulator",
    "tool_error", "write_guard", "tool_retry",
)  # fmt: skip


def starter(use: str, spec: Spec) -> dict[str, Any]:
    """An entry to begin with: sensible where it needs something, empty where only its author can know."""
    tools = all_tools()
    own = [tools[name] for name in spec.get("tools", ()) if name in tools]
    reads = [facts.name for facts in own if facts.effect == "read"]
    made: Mapping[str, Callable[[], dict[str, Any]]] = {
        "human_in_the_loop": lambda: {
            "interrupt_on": {f.name: _gate(f.effect) for f in own if f.effect != "read"}
        },
        "model_call_limit": lambda: {"run_limit": 25, "on_limit": "ask", "hard_cap": 60},
        "tool_call_limit": lambda: {"thread_limit": 50},
        "spend_limit": lambda: {"tokens": 200_000},
        "pii": lambda: {"pii_type": "email", "strategy": "redact"},
        "tool_error": lambda: {"tools": reads},
        "tool_retry": lambda: {"tools": reads},
        "dynamic_prompt": lambda: {"lines": ["The customer is called {customer_name}."]},
    }
    return {"use": use, **(made[use]() if use in made else {})}


def _gate(effect: str) -> dict[str, Any]:
    return {"allowed_decisions": ["respond"], "queue": "support"} if effect == "ask" else {}


def best_place(spec: Spec, entry: SpecEntry) -> int:
    """Where an addition goes, from 1: the fewest findings, then the usual order."""
    listed = list(spec.get("middleware", ()))

    def cost(n: int) -> tuple[int, int, int]:
        tried = [*listed[:n], entry, *listed[n:]]
        found = findings({**spec, "middleware": tried}) or []
        errors = sum(one.level == "error" for one in found)
        return errors, len(found), _disorder(tried, n)

    return min(range(len(listed) + 1), key=lambda n: (*cost(n), -n)) + 1


def _disorder(listed: Sequence[SpecEntry], n: int) -> int:
    """How many entries stand on the unusual side of the n-th."""
    ranks = [RANK.index(one["use"]) if one.get("use") in RANK else None for one in listed]
    mine = ranks[n]
    if mine is None:
        return 0
    before, behind = ranks[:n], ranks[n + 1 :]
    return sum(r is not None and r > mine for r in before) + sum(r is not None and r < mine for r in behind)


def findings(spec: Spec) -> list[Lint] | None:
    """None: its own fields cannot be read yet."""
    try:
        return examine(AgentSpec.model_validate(spec))
    except ValidationError:
        return None


def advise(spec: Spec) -> list[Advice] | None:
    """Every finding with what helps, errors first. None: its own fields cannot be read yet."""
    found = findings(spec)
    if found is None:
        return None
    tried: Tried = {}
    return [_advice(lint, found, spec, tried) for lint in found]


def _advice(lint: Lint, found: Sequence[Lint], spec: Spec, tried: Tried) -> Advice:
    at = _concerned(lint, spec)
    return Advice(lint, at, REMEDIES.get(lint.code, ""), _step(lint, at, found, spec, tried))


def _concerned(lint: Lint, spec: Spec) -> int | None:
    listed = spec["middleware"]
    name = lint.where.partition(" ")[0] or lint.params.get("use") or ABOUT.get(lint.code)
    if lint.code == "unreadable":
        name = str(lint.params["why"]).partition(":")[0]
        return next(
            (n for n, one in enumerate(listed, 1) if one.get("use") == name and not _readable(one)), None
        )
    if lint.code == "duplicate":
        titles = [_title(one) for one in listed]
        return max((n for n, title in enumerate(titles, 1) if title == lint.params["name"]), default=None)
    places = [n for n, one in enumerate(listed, 1) if one.get("use") == name]
    if "kind" in lint.params and name == "pii":
        places = [n for n in places if listed[n - 1].get("pii_type") == lint.params["kind"]]
    return places[-1] if places else None


def _title(one: SpecEntry) -> str:
    entry = ENTRIES.get(str(one.get("use")))
    try:
        return (
            entry.title(entry.options.model_validate({k: v for k, v in one.items() if k != "use"}))
            if entry
            else ""
        )
    except ValidationError:
        return ""


def _readable(one: SpecEntry) -> bool:
    return bool(_title(one))


def _step(lint: Lint, at: int | None, found: Sequence[Lint], spec: Spec, tried: Tried) -> Step | None:
    """What is missing; or the move after which the fewest findings are left, this one not among them, no new one."""
    listed = list(spec["middleware"])
    wanted = MISSING.get(lint.code)
    if wanted and not any(one.get("use") == wanted for one in listed):
        entry = starter(wanted, spec)
        return Step("add", entry["use"], best_place(spec, entry))
    if lint.code not in ORDER or at is None or lint.where:
        return None
    best: tuple[int, int, Step] | None = None
    for start in dict.fromkeys((at, *_others(lint, listed))):
        for to in range(1, len(listed) + 1):
            if to == start:
                continue
            if (start, to) not in tried:
                after = findings({**spec, "middleware": moved(listed, start, to)}) or []
                tried[start, to] = _marks(after)
            left = tried[start, to]
            if left < _marks(found) and _mark(lint) not in left:
                step = Step("move", str(listed[start - 1].get("use")), to, start)
                best = min(
                    best or (10**6, 0, step), (len(left), abs(to - start), step), key=lambda one: one[:2]
                )
    return best[2] if best else None


def _others(lint: Lint, listed: Sequence[SpecEntry]) -> list[int]:
    """Positions of what stands on the other side of the matter."""
    wanted = {
        "outside-approval": "human_in_the_loop",
        "asked-in-vain": "human_in_the_loop",
        "inside-guard": "write_guard",
    }
    return [n for n, one in enumerate(listed, 1) if one.get("use") == wanted.get(lint.code)]


def moved(listed: Sequence[Any], start: int, to: int) -> list[Any]:
    """Positions from 1."""
    rest = [one for n, one in enumerate(listed, 1) if n != start]
    return [*rest[: to - 1], listed[start - 1], *rest[to - 1 :]]


def _mark(lint: Lint) -> str:
    return f"{lint.level} {lint.where} {lint.code} {sorted(lint.params.items())}"


def _marks(found: Sequence[Lint]) -> frozenset[str]:
    return frozenset(map(_mark, found))

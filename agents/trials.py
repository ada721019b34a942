"""Trying a spec on one message with every tool emulated: no thread, no ledger, nothing outside changes. Workers only.

The model is the real one of the spec. Tools of a house act on what its `tools.emulated()` gives, its twin in memory; a
house without one, and every tool that a middleware brings and that could change anything, repeats its arguments. What
a person would be asked is written down, and answered with yes if the trial says so.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from importlib import import_module
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command  # noqa: TID251 - a graph of its own, in memory

from agents.catalogue import AgentSpec, ToolFacts, packages
from agents.interrupts import messages_of, question_of, resume_value
from agents.outcomes import Ambiguous, Refused
from agents.registry import Rig, build_graph
from middleware.effects import SEAL, SEALED
from middleware.entry import HOOKS, Entry
from middleware.notes import Notebook, watched
from middleware.ports import Args, CallId, Judge, Standing, Verdict

SECONDS = 120.0  # a trial may take
MODEL_CALLS = 25
ENTRIES = 400  # of a trace
TEXT = 2_000  # characters of one message in it
ROUNDS = 8  # questions one after the other that are answered

type Trace = list[dict[str, Any]]


def run_trial(spec: AgentSpec, message: str, *, says_yes: bool) -> Trace:
    """What happened, in order. Entries have a "kind":

    hook (use, n, hook) · model (text, calls, notes) · tool (tool, text, is_error, notes) · asks (what, tool, args) ·
    answer (text) · end (why). Raises `Parked` if the spec cannot be built, and whatever the model raises.
    """
    return _Trial(spec, message, says_yes).run()


class _Trial:
    def __init__(self, spec: AgentSpec, message: str, says_yes: bool) -> None:
        self.spec, self.message, self.says_yes = spec, message, says_yes
        self.trace: Trace = []
        self.notebook = Notebook()
        self.places = {entry.get("use"): n for n, entry in reversed(list(enumerate(spec.middleware, 1)))}
        self.ends_at = time.monotonic() + SECONDS
        twins = _twins()
        rig = Rig(
            thread_id=f"trial-{uuid.uuid4().hex}",
            context={},
            approvals=_Rules(),
            make_tools=lambda facts, _: [_emulated(known, twins) for known in facts.values()],
            seal=lambda tool, facts, _: _echo(tool.name, tool.description, facts.args),
            watch=self._watch,
            notebook=self.notebook,
            saver=InMemorySaver(),
            store=InMemoryStore(),
        )
        self.graph, self.facts = build_graph(spec, rig)
        self.config: Any = {"configurable": {"thread_id": rig.thread_id}, "recursion_limit": 200}

    def run(self) -> Trace:
        step: Any = {"messages": [HumanMessage(self.message, id="message")]}
        for _ in range(ROUNDS):
            if not self._go(step):
                return self.trace
            state = self.graph.get_state(self.config)
            if not state.interrupts:
                return self._ended("answered")
            answers = dict(self._ask(state))
            if not self.says_yes:
                return self._ended("asked")
            step = Command(resume=answers)
        return self._ended("questions")

    def _go(self, step: Any) -> bool:
        """Whether it came to a rest by itself."""
        for part in self.graph.stream(step, self.config, stream_mode="updates", durability="exit"):
            for update in part.values():
                messages = update.get("messages") if isinstance(update, dict) else None
                for message in messages if isinstance(messages, list) else [messages]:
                    self._say(message)
            calls = sum(entry["kind"] == "model" for entry in self.trace)
            if time.monotonic() > self.ends_at or calls >= MODEL_CALLS or len(self.trace) >= ENTRIES:
                self._ended("limit")
                return False
        return True

    def _ended(self, why: str) -> Trace:
        self.trace.append({"kind": "end", "why": why})
        return self.trace

    def _say(self, message: Any) -> None:
        notes = list(messages_of([message])[0].notes) if isinstance(message, AIMessage | ToolMessage) else []
        match message:
            case AIMessage():
                calls = [{"name": call["name"], "args": call["args"]} for call in message.tool_calls]
                kind = "model" if calls else "answer"
                said: dict[str, Any] = {"kind": kind, "text": str(message.text)[:TEXT]}
                said |= {"calls": calls, "notes": notes}
            case ToolMessage():
                failed = message.status == "error"
                said = {"kind": "tool", "tool": message.name or "", "text": str(message.text)[:TEXT]}
                said |= {"is_error": failed, "notes": notes}
            case _:
                return
        self.trace.append(said)

    def _ask(self, state: Any) -> Iterator[tuple[str, Any]]:
        """What a person would be asked, and how the trial answers."""
        for item in state.interrupts:
            question = question_of(item, state.values["messages"], self.facts)
            asked = {
                "kind": "asks",
                "what": question.kind,
                "tool": question.tool,
                "args": dict(question.args),
            }
            self.trace.append(asked)
            most = int(question.value.get("max_extra", 1) or 1)
            yield (
                question.interrupt_id,
                resume_value(
                    status="responded" if question.kind == "question" else "approved",
                    kind=question.kind,
                    tool=question.tool,
                    final=dict(question.args),
                    message="Yes." if question.kind == "question" else "",
                    grant=min(most, 5),
                ),
            )

    def _watch(self, made: Any, entry: Entry) -> Any:
        """Notes as in a run, and each hook as it is entered. What would start a process or a container is left out."""
        place = self.places.get(entry.name, 0)
        kind = type(watched(made, entry, self.notebook))
        hooks: dict[str, Any] = {
            name: self._entered(getattr(kind, name), entry.name, place, name)
            for name in HOOKS
            if getattr(kind, name) is not getattr(AgentMiddleware, name)
        }
        if any(tool.effect == "write" for tool in _added(entry, self.spec)):
            started = {name for name in ("before_agent", "after_agent") if name in hooks}
            hooks |= {name: self._entered(_nothing, entry.name, place, name) for name in started}
        made.__class__ = type(kind.__name__, (kind,), hooks)
        return made

    def _entered(self, hook: Callable[..., Any], use: str, place: int, name: str) -> Callable[..., Any]:
        @wraps(hook)
        def entered(*args: Any, **more: Any) -> Any:
            self.trace.append({"kind": "hook", "use": use, "n": place, "hook": name})
            return hook(*args, **more)

        return entered


def _nothing(made: Any, state: Any, runtime: Any) -> None:
    return None


def _added(entry: Entry, spec: AgentSpec) -> Iterator[Any]:
    from middleware.catalogue import parse  # noqa: PLC0415 - beside its only use

    for given in spec.middleware:
        if given.get("use") == entry.name:
            yield from entry.adds_tools(parse(given)[1])


# --- tools in memory ----------------------------------------------------------------------------------------------------
def _twins() -> list[tuple[Any, Any]]:
    """(house, its twin in memory), one for the whole trial: what one tool does, the next one sees."""
    homes = [import_module(f"{package}.tools") for package in packages()]
    return [(home, home.emulated()) for home in homes if hasattr(home, "emulated")]


def _emulated(facts: ToolFacts, twins: list[tuple[Any, Any]]) -> BaseTool:
    for home, twin in twins:
        known = home.TOOL_BUILDERS if facts.effect != "write" else home.SENDERS
        if facts.name in known:
            made = known[facts.name](twin)
            return made if facts.effect != "write" else _write(facts, made[0])
    return _echo(facts.name, facts.description, facts.args)


def _write(facts: ToolFacts, send: Callable[..., Mapping[str, Any]]) -> BaseTool:
    def run(**args: Any) -> str:
        parsed = dict(facts.args.model_validate(args))
        try:
            result = send(parsed, uuid.uuid4().hex, facts.timeout)
        except (Refused, Ambiguous) as error:
            raise ToolException(f"The call failed, nothing was done: {error}") from error
        return json.dumps({**args, **result}, ensure_ascii=False, default=str)

    return _tool(run, facts.name, facts.description, facts.args)


def _echo(name: str, description: str, args: Any) -> BaseTool:
    def run(**given: Any) -> str:
        return json.dumps({"emulated": True, "tool": name, "args": given}, ensure_ascii=False, default=str)

    return _tool(run, name, description, args)


def _tool(run: Callable[..., str], name: str, description: str, args: Any) -> BaseTool:
    return StructuredTool.from_function(
        run,
        name=name,
        description=description or name,
        args_schema=args,
        handle_tool_error=True,
        metadata={SEAL: SEALED},
    )


class _Rules:
    """`Approvals` that remember what the rules said, and no decision: emulated tools need none."""

    def __init__(self) -> None:
        self.verdicts: dict[CallId, Verdict] = {}

    def verdict(self, call: CallId, tool: str, args: Args, judge: Judge) -> Verdict:
        return self.verdicts.setdefault(call, judge(args))

    def standing(self, call: CallId) -> Standing | None:
        return None

    def gate_refused(self, call: CallId, tool: str, why: str) -> None:
        return None

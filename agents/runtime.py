"""Driving a thread: the only caller of the graph.

Level-triggered: the checkpoint says what is open, the desk says what was decided; duplicated, lost, late and reordered
hints are harmless. Answers are given one at a time, keyed by interrupt id. An answer becomes durable only when the
call's task ends or asks again, so after a crash the same question is open again and the stored decision is simply given
again; the ledger inside the tool keeps the effect single.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from langchain_core.messages import LC_AUTO_PREFIX, AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained, is_invalid_resume
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from agents import faults
from agents.catalogue import ToolFacts
from agents.contracts import Desk, Parked, RunOrder, Snapshot
from agents.interrupts import message_of, messages_of, question_of
from middleware.notes import Notebook

MAX_STEPS = 200  # turns of the loop of one drive, before a person is told


class Outcome(StrEnum):
    NOTHING = "nothing to do"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    RELEASED = "released"


class Engine:
    """One run of one agent on one session."""

    def __init__(
        self,
        graph: Any,
        order: RunOrder,
        desk: Desk,
        facts: Mapping[str, ToolFacts],
        notebook: Notebook | None = None,
    ) -> None:
        self.graph, self.order, self.desk, self.facts = graph, order, desk, facts
        self.notebook = notebook or Notebook()
        self.named: dict[str, str] = {}  # model task -> id its provider gave the message
        # metadata.run_id on EVERY call: without it a redelivered start would add the message again.
        self.config: RunnableConfig = {
            "configurable": {"thread_id": order.thread_id, "__pregel_strict_resume": True},
            "metadata": {"run_id": order.run_id},
            "recursion_limit": 500,
        }

    def snapshot(self) -> Snapshot:
        state: StateSnapshot = self.graph.get_state(self.config)
        messages = state.values.get("messages", []) if state.values else []
        return Snapshot(
            run_id=None if state.metadata is None else str(state.metadata.get("run_id", "")),
            questions=tuple(question_of(item, messages, self.facts) for item in state.interrupts),
            has_tasks=bool(state.tasks),  # NOT `next`: it is () while saved writes of a killed step wait
            messages=messages_of(messages),
        )

    def start(self) -> None:
        self._go({"messages": [HumanMessage(self.order.message, id=self.order.run_id)]})

    def resume(self, interrupt_id: str, answer: Any) -> None:
        self._go(Command(resume={interrupt_id: answer}))

    def proceed(self) -> None:
        self._go(None)

    def close(self, reason: str) -> None:
        """End the run where it stands without another model call: every open call gets exactly one tool message."""
        state = self.graph.get_state(self.config)
        messages = state.values.get("messages", []) if state.values else []
        at = max((i for i, m in enumerate(messages) if isinstance(m, AIMessage)), default=None)
        if at is None:
            return
        # get_state() shows finished siblings' results, update_state() would drop them:
        kept = [m for m in messages[at + 1 :] if isinstance(m, ToolMessage)]
        answered = {m.tool_call_id for m in kept}
        closing = [
            ToolMessage(reason, tool_call_id=call["id"], name=call["name"], status="error")
            for call in messages[at].tool_calls
            if call["id"] not in answered
        ]
        if closing or state.tasks:
            ending = [*kept, *closing, AIMessage(reason)]
            self.graph.update_state(self.config, {"messages": ending}, as_node="model")
        if self.graph.get_state(self.config).tasks:  # hooks after the model still have to run
            self.graph.invoke(
                None, self.config, context=dict(self.order.context), version="v2", durability="sync"
            )

    def _go(self, step: Any) -> None:
        """The one place that runs the graph. Sync durability: with any other, a crash asks the model again and the
        ledger cannot know the new call."""
        control = RunControl()
        parts = self.graph.stream(
            step,
            self.config,
            context=dict(self.order.context),
            stream_mode=["updates", "messages"],
            version="v2",
            durability="sync",
            control=control,
        )
        try:
            for part in parts:
                self._show(part)
                if part["type"] == "updates" and self._must_end():
                    control.request_drain()  # ends before the next step, with everything saved
        except GraphDrained:
            return

    def _must_end(self) -> bool:
        return self.desk.stop_reason(self.order) is not None or self.desk.should_stop()

    def _show(self, part: Mapping[str, Any]) -> None:
        if part["type"] == "messages":
            chunk, metadata = part["data"]
            if isinstance(chunk, AIMessageChunk) and chunk.id:
                self._show_chunk(chunk, chunk.id, metadata["langgraph_checkpoint_ns"])
        elif part["type"] == "updates" and not part["ns"]:
            found = [
                m for update in part["data"].values() if isinstance(update, dict) for m in _listed(update)
            ]
            shown = [message for m in found if (message := message_of(m)) is not None]
            if shown:
                self.desk.record(self.order, shown)
            if late := self.notebook.take_late():
                self.desk.note(self.order, late)

    def _show_chunk(self, chunk: AIMessageChunk, chunk_id: str, task: str) -> None:
        """Under the id that the finished message will have: some providers name it once, in a chunk without text, and
        LangChain gives the other chunks an id of its own."""
        if not chunk_id.startswith(LC_AUTO_PREFIX):
            self.named[task] = chunk_id
        if chunk.text:
            self.desk.delta(self.order, self.named.get(task, chunk_id), chunk.text)


def _listed(update: Mapping[str, Any]) -> list[Any]:
    messages = update.get("messages") or []
    return messages if isinstance(messages, list) else [messages]


type Build = Callable[[RunOrder], Engine]
"""Raises `Parked` if the version of the run cannot be rebuilt exactly."""


def drive(desk: Desk, build: Build) -> Outcome:
    """Work on a thread under its lock until it waits for a person or has nothing left."""
    outcome = Outcome.NOTHING
    while (order := desk.next_run()) is not None:
        try:
            outcome = _drive_run(desk, order, build(order))
        except Parked as reason:
            desk.finish(order, "parked", note=str(reason))
            outcome = Outcome.FINISHED
        if outcome in (Outcome.INTERRUPTED, Outcome.RELEASED):
            break
    return outcome


def _drive_run(desk: Desk, order: RunOrder, engine: Engine) -> Outcome:
    for _ in range(MAX_STEPS):
        state = engine.snapshot()
        mine = state.run_id == order.run_id
        if not mine and state.has_tasks:
            raise Parked("An earlier run of this case left work behind: end or repair it first.")
        if (reason := desk.stop_reason(order)) is not None:
            return _cancel(desk, order, engine if mine else None, reason)
        if order.give_up is not None:
            return _give_up(desk, order, engine if mine else None)
        answers = desk.project(order, state) if mine else {}
        if state.questions and not answers:
            faults.point("I2", order.thread_id)
            if desk.stop_reason(order) is not None:  # somebody stopped it while the question was prepared
                continue
            desk.pause(order)
            return Outcome.INTERRUPTED
        if (not mine or answers or state.has_tasks) and desk.should_stop():
            desk.release(order)
            return Outcome.RELEASED
        if not mine:
            engine.start()
        elif answers:
            interrupt_id, answer = next(
                iter(answers.items())
            )  # one at a time: a bad answer then harms no sibling
            faults.point("R0", order.thread_id)
            _answer(engine, interrupt_id, answer)
        elif state.has_tasks:
            engine.proceed()
        else:
            faults.point("F0", order.thread_id)
            desk.finish(order, "success")
            faults.point("F1", order.thread_id)
            return Outcome.FINISHED
    raise Parked(f"The run needed more than {MAX_STEPS} steps.")


def _cancel(desk: Desk, order: RunOrder, engine: Engine | None, reason: str) -> Outcome:
    if engine is not None:
        engine.close(reason)
        desk.project(order, engine.snapshot())
    desk.finish(order, "cancelled", note=reason)
    return Outcome.FINISHED


def _give_up(desk: Desk, order: RunOrder, engine: Engine | None) -> Outcome:
    """End a run that keeps failing, so that the case can go on; park it if an effect of it may be in flight."""
    why = order.give_up or ""
    if not order.may_close:
        raise Parked(why)
    if engine is not None:
        engine.close(f"The run failed: {why}")
        desk.project(order, engine.snapshot())
    desk.finish(order, "error", note=why)
    return Outcome.FINISHED


def _answer(engine: Engine, interrupt_id: str, answer: Any) -> None:
    try:
        engine.resume(interrupt_id, answer)
    except Exception as error:
        if is_invalid_resume(error):  # nothing was saved; the web process should have refused this answer
            raise Parked(f"A stored answer does not fit the tool: {error}") from error
        raise

"""Plain values that cross between the worker's engine and the application. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

type Json = Any


@dataclass(frozen=True)
class ToolCall:
    id: str
    name: str
    args: Mapping[str, Json]


@dataclass(frozen=True)
class Message:
    """One message of a thread, whatever the provider."""

    id: str
    role: Literal["human", "ai", "tool", "system"]
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool: str = ""
    is_error: bool = False
    usage: Mapping[str, int] = field(default_factory=dict)  # input_tokens, output_tokens
    notes: tuple[Mapping[str, Json], ...] = ()  # which middleware touched it


@dataclass(frozen=True)
class Question:
    """One open interrupt. The call is its identity, the interrupt id only today's address."""

    interrupt_id: str
    kind: str  # tool_call, question, limit, unknown_outcome
    ai_message_id: str
    tool_call_id: str
    attempt: int
    tool: str
    args: Mapping[str, Json]
    args_schema: Mapping[str, Json]
    allowed_decisions: tuple[str, ...]
    value: Mapping[str, Json]
    path: tuple[str, ...] = ()  # sub-agents it passed through


@dataclass(frozen=True)
class Snapshot:
    """What the checkpoint says, read under the thread's lock."""

    run_id: str | None  # None: no checkpoint at all
    questions: tuple[Question, ...]
    has_tasks: bool  # work is left, whatever `next` says
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class RunOrder:
    """The run to drive, with everything that was frozen when it started."""

    run_id: str
    thread_id: str
    message: str
    spec: Mapping[str, Json]
    fingerprint: str
    context: Mapping[str, Json]  # customer, order, language, requester
    give_up: str | None = None  # too many attempts failed: why, in words for people
    may_close: bool = True  # nothing of this run is in flight or unknown


class Parked(Exception):
    """This run must not be driven again until a person has looked. The text is the reason, for people."""


class Desk(Protocol):
    """The application's side of a drive: rows, events, audit. Each call is one committed transaction."""

    def next_run(self) -> RunOrder | None:
        """Claim the oldest unfinished run of the thread; counts the attempt before the work. None also while this
        worker ends."""
        ...

    def project(self, order: RunOrder, snapshot: Snapshot) -> Mapping[str, Json]:
        """Make requests and steps agree with the snapshot. Returns the due answers by interrupt id."""
        ...

    def record(self, order: RunOrder, messages: Sequence[Message]) -> None:
        """Show finished messages at once; `project` has the last word."""
        ...

    def note(self, order: RunOrder, notes: Mapping[str, Sequence[Mapping[str, Json]]]) -> None:
        """What a middleware did to messages that were recorded: message id -> notes."""
        ...

    def delta(self, order: RunOrder, message_id: str, text: str) -> None:
        """Streamed text: a hint that may be lost."""
        ...

    def stop_reason(self, order: RunOrder) -> str | None:
        """Why the run must end at the next safe point, as the model reads it; None also while an effect is in flight."""
        ...

    def should_stop(self) -> bool:
        """Whether this worker ends: nothing new may begin."""
        ...

    def release(self, order: RunOrder) -> None:
        """Give the run back between two steps; another worker goes on with it."""
        ...

    def pause(self, order: RunOrder) -> None: ...

    def finish(
        self, order: RunOrder, status: Literal["success", "error", "cancelled", "parked"], *, note: str = ""
    ) -> None: ...

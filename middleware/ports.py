"""What our middleware and the write gate need from the outside, as Protocols over plain values.

`approvals.adapters` implements them over Django rows, `tests.fakes` in memory; one contract suite tests both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Protocol

type Args = Mapping[str, Any]
"""Arguments of a tool call as the JSON the model proposed: never validated or converted objects."""


type Note = dict[str, Any]
"""What a middleware did to a step: {"use": name of its entry, "what": see `middleware.notes`, numbers and names}."""


@dataclass(frozen=True)
class CallId:
    """Identity of one tool call. Some providers repeat `tool_call_id` in a later turn, hence the AI message."""

    thread_id: str
    ai_message_id: str
    tool_call_id: str


@dataclass(frozen=True)
class Verdict:
    """What the rules said when the call was proposed. Stored once; never evaluated again."""

    asks: bool  # a person must decide
    rule: str  # name of the predicate with its options, in words: "amount over 1000"
    reason: str = ""


type Judge = Callable[[Args], Verdict]
"""Pure in the proposed arguments."""


@dataclass(frozen=True)
class Standing:
    """The approval request of one call, as far as the gate needs it."""

    status: str  # pending approved edited rejected responded expired withdrawn superseded handled_elsewhere
    proposed: bytes  # canonical bytes that were shown
    final: bytes | None  # canonical bytes that may run: as proposed, or as edited
    final_digest: str | None


class Approvals(Protocol):
    """Decisions and verdicts on record."""

    def verdict(self, call: CallId, tool: str, args: Args, judge: Judge) -> Verdict:
        """The stored verdict of this call; on first sight `judge(args)` is stored and returned."""
        ...

    def standing(self, call: CallId) -> Standing | None:
        """The `tool_call` request of this call, or None if nobody was asked."""
        ...

    def gate_refused(self, call: CallId, tool: str, why: str) -> None:
        """Put on record that the gate refused to run this call."""
        ...


@dataclass(frozen=True)
class Execution:
    """One row of the effect ledger."""

    id: str
    call: CallId
    tool: str
    status: str  # planned started succeeded failed unknown
    attempt: int  # 0 before the first send
    provider_key: str  # idempotency key, made once
    result: Mapping[str, Any] | None = None
    error: str | None = None


class EffectLedger(Protocol):
    """Every method is one short committed transaction on the session that owns the thread's lock.

    Raises `SessionLost` if this owner has been replaced, `Conflict` if the call came back with other arguments.
    """

    def plan(self, call: CallId, tool: str, digest: str) -> Execution: ...

    def reload(self, execution: Execution) -> Execution: ...

    def start(self, execution: Execution, *, idempotent: bool) -> Execution | None:
        """Claim the next attempt. None: already sent, and no living key makes a resend safe."""
        ...

    def adopt(self, execution: Execution) -> Execution:
        """Take over a started attempt of a dead owner, to look it up or to ask."""
        ...

    def not_sent(self, execution: Execution) -> Execution:
        """Undo `start` of an attempt that provably was not sent."""
        ...

    def succeed(self, execution: Execution, result: Mapping[str, Any]) -> Execution: ...

    def refuse(self, execution: Execution, error: str) -> Execution:
        """The provider said no to the only attempt so far."""
        ...

    def mark_unknown(self, execution: Execution, *, quiet: timedelta, why: str) -> Execution:
        """Nobody knows. `quiet`, from the start of the attempt: until then a late answer may still land."""
        ...


class SessionLost(RuntimeError):
    """The session that owned the thread's lock is gone, or another owner has taken the thread. Write nothing."""


class Conflict(RuntimeError):
    """The same call came back with other arguments. A person must look."""


class ToolInfo(Protocol):
    """What the stack must know of a tool. `agents.catalogue.ToolFacts` is one."""

    @property
    def name(self) -> str: ...

    @property
    def effect(self) -> Literal["read", "write", "ask"]: ...

"""The only way to build a tool that changes the world: approval gate and ledger live INSIDE the tool.

HumanInTheLoop only pauses and asks. Whatever goes wrong around it (middleware missing after a deploy, a rule that
flips, state edited, a stale answer), the tool itself looks the decision up. Its default is to refuse.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import StructuredTool, ToolException
from langgraph.types import interrupt
from pydantic import ValidationError

from agents import faults
from agents.canonical import Uncanonical, call_digest, canonical
from agents.catalogue import ToolFacts
from agents.outcomes import Ambiguous, Refused
from middleware.calls import owner_of
from middleware.effects import SEAL, SEALED
from middleware.ports import Approvals, CallId, EffectLedger, Execution, Judge

type Send = Callable[[dict[str, Any], str, float], Mapping[str, Any]]
"""(validated arguments, provider key, time limit in seconds) -> result. Raises `Refused` or `Ambiguous`."""

type Lookup = Callable[[str], Mapping[str, Any] | None]
"""What the provider knows of a key."""


@dataclass(frozen=True)
class Gate:
    """What a write tool needs from the drive that runs it."""

    thread_id: str
    policy: str  # fingerprint of the agent version: part of every digest
    approvals: Approvals
    ledger: EffectLedger


def write_tool(
    facts: ToolFacts, *, send: Send, lookup: Lookup | None, judge: Judge, gate: Gate
) -> StructuredTool:
    """One sealed write tool.

    `facts.args` must not say extra="forbid": LangChain validates the injected runtime along with the arguments, and
    every call would fail with an empty error.
    """
    sender = _Sender(facts, send, lookup, gate)

    def run(runtime: ToolRuntime, **passed: Any) -> str:
        tool_call_id = runtime.tool_call_id or ""
        message, made = owner_of(runtime.state["messages"], tool_call_id)
        proposed = made["args"]
        call = CallId(gate.thread_id, message.id or "", tool_call_id)
        try:
            args, digest = _covered(facts, call, proposed, judge, gate)
            parsed = dict(facts.args.model_validate(args))
        except (Uncanonical, ValidationError) as error:
            raise _refusal(gate, call, facts.name, str(error)) from error
        if any(parsed.get(name) != value for name, value in passed.items()):
            raise _refusal(gate, call, facts.name, "the arguments differ from what was approved")
        faults.point("L0", gate.thread_id)
        row = sender.settle(gate.ledger.plan(call, facts.name, digest), parsed, proposed)
        if row.status == "failed":
            raise ToolException(f"The call failed, nothing was done: {row.error}")
        return json.dumps({**args, **(row.result or {})}, ensure_ascii=False)

    return StructuredTool.from_function(
        run,
        name=facts.name,
        description=facts.description,
        args_schema=facts.args,
        handle_tool_error=True,
        metadata={SEAL: SEALED},
    )


def _refusal(gate: Gate, call: CallId, tool: str, why: str) -> ToolException:
    gate.approvals.gate_refused(call, tool, why)
    return ToolException(f"Refused, nothing was done: {why}")


def _covered(
    facts: ToolFacts, call: CallId, proposed: dict[str, Any], judge: Judge, gate: Gate
) -> tuple[dict[str, Any], str]:
    """The JSON arguments that a stored decision, or a stored verdict, covers, and their digest. Refuses otherwise."""
    identity = {
        "thread_id": call.thread_id,
        "ai_message_id": call.ai_message_id,
        "tool_call_id": call.tool_call_id,
    }

    def digest(args: dict[str, Any]) -> str:
        return call_digest(**identity, tool=facts.name, args=args, policy=gate.policy)

    standing = gate.approvals.standing(call)
    if standing is None:
        if gate.approvals.verdict(call, facts.name, proposed, judge).asks:
            raise _refusal(gate, call, facts.name, "no approval on record")
        return proposed, digest(proposed)
    if standing.status not in ("approved", "edited") or standing.final is None:
        raise _refusal(
            gate, call, facts.name, f"the request is {standing.status}"
        )  # even if no rule asks any more
    if canonical(proposed) != standing.proposed:  # bytes, not ==: in Python 1 == 1.0 == True
        raise _refusal(gate, call, facts.name, "the proposal is not the one that was shown")
    final: dict[str, Any] = json.loads(standing.final)
    if digest(final) != standing.final_digest:
        raise _refusal(gate, call, facts.name, "the approved arguments do not match their digest")
    return final, digest(final)


@dataclass(frozen=True)
class _Sender:
    """Brings one execution to succeeded or failed. Re-entered from the top after every crash and every resume."""

    facts: ToolFacts
    send: Send
    lookup: Lookup | None
    gate: Gate

    def settle(self, row: Execution, args: dict[str, Any], proposed: dict[str, Any]) -> Execution:
        while row.status not in ("succeeded", "failed"):
            row = self._ask(row, proposed) if row.status == "unknown" else self._attempt(row, args)
        return row

    def _ask(self, row: Execution, proposed: dict[str, Any]) -> Execution:
        """Pauses the graph the first time; returns at once when a saved answer is replayed. Either way the value is
        worthless: look at the row again, and ask again if it is still unknown."""
        interrupt(
            {
                "type": "unknown_outcome",
                "attempt": row.attempt,
                "tool_call_id": row.call.tool_call_id,
                "ai_message_id": row.call.ai_message_id,
                "name": row.tool,
                "args": proposed,
            }
        )
        return self.gate.ledger.reload(row)

    def _attempt(self, row: Execution, args: dict[str, Any]) -> Execution:
        ledger, thread_id = self.gate.ledger, self.gate.thread_id
        faults.point("L1", thread_id)
        began, resend = time.monotonic(), row.status == "started"
        claimed = ledger.start(row, idempotent=self.facts.idempotent)
        if claimed is None:
            return self._look_or_lose(ledger.adopt(row), "the worker that sent it is gone")
        faults.point("L2", thread_id)
        if not resend and time.monotonic() - began > self.facts.margin / 2:
            return ledger.not_sent(
                claimed
            )  # frozen before sending: the quiet period would no longer cover it
        if claimed.attempt > 1 and (known := self._known(claimed)) is not None:
            return ledger.succeed(claimed, known)
        try:
            result = self.send(args, claimed.provider_key, self.facts.timeout)
            faults.point("L3", thread_id)  # the provider has acted; nothing of its answer is kept yet
        except Refused as error:
            if resend:  # a refused resend says nothing about the attempt before it
                return self._look_or_lose(claimed, f"the repeat was refused: {error}")
            return ledger.refuse(claimed, str(error))
        except (
            Ambiguous
        ) as error:  # nobody repeats it: the question goes to a person, look-ups come after the quiet
            return self._lose(claimed, str(error))
        faults.point("L4", thread_id)
        done = ledger.succeed(claimed, result)
        faults.point("L5", thread_id)
        return done

    def _look_or_lose(self, row: Execution, why: str) -> Execution:
        """A started attempt that may not be sent again. Finding it is proof; not finding it is not: it may still land."""
        known = self._known(row)
        return self._lose(row, why) if known is None else self.gate.ledger.succeed(row, known)

    def _known(self, row: Execution) -> Mapping[str, Any] | None:
        """What the provider knows of this call; None also if it cannot be asked."""
        try:
            return self.lookup(row.provider_key) if self.lookup else None
        except (Ambiguous, Refused):
            return None

    def _lose(self, row: Execution, why: str) -> Execution:
        quiet = timedelta(seconds=self.facts.timeout + self.facts.margin)
        lost = self.gate.ledger.mark_unknown(row, quiet=quiet, why=why)
        faults.point("U0", self.gate.thread_id)
        return lost

"""`middleware.ports` in memory: decisions, verdicts and the effect ledger, with the rules of the real ones."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agents.canonical import call_digest, canonical
from middleware.ports import Args, CallId, Conflict, Execution, Judge, SessionLost, Standing, Verdict

KEY_LIFE = timedelta(hours=23)
MAX_SENDS = 3


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def tick(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass
class MemoryApprovals:
    """`Approvals`. `policy` must equal the gate's; `decide` and `end` are what people and sweeps do."""

    policy: str = "policy"
    verdicts: dict[CallId, Verdict] = field(default_factory=dict)
    standings: dict[CallId, Standing] = field(default_factory=dict)
    refusals: list[tuple[CallId, str, str]] = field(default_factory=list)
    judged: int = 0

    def verdict(self, call: CallId, tool: str, args: Args, judge: Judge) -> Verdict:
        if call not in self.verdicts:
            self.judged += 1
            self.verdicts[call] = judge(args)
        return self.verdicts[call]

    def standing(self, call: CallId) -> Standing | None:
        return self.standings.get(call)

    def gate_refused(self, call: CallId, tool: str, why: str) -> None:
        self.refusals.append((call, tool, why))

    def ask(self, call: CallId, proposed: Args) -> None:
        """A person has been asked about the call."""
        self.standings[call] = Standing("pending", canonical(dict(proposed)), None, None)

    def decide(self, call: CallId, tool: str, final: Args, *, edited: bool = False) -> None:
        """Approve as proposed, or with other arguments."""
        data = canonical(dict(final))
        digest = call_digest(
            thread_id=call.thread_id,
            ai_message_id=call.ai_message_id,
            tool_call_id=call.tool_call_id,
            tool=tool,
            args=json.loads(data),
            policy=self.policy,
        )
        status = "edited" if edited else "approved"
        self.standings[call] = replace(self.standings[call], status=status, final=data, final_digest=digest)

    def end(self, call: CallId, status: str) -> None:
        """rejected, expired, withdrawn, superseded or handled_elsewhere."""
        self.standings[call] = replace(self.standings[call], status=status)


@dataclass(frozen=True)
class _Row:
    execution: Execution
    digest: str
    fence: int
    started_at: datetime | None = None
    retry_until: datetime | None = None
    quiet_until: datetime | None = None


class MemoryLedger:
    """`EffectLedger` of one owner; `successor()` is the next owner of the same rows. `rows` by call."""

    def __init__(
        self, clock: Clock | None = None, *, rows: dict[CallId, _Row] | None = None, fence: int = 1
    ) -> None:
        self.clock, self.fence = clock or Clock(), fence
        self.rows: dict[CallId, _Row] = {} if rows is None else rows

    def successor(self) -> MemoryLedger:
        return MemoryLedger(self.clock, rows=self.rows, fence=self.fence + 1)

    def plan(self, call: CallId, tool: str, digest: str) -> Execution:
        if call not in self.rows:
            execution = Execution(str(uuid.uuid4()), call, tool, "planned", 0, uuid.uuid4().hex)
            self.rows[call] = _Row(execution, digest, self.fence)
        if self.rows[call].digest != digest:
            raise Conflict("planned with other arguments")
        return self.rows[call].execution

    def reload(self, execution: Execution) -> Execution:
        return self.rows[execution.call].execution

    def start(self, execution: Execution, *, idempotent: bool) -> Execution | None:
        row, now = self.rows[execution.call], self.clock.now
        status, attempt = row.execution.status, row.execution.attempt
        alive = row.retry_until is not None and row.retry_until > now and attempt < MAX_SENDS
        if row.fence > self.fence or not (
            status == "planned" or (status == "started" and idempotent and alive)
        ):
            return None
        until = now + KEY_LIFE if status == "planned" else row.retry_until
        changed = replace(row.execution, status="started", attempt=attempt + 1)
        self.rows[execution.call] = replace(
            row, execution=changed, fence=self.fence, started_at=now, retry_until=until
        )
        return changed

    def adopt(self, execution: Execution) -> Execution:
        row = self.rows[execution.call]
        if row.execution.status != "started" or row.fence > self.fence:
            raise SessionLost("moved on without us")
        self.rows[execution.call] = replace(row, fence=self.fence)
        return row.execution

    def not_sent(self, execution: Execution) -> Execution:
        return self._move(execution, status="planned")

    def succeed(self, execution: Execution, result: Mapping[str, Any]) -> Execution:
        return self._move(execution, status="succeeded", result=dict(result))

    def refuse(self, execution: Execution, error: str) -> Execution:
        return self._move(execution, status="failed", error=error)

    def mark_unknown(self, execution: Execution, *, quiet: timedelta, why: str) -> Execution:
        row = self.rows[execution.call]
        if row.execution.status == "started" and row.fence <= self.fence and row.started_at is not None:
            changed = replace(row.execution, status="unknown", error=why)
            until = row.started_at + quiet
            self.rows[execution.call] = replace(row, execution=changed, fence=self.fence, quiet_until=until)
        return self.rows[execution.call].execution

    def resolve(self, call: CallId, attempt: int, *, happened: bool, reference: str = "") -> bool:
        """A person's answer about one attempt. False: too early, already answered, or about another attempt."""
        row = self.rows[call]
        if row.execution.status != "unknown" or row.execution.attempt != attempt or row.quiet_until is None:
            return False
        if happened:
            result = {"reference": reference, "confirmed_by": "rita"}
            changed = replace(row.execution, status="succeeded", result=result, error=None)
        elif row.quiet_until > self.clock.now:
            return False
        else:
            changed = replace(row.execution, status="planned", error=None)
        self.rows[call] = replace(row, execution=changed)
        return True

    def _move(self, execution: Execution, **changes: Any) -> Execution:
        row = self.rows[execution.call]
        mine = row.fence == self.fence and row.execution.attempt == execution.attempt
        if row.execution.status != "started" or not mine:
            raise SessionLost("moved on without us")
        changed = replace(row.execution, **changes)
        self.rows[execution.call] = replace(row, execution=changed)
        return changed

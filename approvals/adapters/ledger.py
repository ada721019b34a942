"""The effect ledger and the approvals on record, over Django rows, on the drive's session."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction

from approvals import cleaning
from approvals.actors import Actor
from approvals.adapters.session import DriveSession
from approvals.enums import RequestKind, RequestStatus
from approvals.models import ApprovalRequest, Run, ToolExecution, Verdict
from approvals.services import audit, executions
from middleware import ports


class DjangoLedger:
    """`middleware.ports.EffectLedger`: each call one committed transaction."""

    def __init__(self, session: DriveSession, run: Run, fence: int, actor: Actor) -> None:
        self.session, self.run, self.fence, self.actor = session, run, fence, actor

    def plan(self, call: ports.CallId, tool: str, digest: str) -> ports.Execution:
        with self.session.use():
            row = executions.plan(
                run=self.run, actor=self.actor, fence=self.fence, call=call, tool=tool, digest=digest
            )
        return _execution(row)

    def reload(self, execution: ports.Execution) -> ports.Execution:
        with self.session.use():
            return _execution(self._row(execution))

    def start(self, execution: ports.Execution, *, idempotent: bool) -> ports.Execution | None:
        with self.session.use():
            row = executions.start(
                row=self._row(execution), actor=self.actor, fence=self.fence, idempotent=idempotent
            )
        return None if row is None else _execution(row)

    def adopt(self, execution: ports.Execution) -> ports.Execution:
        with self.session.use():
            return _execution(executions.adopt(row=self._row(execution), fence=self.fence))

    def not_sent(self, execution: ports.Execution) -> ports.Execution:
        with self.session.use():
            return _execution(
                executions.not_sent(row=self._row(execution), actor=self.actor, fence=self.fence)
            )

    def succeed(self, execution: ports.Execution, result: Mapping[str, Any]) -> ports.Execution:
        clean = cleaning.json(dict(result))
        with self.session.use():
            row = self._row(execution)
            return _execution(executions.succeed(row=row, actor=self.actor, fence=self.fence, result=clean))

    def refuse(self, execution: ports.Execution, error: str) -> ports.Execution:
        with self.session.use():
            row = self._row(execution)
            return _execution(
                executions.refuse(row=row, actor=self.actor, fence=self.fence, error=cleaning.text(error))
            )

    def mark_unknown(self, execution: ports.Execution, *, quiet: timedelta, why: str) -> ports.Execution:
        with self.session.use():
            row = self._row(execution)
            return _execution(
                executions.lose(
                    row=row, actor=self.actor, fence=self.fence, quiet=quiet, why=cleaning.text(why)
                )
            )

    def _row(self, execution: ports.Execution) -> ToolExecution:
        """The row as the caller knows it: an answer about another attempt must not pass."""
        row = ToolExecution.objects.select_related("run", "thread").get(pk=execution.id)
        row.attempt = execution.attempt
        return row


class DjangoApprovals:
    """`middleware.ports.Approvals`: decisions and verdicts on record."""

    def __init__(self, session: DriveSession, run: Run, actor: Actor) -> None:
        self.session, self.run, self.actor = session, run, actor

    def verdict(self, call: ports.CallId, tool: str, args: ports.Args, judge: ports.Judge) -> ports.Verdict:
        identity = {
            "thread_id": call.thread_id,
            "ai_message_id": call.ai_message_id,
            "tool_call_id": call.tool_call_id,
        }
        with self.session.use():
            row = Verdict.objects.filter(**identity).first()
            if row is None:
                found = judge(args)
                said = {
                    "tool": tool,
                    "asks": found.asks,
                    "rule": found.rule,
                    "reason": cleaning.text(found.reason),
                }
                row, _ = Verdict.objects.get_or_create(**identity, defaults=said)
        return ports.Verdict(row.asks, row.rule, row.reason)

    def standing(self, call: ports.CallId) -> ports.Standing | None:
        with self.session.use():
            row = ApprovalRequest.objects.filter(
                thread_id=call.thread_id,
                ai_message_id=call.ai_message_id,
                tool_call_id=call.tool_call_id,
                kind=RequestKind.TOOL_CALL,
            ).first()
            if row is None:
                return None
            decision = row.standing
        sent = (
            decision is not None and decision.sent_at is not None
        )  # while it can be undone it covers nothing
        status = (
            row.status
            if sent or row.status not in (RequestStatus.APPROVED, RequestStatus.EDITED)
            else "pending"
        )
        final = None if row.final is None else bytes(row.final)
        return ports.Standing(status, bytes(row.canonical), final, row.final_digest)

    def gate_refused(self, call: ports.CallId, tool: str, why: str) -> None:
        said = {"tool": tool, "why": cleaning.text(why), "tool_call_id": cleaning.text(call.tool_call_id)}
        with self.session.use(), transaction.atomic():
            audit.record("gate.refused", actor=self.actor, subject=self.run, run=self.run, data=said)


def _execution(row: ToolExecution) -> ports.Execution:
    call = ports.CallId(str(row.thread_id), row.ai_message_id, row.tool_call_id)
    return ports.Execution(
        id=str(row.pk),
        call=call,
        tool=row.tool,
        status=row.status,
        attempt=row.attempt,
        provider_key=row.provider_key,
        result=row.result,
        error=row.error or None,
    )

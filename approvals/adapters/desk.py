"""`agents.contracts.Desk` over Django rows: what a drive reads and writes besides the checkpoint and the ledger."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from agents import faults
from agents.canonical import Uncanonical, call_digest, canonical
from agents.catalogue import Check, CheckUnavailable, ToolFacts, known_tools
from agents.contracts import Message, Parked, Question, RunOrder, Snapshot
from agents.interrupts import resume_value
from approvals import cleaning, money, notify, stopping
from approvals.actors import Actor
from approvals.adapters.session import DriveSession
from approvals.enums import ExecutionStatus, RequestKind
from approvals.models import ApprovalRequest, Run, ToolExecution
from approvals.models.tool_execution import IN_FLIGHT
from approvals.services import decisions, edits, lookups, requests, runs, steps, wording
from approvals.services.wording import NOT_A_DECISION
from middleware.policy import ApprovalPolicy, policy_for

DELTA_SECONDS = 0.06
LIMIT_QUEUE = "refund-reviewers"


class DjangoDesk:
    """One drive of one thread. `run`, `fence` and `actor` are those of the run that was claimed last."""

    def __init__(self, session: DriveSession, thread_id: str) -> None:
        self.session, self.thread_id = session, thread_id
        self.run: Run | None = None
        self.tools = known_tools()
        self.stream = _Stream()

    # --- the run -----------------------------------------------------------------------------------------------------
    def next_run(self) -> RunOrder | None:
        with self.session.use():
            if stopping.is_wanted():
                return None
            run = self.run = runs.claim_next(thread_pk=self.thread_id)
            if run is None:
                return None
            in_flight = _in_flight(run)
        return RunOrder(
            run_id=str(run.pk),
            thread_id=str(run.thread_id),
            message=run.message,
            spec=run.version.spec,
            fingerprint=run.version.fingerprint,
            context=runs.context_of(run),
            give_up=_give_up(run),
            may_close=bool(run.last_error) and not in_flight,
        )

    @property
    def claimed(self) -> Run:
        assert self.run is not None, "next_run() comes first"
        return self.run

    @property
    def fence(self) -> int:
        return self.claimed.thread.fence

    @property
    def actor(self) -> Actor:
        return Actor.agent(self.claimed.thread.agent.title)

    def stop_reason(self, order: RunOrder) -> str | None:
        with self.session.use():
            reason = Run.objects.filter(pk=order.run_id).values_list("cancel_reason", flat=True).first()
            if reason is None or _in_flight(self.claimed):
                return None
            return wording.cancelled(reason, _done(self.claimed))

    def should_stop(self) -> bool:
        with self.session.use():
            return stopping.is_wanted()

    def release(self, order: RunOrder) -> None:
        with self.session.use():
            runs.release(run=self.claimed, fence=self.fence)

    def pause(self, order: RunOrder) -> None:
        with self.session.use():
            runs.pause(run=self.claimed, fence=self.fence)

    def finish(self, order: RunOrder, status: str, *, note: str = "") -> None:
        with self.session.use():
            said = self.claimed.steps.filter(kind="model").exclude(text="").order_by("-position").first()
            usage = _usage(self.claimed)
            answer = said.text if said else ""
            runs.finish(
                run=self.claimed, fence=self.fence, status=status, note=note, answer=answer, usage=usage
            )

    # --- the timeline ---------------------------------------------------------------------------------------------------
    def record(self, order: RunOrder, messages: Sequence[Message]) -> None:
        with self.session.use(), transaction.atomic():
            steps.record(run=self.claimed, messages=messages)

    def note(self, order: RunOrder, notes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        with self.session.use(), transaction.atomic():
            steps.note(run=self.claimed, notes=notes)

    def delta(self, order: RunOrder, message_id: str, text: str) -> None:
        self.stream.push(self.claimed.topic, message_id, text)

    # --- the questions --------------------------------------------------------------------------------------------------
    def project(self, order: RunOrder, snapshot: Snapshot) -> Mapping[str, Any]:
        run = self.claimed
        asks = [self._ask(self._as_sent(question)) for question in snapshot.questions]
        with self.session.use():
            fresh = [ask for ask in asks if requests.find(run=run, ask=ask) is None]
        checks = {
            ask.interrupt_id: self._checks(ask) for ask in fresh
        }  # asks the shop: outside any transaction
        with self.session.use(), transaction.atomic():
            steps.reconcile(run=run, messages=self._own(snapshot))
            rows = [
                requests.ask(run=run, ask=ask, actor=self.actor, checks=checks.get(ask.interrupt_id, []))
                for ask in asks
            ]
            for row in rows:
                lookups.close_if_settled(row)
            requests.close_others(run=run, open_ids=[ask.interrupt_id for ask in asks])
            if rows:
                faults.point("I1", self.thread_id)
        for ask, row in zip(asks, rows, strict=True):
            if row.digest != ask.digest:
                raise Parked("The arguments changed after the question was asked.")
        with self.session.use():
            return {row.interrupt_id: value for row in rows if (value := self._due_answer(row)) is not None}

    def _own(self, snapshot: Snapshot) -> Sequence[Message]:
        """The messages of this run: from its input on."""
        ids = [message.id for message in snapshot.messages]
        first = ids.index(str(self.claimed.pk)) if str(self.claimed.pk) in ids else 0
        return snapshot.messages[first:]

    def _due_answer(self, row: ApprovalRequest) -> dict[str, Any] | None:
        if row.is_pending:
            return None
        grant = None
        if row.status not in NOT_A_DECISION:
            decision = decisions.claim_due(row)
            if decision is None:
                return None  # still to be undone: the hint comes when that time is over
            grant = decision.grant
        return resume_value(
            status=row.status,
            kind=row.kind,
            tool=row.tool,
            final=row.final_args,
            message=row.message,
            grant=grant,
        )

    def _as_sent(self, question: Question) -> Question:
        """An unknown outcome is about the call as it was approved, which an edit may have changed."""
        if question.kind != RequestKind.UNKNOWN_OUTCOME:
            return question
        with self.session.use():
            approved = ApprovalRequest.objects.filter(
                thread_id=self.thread_id,
                ai_message_id=question.ai_message_id,
                tool_call_id=question.tool_call_id,
                kind=RequestKind.TOOL_CALL,
            ).first()
        if approved is None or approved.final is None:
            return question
        return replace(question, args=approved.final_args)

    def _ask(self, question: Question) -> requests.Ask:
        run = self.claimed
        try:
            shown = canonical(dict(question.args))
            digest = call_digest(
                thread_id=self.thread_id,
                ai_message_id=question.ai_message_id,
                tool_call_id=question.tool_call_id,
                tool=question.tool,
                args=dict(question.args),
                policy=run.version.fingerprint,
            )
        except Uncanonical as error:
            raise Parked(f"The call {question.tool} cannot be shown safely: {error}.") from error
        facts = self.tools.get(question.tool)
        policy = policy_for(run.version.spec["middleware"], question.tool)
        is_gated = question.kind in (RequestKind.TOOL_CALL, RequestKind.QUESTION)
        allowed = question.allowed_decisions
        if policy is not None and is_gated:
            allowed = tuple(word for word in policy.allowed_decisions if word in allowed)
        times = _times(policy) if policy and is_gated else {}
        return requests.Ask(
            kind=question.kind,
            ai_message_id=question.ai_message_id,
            tool_call_id=question.tool_call_id,
            attempt=question.attempt,
            interrupt_id=question.interrupt_id,
            tool=question.tool,
            title=cleaning.text(title_of(question, facts)),
            canonical=shown,
            digest=digest,
            allowed_decisions=allowed,
            queue=policy.queue if policy else LIMIT_QUEUE,
            args_schema=question.args_schema,
            value=cleaning.json(dict(question.value)) | _second_person(question),
            locked=facts.locked if facts and is_gated else (),
            path=question.path,
            rule=policy.rule if policy and is_gated else "",
            quiet_until=self._quiet_until(question),
            **times,
        )

    def _quiet_until(self, question: Question) -> Any:
        if question.kind != RequestKind.UNKNOWN_OUTCOME:
            return None
        with self.session.use():
            row = ToolExecution.objects.filter(
                thread_id=self.thread_id,
                ai_message_id=question.ai_message_id,
                tool_call_id=question.tool_call_id,
            ).first()
        return row.quiet_until if row else None

    def _checks(self, ask: requests.Ask) -> list[dict[str, Any]]:
        facts = self.tools.get(ask.tool)
        if facts is None or facts.check is None or ask.kind != RequestKind.TOOL_CALL:
            return []
        try:
            found = facts.check(edits.parsed(ask.canonical), runs.context_of(self.claimed))
        except CheckUnavailable as error:
            found = [Check("warn", "This could not be checked: %(why)s", {"why": str(error)})]
        return [cleaning.json(asdict(check)) for check in found]


def _second_person(question: Question) -> dict[str, bool]:
    """Above a configured amount somebody else than the approver says what became of a call."""
    amount = money.decimal_of(question.args.get("amount"))
    is_large = amount is not None and amount > settings.SECOND_PERSON_OVER
    return {"second_person": True} if is_large and question.kind == RequestKind.UNKNOWN_OUTCOME else {}


def title_of(question: Question, facts: ToolFacts | None) -> str:
    """English; pages say it again in the reader's language."""
    if question.kind == RequestKind.LIMIT:
        return f"Continue past {question.value.get('used')} {str(question.value.get('resource')).replace('_', ' ')}?"
    if facts is None:
        return question.tool
    title = money.fill(facts.title, question.args)
    return f"Did it go through? {title}" if question.kind == RequestKind.UNKNOWN_OUTCOME else title


def _times(policy: ApprovalPolicy) -> dict[str, Any]:
    """What happens to the question while nobody answers."""
    return {
        "expires_in": timedelta(seconds=policy.expires_in),
        "remind_in": timedelta(seconds=policy.remind_after) if policy.remind_after else None,
        "escalate_to": policy.escalate_to,
        "default_answer": policy.default_answer,
    }


def _in_flight(run: Run) -> bool:
    """An effect of this run may have happened and nobody knows yet: the run must not be closed over it."""
    return ToolExecution.objects.filter(run=run, status__in=IN_FLIGHT).exists()


def _done(run: Run) -> list[str]:
    """Effects of this run, in words: what a stop does not take back."""
    tools = known_tools()
    rows = ToolExecution.objects.filter(run=run, status=ExecutionStatus.SUCCEEDED).order_by("finished_at")
    return [
        money.fill(tools[row.tool].title, row.result or {}) if row.tool in tools else row.tool for row in rows
    ]


def _give_up(run: Run) -> str | None:
    if run.attempts <= settings.MAX_ATTEMPTS:
        return None
    last = f" The last one said: {run.last_error}" if run.last_error else ""
    return f"{settings.MAX_ATTEMPTS} attempts ended without an answer.{last}"


def _usage(run: Run) -> dict[str, int]:
    model_steps = list(run.steps.filter(kind="model"))
    total = {"model_calls": len(model_steps), "input_tokens": 0, "output_tokens": 0}
    for step in model_steps:
        for name in ("input_tokens", "output_tokens"):
            total[name] += int(step.usage.get(name, 0))
    return total


class _Stream:
    """Collects streamed text, so that a fast model does not flood the channel layer."""

    def __init__(self) -> None:
        self.block, self.sent, self.waiting, self.due = "", 0, "", 0.0

    def push(self, topic: str, block: str, text: str) -> None:
        if block != self.block:
            self.block, self.sent, self.waiting, self.due = block, 0, "", 0.0
        self.waiting += text
        if time.monotonic() < self.due:
            return
        notify.delta(topic, block, self.sent, self.waiting)
        self.sent += len(self.waiting.encode("utf-16-le", "surrogatepass")) // 2
        self.waiting, self.due = "", time.monotonic() + DELTA_SECONDS

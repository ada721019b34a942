"""What a run did, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.utils.translation import gettext as _

from approvals import phrases, queries
from approvals.contexts.notes import noted
from approvals.enums import ExecutionStatus, RequestKind, RunStatus, StepKind
from approvals.models import ApprovalRequest, Run, Step, ToolExecution


@dataclass(frozen=True)
class Moment:
    """One line of a timeline."""

    tone: str  # ok, wait, bad, unk, warn, todo, ""
    icon: str
    text: str
    note: str = ""
    at: datetime | None = None
    step: Step | None = None
    request: ApprovalRequest | None = None
    execution: ToolExecution | None = None

    @property
    def notes(self) -> list[str]:
        """What the middleware did to the step."""
        return [noted(note) for note in self.step.notes] if self.step else []


EXECUTION = {
    ExecutionStatus.PLANNED: ("wait", "clock"),
    ExecutionStatus.STARTED: ("wait", "send"),
    ExecutionStatus.SUCCEEDED: ("ok", "check"),
    ExecutionStatus.FAILED: ("bad", "x"),
    ExecutionStatus.UNKNOWN: ("unk", "circle-question-mark"),
}
RUN_TONES = {
    RunStatus.PENDING: "acc",
    RunStatus.RUNNING: "acc",
    RunStatus.INTERRUPTED: "warn",
    RunStatus.SUCCESS: "ok",
    RunStatus.ERROR: "bad",
    RunStatus.CANCELLED: "",
    RunStatus.PARKED: "bad",
}


@dataclass
class Timeline:
    """What a run did so far, and what it waits for."""

    run: Run
    steps: Sequence[Step]
    requests: Sequence[ApprovalRequest]
    executions: Sequence[ToolExecution] = ()

    @property
    def rev(self) -> str:
        """Changes whenever the timeline looks different."""
        last = self.steps[-1].position if self.steps else 0
        revs = ".".join(str(request.rev) for request in self.requests)
        states = ".".join(f"{row.status}{row.attempt}" for row in self.executions)
        notes = sum(len(step.notes) for step in self.steps)
        return f"{last}-{notes}-{self.run.status}-{revs}-{states}-{self.run.cancel_reason is not None}"

    @property
    def state(self) -> str:
        return phrases.run_state(self.run, self._last, decided=self.is_decided)

    @property
    def is_decided(self) -> bool:
        """Everything it asked is answered, and the answer is on its way."""
        asked = self.run.status == RunStatus.INTERRUPTED and bool(self.requests)
        return asked and not any(request.is_pending for request in self.requests)

    @property
    def tone(self) -> str:
        """Green only if what was asked for happened."""
        if self.is_decided:
            return "acc"
        done = self.run.status == RunStatus.SUCCESS and self._last is not None
        return (
            ""
            if done and self._last and phrases.ran_not(self._last)
            else RUN_TONES[RunStatus(self.run.status)]
        )

    @property
    def _last(self) -> ApprovalRequest | None:
        """The call that was asked about last."""
        asked = [request for request in self.requests if request.kind == RequestKind.TOOL_CALL]
        return asked[-1] if asked else None

    @cached_property
    def moments(self) -> list[Moment]:
        answered = {step.tool_call_id for step in self.steps if step.kind == StepKind.TOOL}
        asked = {
            request.tool_call_id: request for request in self.requests
        }  # one call, one line: its latest question
        open_calls = [request for call, request in asked.items() if call not in answered]
        return [self._step(step) for step in self.steps] + [self._waiting(request) for request in open_calls]

    def _step(self, step: Step) -> Moment:
        match step.kind:
            case StepKind.MESSAGE:
                return Moment("", "message-square", _("Message"), at=step.created_at, step=step)
            case StepKind.MODEL:
                names = ", ".join(dict.fromkeys(str(call.get("name", "")) for call in step.tool_calls))
                if not names:
                    return Moment("ok", "message-square-text", _("Answer"), "", step.created_at, step)
                note = _("proposes %(tools)s") % {"tools": names}
                return Moment("ok", "sparkles", _("Model call"), note, step.created_at, step)
        request = next((r for r in reversed(self.requests) if r.tool_call_id == step.tool_call_id), None)
        row = next((e for e in self.executions if e.tool_call_id == step.tool_call_id), None)
        tone, icon = EXECUTION[ExecutionStatus(row.status)] if row else ("ok", "check")
        if step.is_error or (request is not None and phrases.ran_not(request)):
            tone, icon = "bad", "x"
        note = str(row.get_status_display()) if row else phrases.outcome(request) if request else ""
        return Moment(tone, icon, step.tool, note, step.created_at, step, request, row)

    def _waiting(self, request: ApprovalRequest) -> Moment:
        row = next((e for e in self.executions if e.tool_call_id == request.tool_call_id), None)
        at = request.created_at
        if request.is_pending:
            unknown = request.kind == RequestKind.UNKNOWN_OUTCOME
            tone, icon = ("unk", "circle-question-mark") if unknown else ("wait", "pause")
            note = _("outcome unknown") if unknown else _("waits for a person")
            return Moment(tone, icon, request.tool, note, at, request=request, execution=row)
        if row is not None:
            tone, icon = EXECUTION[ExecutionStatus(row.status)]
            return Moment(
                tone, icon, request.tool, str(row.get_status_display()), row.started_at, None, request, row
            )
        said = _("%(outcome)s, not sent yet") % {"outcome": phrases.outcome(request)}
        return Moment("wait", "pause", request.tool, said, request.closed_at, request=request)

    @property
    def tools(self) -> list[Moment]:
        """What the side of the decision shows: calls and answers, not what led to them."""
        return [moment for moment in self.moments if moment.step is None or _is_worth_a_line(moment.step)]

    @property
    def model_calls(self) -> int:
        return sum(step.kind == StepKind.MODEL for step in self.steps)

    @cached_property
    def limit(self) -> int:
        """Model calls after which the run asks; 0: it never does."""
        for entry in self.run.version.spec.get("middleware", ()):
            if entry.get("use") == "model_call_limit":
                return int(entry.get("run_limit") or 0)
        return 0

    @property
    def used(self) -> int:
        """Percent of the limit."""
        return min(100, round(100 * self.model_calls / self.limit)) if self.limit else 0

    @property
    def tokens(self) -> int:
        names = ("input_tokens", "output_tokens")
        return sum(int(step.usage.get(name, 0) or 0) for step in self.steps for name in names)


def _is_worth_a_line(step: Step) -> bool:
    return step.kind == StepKind.TOOL or (step.kind == StepKind.MODEL and not step.tool_calls)


def timeline(run: Run, steps: Sequence[Step] | None = None) -> Timeline:
    requests = run.requests.select_related("thread", "run").order_by("created_at")
    known = queries.steps_of(run) if steps is None else steps
    return Timeline(run, known, list(requests), list(run.executions.all()))

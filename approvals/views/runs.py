"""Runs: what agents did, step by step."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from approvals import access, contexts, evidence, queries
from approvals.contexts import RUN_TONES, Timeline
from approvals.enums import RunStatus
from approvals.errors import TooLate
from approvals.forms import ReasonForm
from approvals.models import Run
from approvals.services import events, runs
from approvals.views.common import PageRequest, actor, page, uuid_or_none

FILTERS = (
    "",
    "open",
    RunStatus.INTERRUPTED,
    RunStatus.SUCCESS,
    RunStatus.ERROR,
    RunStatus.CANCELLED,
    RunStatus.PARKED,
)


@require_safe
def index(request: PageRequest) -> HttpResponse:
    access.require(request.user, access.may_see_runs(request.user), "runs")
    status = request.GET.get("status", "")
    seq = events.current_seq()
    found = queries.runs(request.user, status=status, before=_place(request.GET.get("before", "")))
    last = found[queries.PAGE - 1] if len(found) > queries.PAGE else None
    context = {
        "rows": [_row(run) for run in found[: queries.PAGE]],
        "status": status,
        "filters": [(value, _label(value)) for value in FILTERS],
        "older": f"{last.created_at.isoformat()}_{last.pk}" if last else "",
        "seq": seq,
    }
    return page(request, "runs/index.html", context, part="rows")


def _row(run: Run) -> tuple[Run, Timeline, str]:
    timeline = Timeline(run, run.model_steps, run.asked)  # type: ignore[attr-defined]
    return run, timeline, RUN_TONES[RunStatus(run.status)]


def _label(status: str) -> str:
    if status == "":
        return _("All")
    return _("Open") if status == "open" else str(RunStatus(status).label)


def _place(text: str) -> tuple[datetime, UUID] | None:
    """The last row of the page before: time and id."""
    moment, _sep, pk = text.partition("_")
    try:
        at = parse_datetime(moment.replace(" ", "+"))
    except ValueError:
        return None
    found = uuid_or_none(pk)
    return (at, found) if at and at.tzinfo and found else None


@require_safe
def show(request: PageRequest, pk: UUID) -> HttpResponse:
    """The timeline of one run; the same part is fetched again when something happens."""
    return _show(request, access.run_for(request.user, pk))


def _show(
    request: PageRequest, run: Run, *, errors: dict[str, str] | None = None, status: int = 200
) -> HttpResponse:
    seq = events.current_seq()
    timeline = contexts.timeline(run)
    context = {
        "run": run,
        "timeline": timeline,
        "results": {result.step.pk: result for result in evidence.results(timeline.steps)},
        "may_cancel": access.can_write(request.user, run.thread) and (run.is_open or run.status == RunStatus.PARKED)
        and run.cancel_reason is None,
        "audit": access.may_see_audit(request.user),
        "errors": errors or {},
        "seq": seq,
    }  # fmt: skip
    return page(request, "runs/show.html", context, part="timeline", status=status)


@require_POST
def cancel(request: PageRequest, pk: UUID) -> HttpResponse:
    """Stop at the next safe point; what waits is withdrawn."""
    run = access.run_to_cancel(request.user, pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _show(request, run, errors={"reason": str(form.errors["reason"][0])}, status=422)
    try:
        runs.cancel(actor=actor(request), run_pk=pk, reason=form.cleaned_data["reason"])
    except TooLate as error:
        return _show(request, run, errors={"reason": _(str(error))}, status=409)
    return redirect("approvals:case", pk=run.thread_id)

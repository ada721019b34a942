"""Runs: state, timeline, stop."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router

from approvals import access
from approvals.api import answers
from approvals.api.auth import NO_NUL, READING, caller, needs
from approvals.api.bodies import ReasonBody
from approvals.api.paging import Limit, newest_first
from approvals.enums import RunStatus, Scope
from approvals.models import Run
from approvals.services import runs as service

router = Router(tags=["runs"])

RELATED = ("thread", "thread__agent", "version", "requested_by")


@router.get("/runs", auth=needs(*READING), response=answers.Page[answers.RunAnswer])
def list_runs(
    request: HttpRequest,
    status: Annotated[Literal[tuple(RunStatus.values)] | None, Query(None)] = None,  # type: ignore[valid-type]
    thread: Annotated[UUID | None, Query(None)] = None,
    agent: Annotated[str | None, Query(None, max_length=40, pattern=NO_NUL)] = None,
    after: Annotated[UUID | None, Query(None)] = None,
    limit: Limit = 50,
) -> answers.Page[answers.RunAnswer]:
    """Runs that the caller may see, newest first."""
    user = caller(request).person
    access.require(user, access.may_see_runs(user), "see_work")
    wanted = {"status": status, "thread": thread, "thread__agent": agent}
    rows = access.runs(user).filter(**{name: value for name, value in wanted.items() if value is not None})
    found = newest_first(rows.select_related(*RELATED), after, limit)
    return answers.page(found, limit, lambda rows: answers.run_answers(user, rows), lambda run: run.pk)


@router.get("/runs/{uuid:run_id}", auth=needs(*READING), response=answers.RunAnswer)
def read_run(
    request: HttpRequest,
    run_id: UUID,
    wait: Annotated[
        float,
        Query(
            0,
            ge=0,
            description="Hold the answer for up to so many seconds (60 at most) until the run has ended "
            "or waits for a person.",
        ),
    ] = 0,
) -> answers.RunAnswer:
    """One run. The waiting is done before Django is asked: see `approvals.api.waiting`."""
    user = caller(request).person
    return answers.run_answer(user, access.run_for(user, run_id))


@router.get("/runs/{uuid:run_id}/steps", auth=needs(*READING), response=answers.Page[answers.StepAnswer])
def read_steps(
    request: HttpRequest,
    run_id: UUID,
    after: Annotated[int, Query(0, ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(200, ge=1, le=1_000)] = 200,
) -> answers.Page[answers.StepAnswer]:
    """The timeline, oldest first, from the position after `after`."""
    run = access.run_for(caller(request).person, run_id)
    found = list(run.steps.filter(position__gt=after).order_by("position")[: limit + 1])
    return answers.page(found, limit, answers.each(answers.step_answer), lambda step: step.position)


@router.post("/runs/{uuid:run_id}/cancel", auth=needs(Scope.CASES), response=answers.RunAnswer)
def cancel_run(request: HttpRequest, run_id: UUID, body: ReasonBody) -> answers.RunAnswer:
    """Stop the run at the next safe point; its pending requests are withdrawn at once."""
    actor = caller(request)
    run: Run = service.cancel(actor=actor, run_pk=run_id, reason=body.reason)
    return answers.run_answer(actor.person, run)

"""What happens every few seconds or at every decision never reads a whole table."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection
from django.db.models.functions import Now

from approvals import health
from approvals.actors import SYSTEM
from approvals.models import ApprovalRequest, Run, Thread
from approvals.services import agents, lookups, requests, runs, work
from tests import factories
from tests.ops.plans import watched

FINISHED, WAITING = 3_000, 500  # with a handful of rows the planner reads them all, index or not
RECURRING = {
    "remind": requests.remind_due,
    "expire": requests.expire_due,
    "hint": runs.hint_stuck,
    "look up": lookups.settle_due,
    "vitals": health.vitals,
    "parked": health.parked_runs,
    "failing": health.failing_runs,
    "versions": agents.in_use,
    "go on": lambda: work.resume(actor=SYSTEM),
}


@pytest.fixture
def rows(db, hints):
    """A long history, and a few of everything that is open."""
    done, waiting = factories.make_request(status="rejected"), factories.make_request()
    Run.objects.filter(pk=done.run_id).update(status="success", finished_at=Now())
    ApprovalRequest.objects.filter(pk=done.pk).update(applied_at=Now())
    for pattern, count in ((done, FINISHED), (waiting, WAITING)):
        request = ApprovalRequest.objects.select_related("thread", "run").get(pk=pattern.pk)
        threads = Thread.objects.bulk_create(copy_of(request.thread) for _ in range(count))
        copies = Run.objects.bulk_create(copy_of(request.run, thread=thread) for thread in threads)
        ApprovalRequest.objects.bulk_create(copy_of(request, thread=run.thread, run=run) for run in copies)
    for status in ("pending", "pending", "approved", "expired", "withdrawn"):
        factories.make_request(status=status)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def copy_of(row, **other):
    """Another row like it; a number that the database gives is left out."""
    given = {field.name for field in row._meta.concrete_fields} - {"id", *other}
    given -= {"number"} if isinstance(row, Thread) else set()
    return type(row)(id=uuid.uuid4(), **{name: getattr(row, name) for name in given}, **other)


def test_nothing_that_recurs_reads_a_whole_table(rows):
    found = {}
    for name, act in RECURRING.items():
        if name == "go on":
            work.drain(actor=SYSTEM)
        with watched() as plans:
            act()
        assert plans.sent, name
        found[name] = plans.without_index()
    assert {name: queries for name, queries in found.items() if queries} == {}


def test_nothing_between_a_question_and_the_end_of_its_run_reads_a_whole_table(rows):
    chen = factories.make_user("chen", "refund-reviewers")
    with watched() as plans:
        request = factories.make_request()
        factories.decide(request, "approve", by=chen)
        claimed = runs.claim_next(thread_pk=request.thread_id)
        requests.close_others(run=claimed, open_ids=[])
        runs.finish(run=claimed, fence=claimed.thread.fence, status="success", usage={})
    assert plans.without_index() == []


def test_a_query_without_an_index_is_noticed(rows):
    with watched() as plans:
        list(Run.objects.filter(message="x"))
    assert len(plans.without_index()) == 1

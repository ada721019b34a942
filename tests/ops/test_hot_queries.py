"""How many rows a page, a decision or a sweep makes Postgres look at must not grow with what is finished."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from approvals import tasks
from approvals.models import ApprovalRequest, Run
from approvals.services import events
from tests import factories
from tests.bench import volume

FINISHED, PENDING = 6_000, 20
FEW = 1_500  # rows that one statement may look at: some pages of fifty with what belongs to them, or a count up to many


@pytest.fixture(scope="module")
def _filled(django_db_setup, django_db_blocker):
    """Once for all tests here; each is undone by its own transaction."""
    with django_db_blocker.unblock():
        volume.fill(FINISHED, PENDING)
        yield
        call_command("flush", "--no-input", verbosity=0)


@pytest.fixture
def long_used(_filled, db, hints):
    return ApprovalRequest.objects.filter(status="pending").order_by("expires_at").first()


def looked_at(statement):
    """Rows that the scans of a statement read, with an index wherever there is one. It is undone again."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement.replace("%", "%%"), [])
        (plan,) = cursor.fetchone()
        transaction.set_rollback(True)
    plan = json.loads(plan) if isinstance(plan, str) else plan
    return sum(_scans(plan[0]["Plan"]))


def _scans(node):
    if "Scan" in node["Node Type"] and node["Node Type"] != "CTE Scan":
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        yield (node["Actual Rows"] + removed) * node["Actual Loops"]
    for child in node.get("Plans", ()):
        yield from _scans(child)


def check(act):
    with CaptureQueriesContext(connection) as seen:
        act()
    statements = [query["sql"] for query in seen if re.match(r"(SELECT|UPDATE|DELETE)", query["sql"])]
    assert statements
    many = {sql: rows for sql in dict.fromkeys(statements) if (rows := looked_at(sql)) > FEW}
    assert not many, "\n".join(f"{rows} rows: {sql}" for sql, rows in many.items())


PAGES = {
    "the inbox": ("rita", "/inbox/"),
    "the team's inbox": ("sam", "/inbox/?queue=team"),
    "unknown outcomes": ("rita", "/inbox/?queue=unknown"),
    "what was decided": ("rita", "/inbox/?queue=done"),
    "a request": ("rita", "/inbox/{request.pk}/"),
    "the cases": ("sam", "/support/"),
    "a case": ("sam", "/support/{request.thread_id}/"),
    "the runs": ("sam", "/runs/"),
    "a reviewer's runs": ("rita", "/runs/"),
    "the open runs": ("sam", "/runs/?status=open"),
    "a run": ("sam", "/runs/{request.run_id}/"),
    "the audit trail": ("ada", "/audit/"),
    "the trail of a run": ("ada", "/audit/?run={request.run_id}"),
    "health": ("ada", "/health/"),
}
GROUPS = {"rita": "refund-reviewers", "sam": "support", "ada": "administrators"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page(long_used, page):
    who, path = PAGES[page]
    client = Client()
    client.force_login(factories.make_user(who, GROUPS[who]))

    def get():
        assert client.get(path.format(request=long_used)).status_code == 200

    check(get)


def test_a_decision(long_used):
    chen = factories.make_user("chen", "refund-reviewers")
    check(lambda: factories.decide(long_used, "reject", by=chen, message="no"))


def sweep():
    """The parts of the task, which also ends its connection."""
    for part in tasks.SWEEP.values():
        part()


def test_a_sweep_with_nothing_to_do(long_used):
    check(sweep)


def test_a_sweep_with_something_to_do(long_used):
    past = timezone.now() - timedelta(minutes=1)
    due = ApprovalRequest.objects.filter(status="pending")
    due.filter(pk__in=list(due.values_list("pk", flat=True)[:3])).update(expires_at=past)
    Run.objects.filter(pk=long_used.run_id).update(status="running", touched_at=past)
    check(sweep)


def test_what_a_browser_asks_when_it_comes_back(long_used):
    topics = [long_used.topic, "inbox"]
    check(lambda: events.replay(topics, since=events.current_seq() - 3))

"""A database that falls over, processes that freeze, a broker that hangs: what runs finishes once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import httpx
import pytest
from django.db import Error, connection
from django.db.models.functions import Now

from approvals.errors import AlreadyClosed
from approvals.models import ApprovalRequest, AuditEvent, Decision, Run
from approvals.services import requests
from approvals.tasks import sweep
from tests import plugin
from tests.engine.conftest import refund
from tests.processes.conftest import by_token, frozen_broker, signed_in
from tests.services import Postgres, wait_until

DONE = {"text": "the end"}


def orders(shop, count):
    """Orders nobody has refunded."""
    found = httpx.get(f"{shop.url}/orders", params={"limit": 400}).json()["items"]
    fit = [
        o["id"]
        for o in found
        if o["currency"] == "CNY" and o["refunded"] == "0.00" and float(o["refundable"]) >= 1300
    ]
    return fit[:count]


@pytest.mark.chaos
def test_postgres_restarts_under_thirty_runs(office):
    for _ in range(2):
        office.hire(pool="prefork").wait_ready()
    wanted = orders(office.shop, 30)
    runs = [office.open({"calls": [refund(order, 640)]}, DONE) for order in wanted]
    for done in (5, 15, 25, 30):

        def reached(done=done):
            with suppress(Error):
                sweep()  # as beat does
                return Run.objects.filter(status="success").count() >= done
            return False

        wait_until(reached, 120, f"{done} runs did not finish")
        if done < 30:
            connection.close()
            plugin.server(Postgres).crash()
    for run in runs:
        run.refresh_from_db()
    assert [office.amounts(order) for order in wanted] == [["640.00"]] * 30
    assert {run.answer for run in runs} == {"the end"}


QUICKLY = {"COUNTERSEAL_FROZEN_SECONDS": "2"}


def test_a_frozen_worker_is_replaced_and_does_nothing_when_it_wakes(office, settings):
    """The sweep ends its session on the lock: the second worker goes on."""
    settings.FROZEN_SECONDS = 2
    frozen = office.hire(pool="prefork", concurrency=1, env=QUICKLY).wait_ready()
    (order,) = orders(office.shop, 1)
    office.fault("slow", seconds=3, times=1)
    run = office.open({"calls": [refund(order, 640)]}, DONE)
    wait_until(lambda: run.executions.filter(status="started").exists(), 30, "the refund was not sent")
    frozen.freeze()
    office.hire(pool="prefork", concurrency=1, env=QUICKLY).wait_ready()
    office.until(run, "success", "interrupted")
    assert AuditEvent.objects.filter(action="run.freed", run_id=run.pk).count() == 1
    frozen.thaw()
    if (
        run.status == "interrupted"
    ):  # the repeat met the first one in flight: found by its key, or a person is asked
        wait_until(lambda: office.amounts(order) == ["640.00"], 30, "the refund in flight did not land")
        (asked,) = office.pending(run)
        office.decide(asked, "happened", reference=office.effects(order)[0]["refund_id"])
    office.until(run, "success")
    assert office.amounts(order) == ["640.00"]
    assert office.execution(run).status == "succeeded"


def test_a_worker_that_waits_long_for_its_model_is_left_alone(office, settings):
    settings.FROZEN_SECONDS = 1
    office.hire(pool="prefork", concurrency=1, env={"COUNTERSEAL_FROZEN_SECONDS": "1"}).wait_ready()
    run = office.open({"sleep": 4, "text": "the end"})
    office.until(run, "success")
    assert not AuditEvent.objects.filter(action="run.freed").exists()
    assert run.attempts <= 1


def test_a_worker_that_freezes_half_way_through_a_change_does_not_hold_up_the_others(office, tmp_path):
    """It has written that it asks, and holds the counter of live updates: the server ends its transaction."""
    plans = tmp_path / "faults"
    plans.mkdir()
    frozen = office.hire(pool="prefork", concurrency=1, env={"COUNTERSEAL_FAULTS": str(plans)}).wait_ready()
    first, second = orders(office.shop, 2)
    (plans / "any").write_text("request.asked:freeze")
    run = office.open({"calls": [refund(first, 1280)]}, DONE)
    wait_until(lambda: not (plans / "any").exists(), 30, "it did not freeze")
    office.hire(pool="prefork", concurrency=1).wait_ready()
    other = office.open({"calls": [refund(second, 640)]}, DONE)  # waits for the counter, then goes on
    office.until(other, "success")
    office.decide(office.request(run), "approve")
    office.until(run, "success")
    frozen.thaw()
    assert (office.amounts(first), office.amounts(second)) == (["1280.00"], ["640.00"])
    assert run.requests.count() == 1


@pytest.mark.parametrize("moment", ["tool", "model", "wait"])
def test_a_worker_that_is_told_to_stop_loses_nothing(office, moment):
    """SIGTERM, as a deploy sends it."""
    worker = office.hire().wait_ready()
    (order,) = orders(office.shop, 1)
    amount = 1280 if moment == "wait" else 640
    slow = {"sleep": 2} if moment == "model" else {}
    if moment == "tool":
        office.fault("slow", seconds=2, times=1)
    run = office.open({"calls": [refund(order, amount)], **slow}, DONE)
    if moment == "tool":
        wait_until(lambda: run.executions.filter(status="started").exists(), 30, "the refund was not sent")
    elif moment == "wait":
        office.request(run)
    else:
        wait_until(lambda: Run.objects.filter(pk=run.pk, status="running").exists(), 30, "it did not begin")
    assert worker.stop(seconds=40) == 0
    office.hire().wait_ready()
    if moment == "wait":
        office.decide(office.pending(run)[0], "approve")
    office.until(run, "success")
    assert office.amounts(order) == [f"{amount}.00"]
    assert run.answer == "the end"


def test_expiry_and_approval_at_the_same_instant_have_one_winner(office):
    """200 rounds: each side wins sometimes, and never both."""
    won = {"approved": 0, "expired": 0}

    def expire():
        try:
            return requests.expire_due()
        finally:
            connection.close()

    def approve(request):
        try:
            office.decide(request, "approve")
            return 1
        except AlreadyClosed:
            return 0
        finally:
            connection.close()

    from tests import factories

    with ThreadPoolExecutor(2) as pool:
        left = timedelta(milliseconds=10)
        for _ in range(200):
            request = factories.make_request()
            ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=Now() + left)
            first, second = pool.submit(approve, request), pool.submit(expire)
            outcome = (first.result(), second.result())
            if outcome == (0, 0):
                assert requests.expire_due() == 1
            request.refresh_from_db()
            won[request.status] += 1
            # The instant itself is what is raced for: go after it, however fast this machine is.
            nearer = timedelta(milliseconds=2)
            left = max(timedelta(), left - nearer) if request.status == "approved" else left + nearer
            assert outcome in ((1, 0), (0, 1), (0, 0))
            assert Decision.objects.filter(request=request).count() == (request.status == "approved")
            endings = AuditEvent.objects.filter(action__in=["request.approved", "request.expired"])
            assert endings.filter(object_id=str(request.pk)).count() == 1
    assert min(won.values()) > 0, won


def test_a_frozen_broker_keeps_nobody_waiting(office, web):
    """Submitting, reading and deciding need Postgres alone; the hints come late, or the sweep replaces them."""
    office.hire().wait_ready()
    first = office.open({"calls": [refund("A-20931", 1280)]}, DONE)
    request = office.request(first)
    by_sam, by_rita = by_token(web.url, office.sam), by_token(web.url, office.rita)
    page = signed_in(web.url, office.rita)
    with frozen_broker():
        opened = by_sam("/cases", {"agent": "refunds", "message": json.dumps({"script": [DONE]})})
        assert opened.status_code == 201
        answer = {"type": "approve", "rev": request.rev, "digest": request.digest}
        decided = by_rita(f"/requests/{request.pk}/decisions", answer)
        assert decided.status_code == 201
        assert page.get("/inbox/").status_code == 200
        assert page.get("/healthz").json() == {"status": "ok"}
        assert page.get("/readyz").json()["broker"] == "down"
    office.until(first, "success")
    office.until(Run.objects.get(pk=opened.json()["run_id"]), "success")
    assert office.amounts("A-20931") == ["1280.00"]

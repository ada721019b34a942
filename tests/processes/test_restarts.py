"""Workers, web, shop and broker that die or forget (case 43): one effect, nothing lost."""

from __future__ import annotations

from approvals.models import ToolExecution
from tests.engine.conftest import refund
from tests.services import wait_until

DONE = {"text": "done"}


def execution_is(run, status):
    return lambda: ToolExecution.objects.filter(run=run, status=status).exists()


def test_killed_while_the_refund_is_in_flight(office):
    worker = office.hire().wait_ready()
    run = office.open({"calls": [refund("A-20931", 1280)]}, DONE)
    request = office.request(run)
    office.fault("slow", seconds=2, times=1)
    office.decide(request, "approve")
    wait_until(execution_is(run, "started"), 30, "the refund was not sent")
    worker.kill9()
    office.hire().wait_ready()
    office.until(run, "success", "interrupted")
    wait_until(lambda: office.amounts("A-20931") == ["1280.00"], 30, "the refund in flight did not land")
    if run.status == "interrupted":  # the repeat met the first one, still in flight: a person is asked
        (asked,) = office.pending(run)
        assert asked.kind == "unknown_outcome"
        office.decide(asked, "happened", reference=office.effects("A-20931")[0]["refund_id"])
        office.until(run, "success")
    assert office.amounts("A-20931") == ["1280.00"]
    assert office.execution(run).status == "succeeded"


def test_everything_is_still_there_after_a_restart(office, web):
    worker = office.hire().wait_ready()
    run = office.open({"calls": [refund("A-20931", 1280)]}, DONE)
    request = office.request(run)
    worker.kill9()
    web.kill9()
    office.shop.kill9()
    office.shop.start().wait_ready()
    web.start().wait_ready()
    office.hire().wait_ready()
    request.refresh_from_db()
    assert request.status == "pending"
    office.decide(request, "approve")
    office.until(run, "success")
    assert office.amounts("A-20931") == ["1280.00"]


def test_a_broker_that_lost_everything_loses_nothing_of_ours(office):
    office.hire().wait_ready()
    from django.conf import settings
    from redis import Redis

    runs = [office.open({"calls": [refund("A-20877", 1 + n)]}, DONE) for n in range(5)]
    Redis.from_url(settings.REDIS_URL).flushall()
    for run in runs:
        office.until(run, "success")
    assert sorted(office.amounts("A-20877")) == [f"{1 + n}.00" for n in range(5)]


def test_the_same_hint_twenty_times_is_one_refund(office):
    office.hire(concurrency=4).wait_ready()
    office.hire(concurrency=4)
    run = office.open({"calls": [refund("A-20877", 50)]}, DONE)
    from config.celery import app

    for _ in range(20):
        app.send_task("approvals.drive", args=[str(run.thread_id)], queue="resume")
    office.until(run, "success")
    assert office.amounts("A-20877") == ["50.00"]

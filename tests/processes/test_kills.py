"""Kill -9 around the effect, with real workers (cases 39, 40, 43): one effect, or a question; never two."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert run.status == "success"
    assert office.amounts("A-20931") == ["1280.00"]
    assert office.execution(run).attempt == 2


@pytest.mark.parametrize("point", ["I1", "R0", "L0", "L1", "L2", "L4", "L5"])
def test_killed_at_a_point_around_the_effect(office, tmp_path, point, monkeypatch):
    plans = tmp_path / "plans"
    plans.mkdir()
    run = office.open({"calls": [refund("A-20931", 1280)]}, {"text": "the end"})
    (plans / str(run.thread_id)).write_text(point)
    env = {"COUNTERSEAL_FAULTS": str(plans)}
    worker = _hire_with(office, env)
    is_before = point == "I1"  # while the question is being written
    if is_before:
        wait_until(lambda: _swept() and not worker.running, 60, "the point did not fire")
        _hire_with(office, {})
    office.decide(office.request(run), "approve")
    if not is_before:
        wait_until(lambda: _swept() and not worker.running, 60, "the point did not fire")
        _hire_with(office, {})
    office.until(run, "success")
    assert _fired(plans) == [point]
    assert office.amounts("A-20931") == ["1280.00"]
    assert run.answer == "the end"
    assert run.requests.filter(kind="tool_call").count() == 1


def test_two_calls_of_one_turn_killed_between_them(office, tmp_path):
    plans = tmp_path / "plans"
    plans.mkdir()
    run = office.open({"calls": [refund("A-20931", 1280), refund("A-20925", 2000)]}, DONE)
    (plans / str(run.thread_id)).write_text("L4\nL2")
    _hire_with(office, {"COUNTERSEAL_FAULTS": str(plans)})
    office.until(run, "interrupted")
    for request in office.pending(run):
        office.decide(request, "approve")
    for _ in range(2):
        wait_until(lambda: _swept() and not office.workers[-1].running, 60, "the point did not fire")
        _hire_with(office, {"COUNTERSEAL_FAULTS": str(plans)})
    office.until(run, "success")
    assert (office.amounts("A-20931"), office.amounts("A-20925")) == (["1280.00"], ["2000.00"])
    assert all(len(texts) == 1 for texts in office.tool_texts(run).values())


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


def _hire_with(office, env):
    from tests.processes.conftest import FAST
    from tests.services import Worker

    worker = Worker(env={**FAST, "COUNTERSEAL_SHOP_URL": office.shop.url, **env})
    office.workers.append(worker)
    return worker


def _swept():
    from approvals.tasks import sweep

    sweep()
    return True


def _fired(plans: Path):
    log = plans / "fired.log"
    return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []

"""Kill -9 at each point around the effect (case 39), with a real prefork worker: one effect, never two."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from approvals.actors import SYSTEM, Actor
from approvals.services import agents, runs
from tests.engine.conftest import person, refund, scripted_spec
from tests.processes.conftest import FAST
from tests.services import Worker

DONE = {"text": "done"}


@pytest.fixture(scope="module")
def prefork(module_shop, checkpoint_tables, tmp_path_factory):
    """A prefork worker for all kills of this file: its parent forks a new child for every one that dies. The folder
    holds the kill plans."""
    folder = tmp_path_factory.mktemp("plans")
    env = {**FAST, "COUNTERSEAL_SHOP_URL": module_shop.url, "COUNTERSEAL_FAULTS": str(folder)}
    env["COUNTERSEAL_SLOW_PUT"] = "0.2"  # on a fast database a checkpoint is saved before anybody can die
    with Worker(pool="prefork", concurrency=2, env=env):
        yield folder


@pytest.fixture
def plans(prefork, office, module_shop, settings):
    office.shop = module_shop
    settings.SHOP_URL = module_shop.url
    return prefork


@pytest.fixture(scope="module")
def orders(module_shop):
    """Orders nobody has refunded, one for each test."""
    found = httpx.get(f"{module_shop.url}/orders", params={"limit": 400}).json()["items"]
    return iter(
        [
            o["id"]
            for o in found
            if o["currency"] == "CNY" and o["refunded"] == "0.00" and float(o["refundable"]) >= 1280
        ]
    )


@pytest.mark.parametrize("point", ["I1", "R0", "L0", "L1", "L2", "L4", "L5"])
def test_killed_at_a_point_around_the_effect(office, plans, orders, point):
    order = next(orders)
    run = office.open({"calls": [refund(order, 1280)]}, {"text": "the end"})
    (plans / str(run.thread_id)).write_text(point)
    office.decide(office.request(run), "approve")
    office.until(run, "success")
    assert _fired(plans, run) == [point]
    assert office.amounts(order) == ["1280.00"]
    assert run.answer == "the end"
    assert run.requests.count() == 1


def test_two_calls_of_one_turn_killed_between_them(office, plans, orders):
    first, second = next(orders), next(orders)
    run = office.open({"calls": [refund(first, 1280), refund(second, 1280)]}, DONE)
    (plans / str(run.thread_id)).write_text("L4")
    office.until(run, "interrupted")
    for request in office.pending(run):
        office.decide(request, "approve")
    office.until(run, "success")
    assert _fired(plans, run) == ["L4"]
    assert (office.amounts(first), office.amounts(second)) == (["1280.00"], ["1280.00"])
    assert all(len(texts) == 1 for texts in office.tool_texts(run).values())


@pytest.mark.parametrize("point", ["L4", "L5"])
def test_a_call_that_nobody_had_to_approve_is_not_made_anew_after_a_kill(office, plans, orders, point):
    """Only synchronous checkpoints have saved the model's call by then; else it is asked again and calls again.

    In the shortest stack: each hook behind the model would give a late checkpoint the time of one more step.
    """
    spec = scripted_spec()
    short = tuple(e for e in spec.middleware if e["use"] in ("human_in_the_loop", "write_guard"))
    agents.publish(actor=SYSTEM, spec=spec.model_copy(update={"middleware": short}))
    order = next(orders)
    run = office.open({"calls": [refund(order, 640)]}, {"text": "the end"})
    (plans / str(run.thread_id)).write_text(point)
    office.until(run, "success")
    assert _fired(plans, run) == [point]
    assert office.amounts(order) == ["640.00"]


def _fired(plans: Path, run):
    log = (plans / "fired.log").read_text().splitlines()
    return [point for thread, point, _pid in (line.split() for line in log) if thread == str(run.thread_id)]


def test_a_run_that_kills_every_worker_is_parked_and_others_go_on(office, plans, orders):
    """Attempts are counted before the work, so a process that dies at once is counted too."""
    order, other = next(orders), next(orders)
    poison = office.open({"calls": [refund(order, 1280)]}, DONE)
    (plans / str(poison.thread_id)).write_text("\n".join(["request.asked"] * 20))
    good = office.open({"calls": [refund(other, 640)]}, DONE)
    office.until(poison, "parked", seconds=120)
    assert len(_fired(plans, poison)) == 5
    assert "5 attempts ended without an answer" in poison.error
    office.until(good, "success")
    assert (office.amounts(order), office.amounts(other)) == ([], ["640.00"])
    (plans / str(poison.thread_id)).unlink()
    runs.retry(actor=Actor.of(person("ada", "administrators")), run_pk=poison.pk)
    office.decide(office.request(poison), "approve")
    office.until(poison, "success")
    assert office.amounts(order) == ["1280.00"]

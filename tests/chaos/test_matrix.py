"""The kill matrix (`make chaos`): kill -9 at every named point x {child, whole worker} x {asked, below the limit, two
calls of one turn}. Afterwards: every approved effect exactly once, the run ended with its last message."""

from __future__ import annotations

import httpx
import pytest

from tests.processes.conftest import FAST
from tests.services import Worker

pytestmark = pytest.mark.chaos

POINTS = ("W0", "I0", "I1", "I2", "R0", "R1", "L0", "L1", "L2", "L4", "L5", "W1", "C1", "C2", "F0", "F1")
ASKED_ONLY = {"I0", "I1", "I2", "R0", "R1"}
SHAPES = {"asked": [1280], "free": [640], "two": [1280, 1281]}
CASES = [
    (point, victim, shape)
    for point in POINTS
    for victim in ("child", "worker")
    for shape in SHAPES
    if not (shape == "free" and point in ASKED_ONLY)
]


@pytest.fixture(scope="module")
def orders(module_shop):
    """Orders nobody has refunded."""
    found = httpx.get(f"{module_shop.url}/orders", params={"limit": 400}).json()["items"]
    free = [
        o
        for o in found
        if float(o["refunded"]) == 0 and float(o["refundable"]) >= 1300 and o["currency"] != "JPY"
    ]
    return iter([(o["id"], o["currency"]) for o in free])


@pytest.fixture(scope="module")
def crew(module_shop, checkpoint_tables, tmp_path_factory):
    """Two prefork workers; a killed one is replaced before the next case."""
    folder = tmp_path_factory.mktemp("plans")
    env = {
        **FAST,
        "COUNTERSEAL_SHOP_URL": module_shop.url,
        "COUNTERSEAL_FAULTS": str(folder),
        "COUNTERSEAL_SLOW_PUT": "0.1",
    }
    workers = [Worker(pool="prefork", concurrency=2, env=env) for _ in range(2)]
    yield folder, workers
    for worker in workers:
        worker.stop()


@pytest.mark.parametrize(("point", "victim", "shape"), CASES)
def test_killed(office, crew, module_shop, orders, settings, point, victim, shape):
    plans, workers = crew
    office.shop = module_shop
    settings.SHOP_URL = module_shop.url
    for worker in workers:
        if not worker.running:
            worker.start()
    wanted = [(*next(orders), amount) for amount in SHAPES[shape]]
    calls = [["issue_refund", {"order_id": o, "amount": a, "currency": c}] for o, c, a in wanted]
    run = office.open({"calls": calls}, {"text": "the end"})
    (plans / str(run.thread_id)).write_text(point if victim == "child" else f"{point}:worker")
    while run.status not in ("success", "error", "cancelled", "parked"):
        office.until(run, "interrupted", "success", "error", "cancelled", "parked")
        for request in office.pending(run):
            answer = {"type": "approve"} if request.kind == "tool_call" else _look_up(office, request)
            office.decide(request, **answer)
    assert not (plans / str(run.thread_id)).exists(), f"{point} did not fire"
    assert [office.amounts(o) for o, _c, _a in wanted] == [[f"{a}.00"] for _o, _c, a in wanted]
    assert (run.status, run.answer) == ("success", "the end")


def _look_up(office, request):
    """What an honest person finds in the shop."""
    effects = office.effects(request.args["order_id"])
    return (
        {"type": "happened", "reference": effects[0]["refund_id"]} if effects else {"type": "still_unknown"}
    )

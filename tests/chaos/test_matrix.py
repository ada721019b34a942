"""The kill matrix (`make chaos`): kill -9 at every named point of a run, of a decision and of the clock's work.

Workers: every point x {child, whole worker} x {asked, below the limit, two calls of one turn} with a provider that
honours keys, and every point around the effect with one that only answers look-ups and one that does neither; then a
second kill while the first is repaired. Web: every change that a person can make, before its commit and before its hint.
Afterwards every approved effect happened exactly once and the run ended with its last message.
"""

from __future__ import annotations

import uuid
from datetime import timedelta

import httpx
import pytest
from django.db.models.functions import Now

from approvals.enums import Scope
from approvals.models import ApprovalRequest, AuditEvent, Decision, Run, ToolExecution
from tests.chaos.conftest import ENDED, OUTCOMES, gated_spec, honest
from tests.processes.conftest import FAST, by_token, signed_in
from tests.services import Web, Worker, wait_until

pytestmark = pytest.mark.chaos

ALWAYS = ("model_in", "W0", "model_out", "W1", "C1", "C2", "F0", "run.finished", "F1")
EFFECT = ("L0", "execution.planned", "L1", "execution.started", "L2", "L3", "execution.succeeded", "L4", "L5")
ASKED = ("I0", "request.asked", "I1", "I2", "R0", "R1")
SHAPES = {"asked": [1280], "free": [640], "two": [1280, 1281]}
DOUBT = ("L2", "L3", "L4", "W1", "C1")  # where a provider without keys leaves a question behind
CASES = [
    *(
        (point, victim, shape, "issue_refund")
        for point in (*ALWAYS, *EFFECT, *ASKED)
        for victim in ("child", "worker")
        for shape in SHAPES
        if not (shape == "free" and point in ASKED)
    ),
    *(
        (point, victim, "asked", tool)
        for point in (*EFFECT, "W1", "C1", "C2")
        for victim in ("child", "worker")
        for tool in ("pay_back", "pay_blind")
    ),
    *(
        (f"{first} {second}", "child", "asked", tool)
        for first in DOUBT
        for second, tool in (
            ("L2", "issue_refund"),
            ("L3", "issue_refund"),
            ("C1", "pay_back"),
            ("W1", "pay_blind"),
        )
        if (first, second) not in (("C1", "L2"), ("C1", "L3"))
    ),
    *(
        ("U0", victim, "asked", tool)
        for victim in ("child", "worker")
        for tool in ("issue_refund", "pay_back", "pay_blind")
    ),
]


@pytest.fixture(scope="module")
def crew(module_shop, checkpoint_tables, tmp_path_factory):
    """Two prefork workers; a killed one is replaced before the next case."""
    folder = tmp_path_factory.mktemp("plans")
    env = {
        **FAST,
        "COUNTERSEAL_AGENTS": "agents.refunds,tests.tills",
        "COUNTERSEAL_SHOP_URL": module_shop.url,
        "COUNTERSEAL_FAULTS": str(folder),
        "COUNTERSEAL_SLOW_PUT": "0.1",
    }
    workers = [Worker(pool="prefork", concurrency=2, env=env) for _ in range(2)]
    yield folder, workers
    for worker in workers:
        worker.stop()


@pytest.fixture
def staffed(office, crew, module_shop, settings, monkeypatch):
    plans, workers = crew
    office.shop = module_shop
    settings.SHOP_URL = module_shop.url
    monkeypatch.setenv("COUNTERSEAL_SHOP_URL", module_shop.url)
    gated_spec(monkeypatch)
    for worker in workers:
        if not worker.running:
            worker.start()
    return office, plans


@pytest.mark.parametrize(("points", "victim", "shape", "tool"), CASES)
def test_killed(staffed, orders, points, victim, shape, tool):
    office, plans = staffed
    wanted = [(*next(orders), amount) for amount in SHAPES[shape]]
    calls = [[tool, {"order_id": o, "amount": a, "currency": c}] for o, c, a in wanted]
    if points == "U0":
        office.fault("drop_after", times=1)
    run = office.open({"calls": calls}, {"text": "the end"})
    plan = [point if victim == "child" else f"{point}:worker" for point in points.split()]
    (plans / str(run.thread_id)).write_text("\n".join(plan))
    while run.status not in ENDED:
        office.until(run, "interrupted", *ENDED)
        for request in office.pending(run):
            if answer := honest(office, request):
                office.decide(request, **answer)
    assert [office.amounts(o) for o, _c, _a in wanted] == [[f"{a}.00"] for _o, _c, a in wanted]
    assert (run.status, run.answer) == ("success", "the end")
    asked = run.requests.filter(kind="unknown_outcome").exists()
    end = "one effect, a person was asked or it was looked up" if asked else "one effect, settled by itself"
    OUTCOMES[(f"{victim}, {shape}, {tool}", end)] += 1
    left = plans / str(run.thread_id)
    assert not left.exists() or len(points.split()) == 2, f"{points} did not fire"
    left.unlink(missing_ok=True)


# --- The web process --------------------------------------------------------------------------------------------------
@pytest.fixture
def web(staffed, module_shop):
    _, plans = staffed
    env = {
        **FAST,
        "COUNTERSEAL_AGENTS": "agents.refunds,tests.tills",
        "COUNTERSEAL_SHOP_URL": module_shop.url,
    }
    with Web(env={**env, "COUNTERSEAL_FAULTS": str(plans)}) as running:
        yield running


def pressed_twice(web, office, who, path, body):
    """One press: the process dies under it, is started again, and the program sends the same again."""
    key = uuid.uuid4().hex
    post = by_token(web.url, getattr(office, who), Scope.CASES, Scope.READ, Scope.DECIDE)
    again = survived(web, lambda: post(path, body, key))
    assert again.status_code in (200, 201), again.text
    return again.json()


def survived(web, press):
    with pytest.raises(httpx.TransportError):
        press()
    wait_until(lambda: not web.running, 10, "the web process survived")
    web.start().wait_ready()
    OUTCOMES[("web", "the same again once it is back: one change")] += 1
    return press()


def asked(office, orders):
    order, currency = next(orders)
    run = office.open(
        {"calls": [["issue_refund", {"order_id": order, "amount": 1280, "currency": currency}]]},
        {"text": "the end"},
    )
    return order, run, office.request(run)


DECISIONS = {
    "request.approved": {"type": "approve"},
    "request.edited": {"type": "edit", "amount": 12},
    "request.rejected": {"type": "reject", "message": "no"},
    "hint": {"type": "approve"},
}
PAID = {"approve": ["1280.00"], "edit": ["12.00"], "reject": []}


@pytest.mark.parametrize("point", DECISIONS)
def test_web_killed_while_somebody_decides(staffed, web, orders, point):
    office, plans = staffed
    order, run, request = asked(office, orders)
    (plans / str(run.thread_id)).write_text(point)
    answer = {**DECISIONS[point], "rev": request.rev, "digest": request.digest}
    if amount := answer.pop("amount", None):
        answer["args"] = {**request.args, "amount": amount}
    pressed_twice(web, office, "rita", f"/requests/{request.pk}/decisions", answer)
    office.until(run, "success")
    assert office.amounts(order) == PAID[answer["type"]]
    assert Decision.objects.filter(request=request).count() == 1


@pytest.mark.parametrize("point", ["case.opened", "hint"])
def test_web_killed_while_a_case_is_opened(staffed, web, orders, point):
    office, plans = staffed
    order, currency = next(orders)
    script = '{"script": [{"calls": [["issue_refund", {"order_id": "%s", "amount": 5, "currency": "%s"}]]}]}'
    (plans / "any").write_text(point)
    body = {"agent": "refunds", "message": script % (order, currency)}
    made = pressed_twice(web, office, "sam", "/cases", body)
    run = Run.objects.get(pk=made["run_id"])
    office.until(run, "success")
    assert (office.amounts(order), Run.objects.count()) == (["5.00"], 1)


def test_web_killed_while_a_request_is_withdrawn(staffed, web, orders):
    office, plans = staffed
    order, run, request = asked(office, orders)
    (plans / str(run.thread_id)).write_text("request.withdrawn")
    pressed_twice(web, office, "sam", f"/requests/{request.pk}/withdraw", {"reason": "wrong"})
    office.until(run, "success")
    request.refresh_from_db()
    assert (request.status, office.amounts(order)) == ("withdrawn", [])


def test_web_killed_while_a_run_is_stopped(staffed, web, orders):
    office, plans = staffed
    order, run, _request = asked(office, orders)
    (plans / str(run.thread_id)).write_text("run.cancel_requested")
    pressed_twice(web, office, "sam", f"/runs/{run.pk}/cancel", {"reason": "wrong"})
    office.until(run, "cancelled")
    assert office.amounts(order) == []


def test_web_killed_while_a_decision_is_undone(staffed, web, orders):
    office, plans = staffed
    order, run, request = asked(office, orders)
    made = office.decide(request, "approve", undo_for=timedelta(minutes=5))
    (plans / str(run.thread_id)).write_text("request.undone")
    browser = signed_in(web.url, office.rita)
    again = survived(web, lambda: browser.post(f"/inbox/decision/{made.decision.pk}/undo/"))
    assert again.status_code in (200, 302), again.text
    request.refresh_from_db()
    assert request.status == "pending"
    office.decide(request, "reject", message="no")
    office.until(run, "success")
    assert office.amounts(order) == []


def test_web_killed_while_an_outcome_is_settled(staffed, web, orders):
    office, plans = staffed
    office.fault("drop_after", times=1)
    order, run, request = asked(office, orders)
    office.decide(request, "approve")
    wait_until(lambda: office.until(run, "interrupted") and office.pending(run), 30, "nothing was asked")
    (question,) = office.pending(run)
    (plans / str(run.thread_id)).write_text("request.settled")
    found = office.effects(order)[0]["refund_id"]
    answer = {"type": "happened", "reference": found, "rev": question.rev, "digest": question.digest}
    pressed_twice(web, office, "rita", f"/requests/{question.pk}/decisions", answer)
    office.until(run, "success")
    assert (office.amounts(order), office.execution(run).status) == (["1280.00"], "succeeded")


@pytest.mark.parametrize("point", ["request.expired", "hint"])
def test_worker_killed_while_it_sweeps(staffed, orders, point):
    from config.celery import app

    office, plans = staffed
    order, run, request = asked(office, orders)
    (plans / str(run.thread_id)).write_text(point)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=Now() - timedelta(seconds=1))
    app.send_task("approvals.sweep")
    wait_until(lambda: not (plans / str(run.thread_id)).exists(), 30, f"{point} did not fire")
    office.until(run, "success")
    request.refresh_from_db()
    assert (request.status, office.amounts(order)) == ("expired", [])
    assert AuditEvent.objects.filter(run_id=run.pk, action="request.expired").count() == 1


def test_worker_killed_while_it_looks_up(staffed, orders):
    from config.celery import app

    office, plans = staffed
    office.fault("drop_after", times=1)
    order, run, request = asked(office, orders)
    office.decide(request, "approve")
    wait_until(lambda: office.until(run, "interrupted") and office.pending(run), 30, "nothing was asked")
    (plans / str(run.thread_id)).write_text("execution.found")
    ToolExecution.objects.update(quiet_until=Now() - timedelta(seconds=1))
    app.send_task("approvals.look_up")
    wait_until(lambda: not (plans / str(run.thread_id)).exists(), 30, "execution.found did not fire")
    assert office.execution(run).status == "unknown"
    ToolExecution.objects.update(looked_at=None)
    app.send_task("approvals.look_up")
    office.until(run, "success")
    assert (office.amounts(order), office.execution(run).resolved_by) == (["1280.00"], "Look-up by key")

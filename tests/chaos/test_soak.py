"""The soak (`make chaos SECONDS=300 SEED=1`): random runs, people and faults; then heal, then compare.

The shop's own list of refunds is the judge: every call had an order of its own, so what was approved and what happened
can be compared order by order. The table says what was done to the system. The seed repeats every choice; when it falls
within a run depends on the machine.
"""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.db import Error, connection
from django.db.models.functions import Now

from approvals import dispatch
from approvals.actors import Actor
from approvals.errors import Refusal
from approvals.models import ApprovalRequest, Run, ToolExecution
from approvals.services import chain, decisions, lookups, requests, runs
from approvals.tasks import sweep
from tests import plugin
from tests.chaos.conftest import ENDED, TILLS, gated_spec, honest, untouched
from tests.processes.conftest import FAST
from tests.services import Postgres, Valkey, Worker, wait_until

pytestmark = pytest.mark.chaos

SECONDS = float(os.environ.get("SECONDS", "300"))
SEED = int(os.environ.get("SEED", "1"))
HEAL_SECONDS = 180
OPEN_AT_ONCE = 12
LIMIT = 1000
FROZEN = 4.0  # seconds


@dataclass
class Call:
    """One proposed refund and its own order."""

    run: Any
    tool: str
    order: str
    currency: str
    amount: int


@dataclass
class Story:
    office: Any
    plans: Path
    workers: list[Worker]
    orders: list[tuple[str, str]]
    chance: random.Random
    calls: list[Call] = field(default_factory=list)
    frozen: list[tuple[float, int]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    # --- what people do ---------------------------------------------------------------------------------------------
    def open_run(self) -> None:
        parallel = self.chance.random() < 0.4
        wanted = []
        for _ in range(self.chance.choice([1, 1, 2, 3])):
            order, currency = self.orders.pop()
            tool = self.chance.choice(["issue_refund", "issue_refund", *TILLS])
            wanted.append((tool, order, currency, self.chance.choice([500, 1100, 1200])))
        calls = [[t, {"order_id": o, "amount": a, "currency": c}] for t, o, c, a in wanted]
        steps = [{"calls": calls}] if parallel else [{"calls": [call]} for call in calls]
        run = self.office.open(*steps, {"text": "the end"})
        self.calls += [Call(run, *one) for one in wanted]
        self.done["runs"] += 1

    def person(self) -> None:
        """Somebody answers one thing that waits."""
        waiting = list(ApprovalRequest.objects.filter(status="pending").select_related("run").order_by("pk"))
        for request in self.chance.sample(waiting, min(3, len(waiting))):
            with suppress(Refusal):
                self.answer(request)

    def answer(self, request: ApprovalRequest) -> None:
        who = self.chance.choice([self.office.rita, self.office.chen])
        roll = self.chance.random()
        if request.kind == "unknown_outcome":
            if answer := honest(self.office, request):
                self.office.decide(request, by=who, **answer)
                self.done[answer["type"]] += 1
        elif request.kind == "limit":
            self.office.decide(request, "grant", by=who, grant=1)
        elif roll < 0.04:
            runs.cancel(actor=Actor.of(self.office.sam), run_pk=request.run_id, reason="stop")
            self.done["stop"] += 1
        elif roll < 0.08:
            requests.withdraw(actor=Actor.of(self.office.sam), request_pk=request.pk, reason="mistake")
            self.done["withdraw"] += 1
        elif roll < 0.12:
            ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=Now())
            self.done["expire"] += 1
        elif roll < 0.22:
            made = self.office.decide(request, "approve", by=who, undo_for=timedelta(seconds=2))
            decisions.undo(actor=Actor.of(who), decision_pk=made.decision.pk)
            self.done["undo"] += 1
        elif roll < 0.36:
            self.office.decide(request, "reject", by=who, message="no")
            self.done["reject"] += 1
        elif roll < 0.50:
            self.office.decide(request, "edit", by=who, args={**request.args, "amount": 77})
            self.done["edit"] += 1
        else:
            key = uuid.uuid4().hex
            for _ in range(self.chance.choice([1, 1, 2])):  # the second press of the same button
                self.office.decide(request, "approve", by=who, key=key)
            self.done["approve"] += 1

    # --- what goes wrong --------------------------------------------------------------------------------------------
    def fault(self) -> None:
        name = self.chance.choices(
            ["child", "worker", "freeze", "postgres", "valkey", "shop answer", "shop down", "point"],
            [4, 2, 3, 1, 1, 5, 1, 6],
        )[0]
        getattr(self, name.replace(" ", "_"))()
        self.done[f"fault: {name}"] += 1

    def victim(self) -> int | None:
        pids = [pid for worker in self.workers if worker.running for pid in children(worker.pid)]
        return self.chance.choice(pids) if pids else None

    def child(self) -> None:
        if pid := self.victim():
            send(pid, signal.SIGKILL)

    def worker(self) -> None:
        self.chance.choice(self.workers).signal(signal.SIGKILL)

    def freeze(self) -> None:
        if pid := self.victim():
            send(pid, signal.SIGSTOP)
            self.frozen.append((time.monotonic() + FROZEN, pid))

    def postgres(self) -> None:
        connection.close()
        plugin.server(Postgres).crash()

    def valkey(self) -> None:
        """Killed, and everything in it is lost."""
        plugin.server(Valkey).kill9()
        plugin.server(Valkey).start().wait_ready()
        from redis import Redis

        Redis.from_url(django_settings.REDIS_URL).flushall()

    def shop_answer(self) -> None:
        mode = self.chance.choice(["drop_after", "error_after", "error_before", "slow"])
        self.office.fault(
            mode, times=self.chance.choice([1, 2]), **({"seconds": 2} if mode == "slow" else {})
        )

    def shop_down(self) -> None:
        self.office.shop.kill9()
        time.sleep(self.chance.uniform(0.2, 1.5))  # how long it is down is the fault, not a wait
        self.office.shop.start().wait_ready()

    def point(self) -> None:
        """Kill the process that works on some open run at a chosen point."""
        open_threads = list(Run.objects.exclude(status__in=ENDED).values_list("thread_id", flat=True))
        if open_threads:
            name = self.chance.choice(
                ["L1", "L2", "L3", "L4", "L5", "W1", "C1", "C2", "R0", "R1", "I1", "F0"]
            )
            (self.plans / str(self.chance.choice(open_threads))).write_text(name)

    # --- the passing of time ----------------------------------------------------------------------------------------
    def tend(self) -> None:
        """Thaw, replace what died, sweep and look up as beat does, sometimes twice."""
        now = time.monotonic()
        for due, pid in [item for item in self.frozen if item[0] <= now]:
            send(pid, signal.SIGCONT)
            self.frozen.remove((due, pid))
        for worker in self.workers:
            if not worker.running:
                worker.start()
        for _ in range(self.chance.choice([1, 1, 2])):
            sweep()
        lookups.settle_due()

    def open_runs(self) -> int:
        return Run.objects.exclude(status__in=ENDED).count()

    def leftovers(self) -> list[str]:
        """What every open run waits for."""
        return [
            f"{run.pk} {run.status} attempts {run.attempts} {run.cancel_reason or ''} {run.last_error[:200]} "
            f"asked {list(run.requests.values_list('kind', 'status', 'applied_at'))} "
            f"sent {list(run.executions.values_list('tool', 'status', 'attempt'))}"
            for run in Run.objects.exclude(status__in=ENDED)
        ]

    # --- the judge --------------------------------------------------------------------------------------------------
    def verdict(self) -> list[str]:
        """Every call, compared with what the shop did. Empty: nothing doubled, unapproved or lost."""
        items = httpx.get(f"{self.office.shop.url}/effects", params={"limit": 10_000}).json()["items"]
        happened: dict[str, list[str]] = {}
        for item in items:
            happened.setdefault(item["order_id"], []).append(item["amount"])
        return [wrong for call in self.calls if (wrong := self._wrong(call, happened.get(call.order, [])))]

    def _wrong(self, call: Call, effects: list[str]) -> str:
        asked = ApprovalRequest.objects.filter(kind="tool_call", run=call.run)
        request = next((row for row in asked if row.args["order_id"] == call.order), None)
        executions = ToolExecution.objects.filter(run=call.run)
        if request:
            executions = executions.filter(tool_call_id=request.tool_call_id)
        states = sorted(executions.values_list("status", flat=True))
        run = Run.objects.get(pk=call.run.pk)
        said = f"{call.tool} {call.order} {call.amount}: {effects}, run {run.status}, request {request and request.status}"
        if len(effects) > 1:
            return f"doubled: {said}"
        allowed = 77 if request and request.status == "edited" else call.amount
        approved = call.amount <= LIMIT if request is None else request.status in ("approved", "edited")
        if effects and (not approved or effects != [f"{allowed}.00"]):
            return f"unapproved: {said}"
        refused = (
            "failed" in states
        )  # the shop was down when it was asked: nothing was sent, and the model was told
        if approved and not effects and run.status != "cancelled" and not refused:
            return f"lost: {said}, executions {states} {run.error}"
        return ""


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@pytest.fixture
def story(office: Any, tmp_path: Path, monkeypatch: Any, checkpoint_tables: None) -> Any:
    chance = random.Random(SEED)
    gated_spec(monkeypatch)
    plans = tmp_path / "plans"
    plans.mkdir()
    env = {
        **FAST,
        "COUNTERSEAL_AGENTS": "agents.refunds,tests.tills",
        "COUNTERSEAL_SHOP_URL": office.shop.url,
        "COUNTERSEAL_FAULTS": str(plans),
        "COUNTERSEAL_SLOW_PUT": "0.05",
        "COUNTERSEAL_MAX_ATTEMPTS": "50",  # one run may meet many faults here; giving up has a test of its own
    }
    real = dispatch._put

    def unreliable(hint: Any) -> None:
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            real(hint)

    monkeypatch.setattr(dispatch, "_put", unreliable)
    orders = untouched(office.shop)
    chance.shuffle(orders)
    workers = [Worker(pool="prefork", concurrency=2, env=env) for _ in range(2)]
    for worker in workers:
        worker.wait_ready()
    yield Story(office, plans, workers, orders, chance)
    for worker in workers:
        worker.signal(signal.SIGCONT)
        worker.stop()


def test_soak(story: Any, capsys: Any) -> None:
    began = time.monotonic()
    next_fault = began + 3
    while (now := time.monotonic()) < began + SECONDS:
        with suppress(Error):  # the database is what this test restarts
            if story.open_runs() < OPEN_AT_ONCE and len(story.orders) >= 3:
                story.open_run()
            story.person()
            story.tend()
            if now > next_fault:
                story.fault()
                next_fault = now + story.chance.uniform(0.5, 2.5)
        connection.close_if_unusable_or_obsolete()
    httpx.post(f"{story.office.shop.url}/faults", json={"mode": "none"})
    for plan in story.plans.iterdir():
        if plan.name != "fired.log":
            plan.unlink(missing_ok=True)

    def healed() -> bool:
        story.person()
        story.tend()
        return story.open_runs() == 0

    try:
        wait_until(healed, HEAL_SECONDS)
    except AssertionError:
        raise AssertionError(f"still open after {HEAL_SECONDS} s:\n" + "\n".join(story.leftovers())) from None
    wrong = story.verdict()
    with capsys.disabled():
        table(story, time.monotonic() - began, wrong)
    assert wrong == []
    assert chain.first_wrong() is None, "the audit trail is not whole"


def table(story: Any, seconds: float, wrong: list[str]) -> None:
    fired = story.plans / "fired.log"
    statuses = Counter(Run.objects.values_list("status", flat=True))
    kinds = Counter(line.partition(":")[0] for line in wrong)
    lines = [f"{name:24} {count}" for name, count in sorted(story.done.items())]
    lines.append(f"{'kill points fired':24} {len(fired.read_text().splitlines()) if fired.exists() else 0}")
    lines += [f"{'run ' + name:24} {count}" for name, count in sorted(statuses.items())]
    lines += [f"{name:24} {kinds[name]}" for name in ("doubled", "unapproved", "lost")]
    lines.append(f"{'entries sealed':24} {chain.head()[0]}")
    print(f"\nsoak of {seconds:.0f} s, seed {SEED}, {len(story.calls)} calls", *lines, *wrong, sep="\n  ")

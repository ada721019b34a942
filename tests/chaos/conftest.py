"""The fixtures of the process tests, a spec with three kinds of provider, and a person who looks before answering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.db.models.functions import Now

from approvals.actors import SYSTEM
from approvals.models import ApprovalRequest
from approvals.services import agents
from tests.engine.conftest import scripted_spec
from tests.processes.conftest import Office, checkpoint_tables, office
from tests.services import Shop

__all__ = ["checkpoint_tables", "office"]

ENDED = ("success", "error", "cancelled", "parked")
TILLS = ("pay_back", "pay_blind")


OUTCOMES: Counter[tuple[str, str]] = Counter()
"""(what was killed, how it came out) of every case of the matrix."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The matrix in numbers."""
    if OUTCOMES:
        terminalreporter.write_sep("-", "kill matrix: cases by outcome")
        for (what, outcome), count in sorted(OUTCOMES.items()):
            terminalreporter.write_line(f"{what:40} {outcome:44} {count:4}")


def gated_spec(monkeypatch: Any) -> None:
    """Publish the refund agent with the two providers that take no keys, gated alike."""
    monkeypatch.setenv("COUNTERSEAL_AGENTS", "agents.refunds,tests.tills")
    spec = scripted_spec()
    middleware = [dict(entry) for entry in spec.middleware]
    for entry in middleware:
        if entry["use"] == "human_in_the_loop":
            gates = entry["interrupt_on"]
            entry["interrupt_on"] = {**gates, **dict.fromkeys(TILLS, gates["issue_refund"])}
    changed = {"tools": (*spec.tools, *TILLS), "middleware": tuple(middleware)}
    agents.publish(actor=SYSTEM, spec=spec.model_copy(update=changed))


def honest(office: Office, request: ApprovalRequest) -> dict[str, Any] | None:
    """Approve a call; answer a question with what the shop shows; None: too early to say."""
    if request.kind == "tool_call":
        return {"type": "approve"}
    if effects := office.effects(request.args["order_id"]):
        return {"type": "happened", "reference": effects[0]["refund_id"]}
    ready = ApprovalRequest.objects.filter(pk=request.pk, quiet_until__lte=Now())
    return {"type": "did_not_happen"} if ready.exists() else None


def untouched(shop: Shop) -> list[tuple[str, str]]:
    """Orders nobody has refunded, with their currency."""
    found: list[Any] = []
    after = ""
    while after is not None:
        page = httpx.get(f"{shop.url}/orders", params={"limit": 500, "after": after}).json()
        found += page["items"]
        after = page["next"]
    return [
        (o["id"], o["currency"])
        for o in found
        if float(o["refunded"]) == 0 and float(o["refundable"]) >= 1300 and o["currency"] != "JPY"
    ]


@pytest.fixture(scope="module")
def module_shop() -> Iterator[Shop]:
    """With orders enough for every case of a module."""
    with Shop(more=3000) as running:
        yield running


@pytest.fixture
def shop(module_shop: Shop) -> Shop:
    return module_shop


@pytest.fixture(scope="module")
def orders(module_shop: Shop) -> Iterator[tuple[str, str]]:
    return iter(untouched(module_shop))

"""Both adapters of the ledger behind one interface: what a test may do with rows and time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from middleware.ports import CallId, EffectLedger
from tests.fakes import MemoryLedger


class Memory:
    def __init__(self) -> None:
        self.first = MemoryLedger()
        self.call = CallId("thread", "ai-1", "call-1")

    def ledger(self) -> EffectLedger:
        return self.first

    def successor(self) -> EffectLedger:
        return self.first.successor()

    def pass_time(self, **span: float) -> None:
        self.first.clock.tick(**span)

    def resolve(self, attempt: int, *, happened: bool) -> bool:
        return self.first.resolve(self.call, attempt, happened=happened, reference="rf_1")


class Rows:
    """Django rows on a real session; time passes by moving the rows' times into the past."""

    def __init__(self, session: Any, run: Any) -> None:
        self.session, self.run = session, run
        self.call = CallId(str(run.thread_id), "ai-1", "call-1")

    def ledger(self) -> EffectLedger:
        return self._of(1)

    def successor(self) -> EffectLedger:
        return self._of(2)

    def _of(self, fence: int) -> EffectLedger:
        from approvals.actors import SYSTEM
        from approvals.adapters.ledger import DjangoLedger

        return DjangoLedger(self.session, self.run, fence, SYSTEM)

    def pass_time(self, **span: float) -> None:
        from approvals.models import ToolExecution

        moved = {name: F(name) - timedelta(**span) for name in ("started_at", "retry_until", "quiet_until")}
        ToolExecution.objects.update(**moved)

    def resolve(self, attempt: int, *, happened: bool) -> bool:
        from approvals.actors import SYSTEM
        from approvals.models import ApprovalRequest
        from approvals.services import executions

        about = ApprovalRequest(
            thread_id=self.run.thread_id, ai_message_id="ai-1", tool_call_id="call-1", attempt=attempt
        )
        return executions.resolve(request=about, actor=SYSTEM, happened=happened, reference="rf_1")


@contextmanager
def _rows() -> Iterator[Rows]:
    from django.contrib.auth.models import Group

    from agents.catalogue import shipped_specs
    from approvals.actors import SYSTEM, Actor
    from approvals.adapters.session import locked
    from approvals.models import User
    from approvals.services import agents, cases

    sam = User.objects.create(username="sam")
    sam.groups.add(Group.objects.get_or_create(name="support")[0])
    agents.publish(actor=SYSTEM, spec=shipped_specs()[0])
    run = cases.open_case(actor=Actor.of(sam), case=cases.NewCase(agent="refunds", message="hello")).run
    with locked(str(run.thread_id)) as session:
        yield Rows(session, run)


@pytest.fixture(params=["memory", pytest.param("rows", marks=pytest.mark.django_db(transaction=True))])
def world(request: Any) -> Iterator[Memory | Rows]:
    if request.param == "memory":
        yield Memory()
        return
    with _rows() as rows:
        yield rows

"""The engine in one process on real Postgres, against the real shop; the model is scripted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group
from django.db import connection

from agents.catalogue import AgentSpec, shipped_specs
from approvals.actors import SYSTEM, Actor
from approvals.models import ApprovalRequest, Run, ToolExecution, User
from approvals.services import agents, cases, decisions
from tests.services import Shop


def call(tool: str, **args: Any) -> list[Any]:
    return [tool, args]


def refund(order_id: str, amount: Any, **more: Any) -> list[Any]:
    return call("issue_refund", order_id=order_id, amount=amount, currency="CNY", **more)


def scripted_spec(**changes: Any) -> AgentSpec:
    """The shipped refund agent with the scripted model."""
    return shipped_specs()[0].model_copy(update={"model": "demo:scripted", **changes})


def person(name: str, *groups: str) -> User:
    user, _ = User.objects.get_or_create(username=name)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return User.objects.get(pk=user.pk)


class Desk:
    """What people do, in one line each."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.sam = person("sam", "support")
        self.rita = person("rita", "refund-reviewers")
        self.chen = person("chen", "refund-reviewers")
        agents.publish(actor=SYSTEM, spec=scripted_spec())

    def open(self, *script: dict[str, Any], by: User | None = None, **case: str) -> Run:
        """A case whose model says `script`: [{"calls": [...], "text": ...}, ...]."""
        message = json.dumps({"script": list(script)}, ensure_ascii=False)
        actor = Actor.of(by or self.sam)
        return cases.open_case(actor=actor, case=cases.NewCase(agent="refunds", message=message, **case)).run

    def drive(self, run: Run) -> str:
        from approvals import wiring

        said = wiring.drive_thread(str(run.thread_id))
        run.refresh_from_db()
        return said

    def pending(self, run: Run) -> list[ApprovalRequest]:
        return list(run.requests.filter(status="pending").order_by("created_at", "id"))

    def decide(self, request: ApprovalRequest, type: str, by: User | None = None, **answer: Any) -> Any:
        seen = decisions.Seen(request.rev, request.digest, answer.pop("key", uuid.uuid4().hex))
        undo_for = answer.pop("undo_for", timedelta())
        return decisions.decide(
            actor=Actor.of(by or self.rita),
            request_pk=request.pk,
            answer=decisions.Answer(type=decisions.Type(type), **answer),
            seen=seen,
            undo_for=undo_for,
        )

    def effects(self, order_id: str) -> list[dict[str, Any]]:
        found = httpx.get(f"{self.shop.url}/effects", params={"order": order_id}).json()
        return list(found["items"])

    def amounts(self, order_id: str) -> list[str]:
        return [effect["amount"] for effect in self.effects(order_id)]

    def fault(self, mode: str, **more: Any) -> None:
        httpx.post(f"{self.shop.url}/faults", json={"mode": mode, **more}).raise_for_status()

    def tool_texts(self, run: Run) -> dict[str, list[str]]:
        """tool_call_id -> what the model read; every call must have exactly one."""
        found: dict[str, list[str]] = {}
        for step in run.steps.filter(kind="tool"):
            found.setdefault(step.tool_call_id, []).append(step.text)
        return found

    def execution(self, run: Run) -> ToolExecution:
        return ToolExecution.objects.get(run=run)


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A fresh shop for every test: effects are counted exactly."""
    running = Shop()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def checkpoint_tables(django_db_setup: None, django_db_blocker: Any) -> None:
    from agents.checkpointing import set_up

    with django_db_blocker.unblock():
        settings = connection.settings_dict
        host, port, name = settings["HOST"], settings["PORT"], settings["NAME"]
        set_up(f"host={host} port={port} dbname={name} user={settings['USER']}")
        connection.close()


@pytest.fixture
def desk(
    transactional_db: None, checkpoint_tables: None, shop: Shop, settings: Any, monkeypatch: Any
) -> Desk:
    settings.SHOP_URL = shop.url
    monkeypatch.setenv("COUNTERSEAL_SHOP_URL", shop.url)
    monkeypatch.setenv("COUNTERSEAL_TEST_MODELS", "tests.models")
    return Desk(shop)


@pytest.fixture
def hints(monkeypatch: Any) -> list[Any]:
    """Hints that would have gone to the workers."""
    from approvals import dispatch

    sent: list[Any] = []
    put: Callable[[Any], None] = sent.append
    monkeypatch.setattr(dispatch, "_put", put)
    return sent

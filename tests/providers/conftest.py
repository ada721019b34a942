"""The whole product on a real provider client: a loopback provider, a published version, real Postgres, a real shop."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from agents.catalogue import AgentSpec, shipped_specs
from approvals.actors import SYSTEM, Actor
from approvals.models import Run
from approvals.services import agents, cases, runs
from examples.shop.server import Shop
from tests.engine.conftest import Desk, checkpoint_tables, hints
from tests.providers.anthropic_server import AnthropicServer
from tests.providers.brain import refund_agent
from tests.providers.loopback import Brain, Loopback, Received
from tests.providers.openai_server import OpenAIServer

__all__ = ["checkpoint_tables", "hints"]

KEY_ENV = "LOOPBACK_PROVIDER_KEY"
WISH = "Please refund order A-20931 in full, the lamp arrived broken."


class NearShop:
    """The real shop over HTTP in a thread of the test: half a second faster than a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.server = Shop(("127.0.0.1", 0), folder)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.server.store.close()


class Office(Desk):
    """The people of the engine tests, with an agent on a loopback provider."""

    def __init__(self, shop: Any, server: Loopback, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(shop)
        self.server, self.model, self.monkeypatch = server, model, monkeypatch
        self.publish()

    def publish(self, **changes: Any) -> AgentSpec:
        given = {"model": self.model, "base_url": self.server.base_url, "api_key_env": KEY_ENV, **changes}
        spec = shipped_specs()[0].model_copy(update=given)
        agents.publish(actor=SYSTEM, spec=spec)
        return spec

    def ask(self, message: str = WISH, brain: Brain | None = None) -> Run:
        """A case, not driven yet."""
        self.server.brain = brain or self.server.brain
        return cases.open_case(actor=Actor.of(self.sam), case=cases.NewCase("refunds", message)).run

    def paused(self, message: str = WISH, brain: Brain | None = None) -> tuple[Run, Any]:
        run = self.ask(message, brain)
        assert self.drive(run) == "interrupted", (run.error, run.last_error, self.server.refused)
        (request,) = self.pending(run)
        return run, request

    def fails(self, run: Run, match: str) -> None:
        """One attempt that ends with an exception, noted on the run."""
        with pytest.raises(Exception, match=match):
            self.drive(run)
        run.refresh_from_db()
        assert re.search(match, run.last_error)

    def say(self, run: Run, message: str, while_pending: Any = None) -> Run:
        """The next message of the case."""
        actor = Actor.of(self.sam)
        return runs.post(actor=actor, thread_pk=run.thread_id, message=message, while_pending=while_pending)

    @property
    def last(self) -> Received:
        return self.server.received[-1]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[NearShop]:
    running = NearShop(tmp_path)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def openai_server() -> Iterator[OpenAIServer]:
    server = OpenAIServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def anthropic_server() -> Iterator[AnthropicServer]:
    server = AnthropicServer()
    yield server
    server.stop()


@pytest.fixture
def make_office(
    transactional_db: None,
    checkpoint_tables: None,
    shop: NearShop,
    hints: list[Any],  # nothing here goes to a broker
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    settings.SHOP_URL = shop.url
    monkeypatch.setenv("COUNTERSEAL_SHOP_URL", shop.url)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def make(server: Loopback, model: str) -> Office:
        server.reset(refund_agent)
        monkeypatch.setenv(KEY_ENV, server.key)
        return Office(shop, server, model, monkeypatch)

    return make


@pytest.fixture
def deltas(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int, str]]:
    """(topic, block, place, text) of everything that was streamed to the browser, none held back."""
    from approvals import notify
    from approvals.adapters import desk

    told: list[tuple[str, str, int, str]] = []
    monkeypatch.setattr(desk, "DELTA_SECONDS", 0)
    monkeypatch.setattr(notify, "delta", lambda *parts: told.append(parts))
    return told


def tables_with(text: str) -> list[str]:
    """The tables in which a text stands anywhere, in plain or as bytes."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute("select tablename from pg_tables where schemaname = 'public'")
        for (table,) in cursor.fetchall():
            cursor.execute(
                f'select 1 from "{table}" as r where r::text like %s or r::text like %s limit 1',
                [f"%{text}%", f"%{text.encode().hex()}%"],
            )
            if cursor.fetchone():
                found.append(table)
    return found

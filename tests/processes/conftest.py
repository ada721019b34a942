"""Real workers and a real web process on the database of the test; the test itself plays beat."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.test import Client

from approvals.actors import Actor
from approvals.enums import Scope
from approvals.models import ApprovalRequest, Run, User
from approvals.services import tokens
from approvals.tasks import sweep
from tests import plugin
from tests.engine.conftest import Desk, checkpoint_tables, shop
from tests.services import Shop, Valkey, Web, Worker, wait_until

__all__ = ["checkpoint_tables", "shop"]

FAST = {"COUNTERSEAL_STALE_SECONDS": "1", "COUNTERSEAL_TEST_MODELS": "tests.models"}


class Office(Desk):
    """A desk with workers: what is opened is driven by itself."""

    workers: list[Worker]

    def hire(self, *, env: dict[str, str] | None = None, **options: Any) -> Worker:
        worker = Worker(env={**FAST, "COUNTERSEAL_SHOP_URL": self.shop.url, **(env or {})}, **options)
        self.workers.append(worker)
        return worker

    def until(self, run: Run, *statuses: str, seconds: float = 60) -> Run:
        """Wait until the run has one of the statuses, sweeping meanwhile as beat does."""

        def reached() -> bool:
            sweep()
            run.refresh_from_db()
            return run.status in statuses

        wait_until(reached, seconds, f"run is {run.status}, not {' or '.join(statuses)}")
        return run

    def request(self, run: Run) -> ApprovalRequest:
        self.until(run, "interrupted")
        (found,) = self.pending(run)
        return found


@pytest.fixture(scope="module")
def module_shop() -> Iterator[Shop]:
    with Shop() as running:
        yield running


@pytest.fixture
def office(
    transactional_db: None, checkpoint_tables: None, shop: Any, settings: Any, monkeypatch: Any
) -> Iterator[Office]:
    settings.SHOP_URL = shop.url
    settings.STALE_SECONDS = 1
    monkeypatch.setenv("COUNTERSEAL_SHOP_URL", shop.url)
    monkeypatch.setenv("COUNTERSEAL_TEST_MODELS", "tests.models")
    found = Office(shop)
    found.workers = []
    yield found
    for worker in found.workers:
        worker.stop()


@pytest.fixture
def web(office: Office) -> Iterator[Web]:
    with Web(env={**FAST, "COUNTERSEAL_SHOP_URL": office.shop.url}) as running:
        yield running


@contextmanager
def frozen_broker() -> Iterator[None]:
    """It accepts connections and answers nothing, as when its host swaps."""
    (server,) = (process for process in plugin._running if isinstance(process, Valkey))
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


type Post = Callable[..., httpx.Response]
"""(path, body, key made fresh unless given)"""


def by_token(url: str, user: User, *scopes: str) -> Post:
    """A program with a token."""
    wanted = scopes or (Scope.CASES, Scope.READ, Scope.DECIDE)
    _, text = tokens.create(actor=Actor.of(user), user=user, scopes=list(wanted))
    client = httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {text}"}, timeout=30)
    return _poster(client)


def by_session(url: str, user: User) -> Post:
    """A browser that is signed in."""
    return _poster(signed_in(f"{url}/api/v1", user))


def signed_in(url: str, user: User) -> httpx.Client:
    """With the cookies and the header that forms need."""
    browser = Client()
    browser.force_login(user)
    cookies = {
        django_settings.SESSION_COOKIE_NAME: browser.cookies[django_settings.SESSION_COOKIE_NAME].value,
        django_settings.CSRF_COOKIE_NAME: "a" * 32,
    }
    headers = {"X-CSRFToken": "a" * 32}
    return httpx.Client(base_url=url, headers=headers, cookies=cookies, timeout=30)


def _poster(client: httpx.Client) -> Post:
    def post(path: str, body: dict[str, Any], key: str = "") -> httpx.Response:
        return client.post(path, json=body, headers={"Idempotency-Key": key or uuid.uuid4().hex})

    return post

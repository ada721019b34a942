"""The API over Django's test client: real middleware, real Postgres; nobody works on the runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from agents.refunds import http_shop
from agents.refunds.memory import MemoryShop, sample_order
from approvals import dispatch
from approvals.models import AuditEvent, User
from tests import factories

SCOPES = ("cases", "read", "decide", "audit", "admin")


@dataclass
class Caller:
    """One user with a token. Every answer is checked for the rules that all answers keep."""

    user: User | None
    token: str | None

    def send(
        self, method: str, path: str, body: Any = None, key: str | None = None, **more: Any
    ) -> HttpResponse:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        headers |= more.pop("headers", {})
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = Client().generic(
            method,
            f"/api/v1{path}",
            data,
            content_type=more.pop("content_type", "application/json"),
            headers=headers,
            **more,
        )
        if sent.status_code >= 400 and method != "HEAD":
            assert sent["Content-Type"] == "application/problem+json"
            problem = sent.json()
            assert problem["status"] == sent.status_code
            assert problem["type"].startswith("urn:counterseal:problem:")
            assert problem["title"]
            assert problem["detail"]
            assert problem["instance"] == f"/api/v1{path}".partition("?")[0]
        assert sent["Cache-Control"] == "no-store"
        return sent

    def get(self, path: str, **more: Any) -> HttpResponse:
        return self.send("GET", path, **more)

    def post(self, path: str, body: Any = None, key: str | None = None, **more: Any) -> HttpResponse:
        return self.send("POST", path, body, key, **more)


def caller(username: str, *groups: str, scopes: tuple[str, ...] = SCOPES) -> Caller:
    user = factories.make_user(username, *groups)
    return Caller(user, factories.make_token(user, *scopes))


@pytest.fixture(autouse=True)
def hints(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Hints that would have gone to the workers."""
    sent: list[Any] = []
    monkeypatch.setattr(dispatch, "_put", sent.append)
    return sent


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> MemoryShop:
    """What the business checks ask."""
    orders = [sample_order(), sample_order("A-30001", "5000", "JPY")]
    memory = MemoryShop(orders)
    monkeypatch.setattr(http_shop, "shop_from_env", lambda: memory)
    return memory


@pytest.fixture
def sam(db: None) -> Caller:
    return caller("sam", "support")


@pytest.fixture
def rita(db: None) -> Caller:
    return caller("rita", "refund-reviewers")


@pytest.fixture
def chen(db: None) -> Caller:
    return caller("chen", "refund-reviewers")


@pytest.fixture
def ada(db: None) -> Caller:
    return caller("ada", "administrators")


@pytest.fixture
def otto(db: None) -> Caller:
    return caller("otto")


@pytest.fixture
def nobody(db: None) -> Caller:
    return Caller(None, None)


def fields(sent: HttpResponse) -> dict[str, str]:
    """field -> sentence of a 422."""
    assert sent.status_code == 422, sent.content
    return {error["field"]: error["message"] for error in sent.json()["errors"]}


def refusals(username: str) -> list[tuple[str, str]]:
    """(right, path) of every refused attempt on the audit trail."""
    rows = AuditEvent.objects.filter(action="access.refused", actor__username=username).order_by("pk")
    return [(row.data["right"], row.data["path"]) for row in rows]

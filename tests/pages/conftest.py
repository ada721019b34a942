"""Pages over Django's test client: real middleware, real Postgres; nobody works on the runs."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from agents.refunds import http_shop
from agents.refunds.memory import MemoryShop, sample_order
from approvals import dispatch
from approvals.models import ApprovalRequest, AuditEvent, User
from tests import factories

HTMX = {"HX-Request": "true"}


class Person:
    """Somebody who is signed in, with a browser that can do htmx."""

    def __init__(self, username: str, *groups: str, **fields: Any) -> None:
        self.user: User = factories.make_user(username, *groups, **fields)
        self.client = Client(headers={"Accept-Language": "en"})
        self.client.force_login(self.user)

    def get(self, path: str, *, htmx: bool = False, **headers: str) -> HttpResponse:
        return self.client.get(path, headers={**(HTMX if htmx else {}), **headers})

    def post(self, path: str, data: dict[str, Any] | None = None, *, htmx: bool = False) -> HttpResponse:
        return self.client.post(path, data or {}, headers=HTMX if htmx else {})

    def decide(
        self, request: ApprovalRequest, answer: str, *, htmx: bool = True, key: str = "", **fields: Any
    ) -> HttpResponse:
        """As the form of the pane posts it, from what the row says now unless told otherwise."""
        data = {
            "answer": answer,
            "rev": request.rev,
            "digest": request.digest,
            "key": key or str(uuid.uuid4()),
        }
        return self.post(f"/inbox/{request.pk}/decide/", {**data, **fields}, htmx=htmx)


def text(sent: HttpResponse) -> str:
    """What a person reads: no markup, entities decoded, white space as one."""
    import html

    body = re.sub(r"<(script|style)\b.*?</\1>", "", sent.content.decode(), flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def fields(request: ApprovalRequest, **changed: str) -> dict[str, str]:
    """Every control of an edit as a browser would send it."""
    shown = {f"args/{name}": str(value) for name, value in request.args.items()}
    return {**shown, **{f"args/{name}": value for name, value in changed.items()}}


def actions() -> list[str]:
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


@pytest.fixture(autouse=True)
def hints(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    sent: list[Any] = []
    monkeypatch.setattr(dispatch, "_put", sent.append)
    return sent


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> MemoryShop:
    """What the business checks ask."""
    memory = MemoryShop([sample_order(), sample_order("A-30001", "5000", "JPY")])
    monkeypatch.setattr(http_shop, "shop_from_env", lambda: memory)
    return memory


@pytest.fixture
def rita(db: None) -> Person:
    return Person("rita", "refund-reviewers", first_name="Rita", last_name="Gupta")


@pytest.fixture
def chen(db: None) -> Person:
    return Person("chen", "refund-reviewers", first_name="Chen", last_name="Yu")


@pytest.fixture
def sam(db: None) -> Person:
    return Person("sam", "support", first_name="Sam", last_name="Ortiz")


@pytest.fixture
def ada(db: None) -> Person:
    return Person("ada", "administrators")


@pytest.fixture
def audra(db: None) -> Person:
    return Person("audra", "auditors")


@pytest.fixture
def otto(db: None) -> Person:
    return Person("otto")

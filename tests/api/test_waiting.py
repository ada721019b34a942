"""`GET /runs/{id}?wait=`: the answer comes when the run has settled, and nothing is held until then."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application
from django.db import connection, transaction

from approvals.api import waiting
from approvals.models import Run
from approvals.routing import with_long_poll
from approvals.services import events
from tests import factories
from tests.api.conftest import caller

pytestmark = pytest.mark.django_db(transaction=True)


def settle(run: Run, status: str = "success", tell: bool = True) -> None:
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(status=status)
        if tell:
            events.record(run.topic, kind=status, object_id=run.pk)


def later(act: Any, *args: Any, **more: Any) -> asyncio.Task[Any]:
    async def run() -> Any:
        await asyncio.sleep(0.4)
        return await in_db(act)(*args, **more)

    return asyncio.create_task(run())


def in_db(act: Any) -> Any:
    def closing(*args: Any, **more: Any) -> Any:
        try:
            return act(*args, **more)
        finally:
            connection.close()

    return sync_to_async(closing, thread_sensitive=False)


class Waiter:
    def __init__(self, token: str) -> None:
        app = with_long_poll(get_asgi_application())
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://localhost", headers=headers, timeout=30
        )

    async def get(self, path: str) -> tuple[httpx.Response, float]:
        began = time.monotonic()
        answer = await self.http.get(f"/api/v1{path}")
        return answer, time.monotonic() - began


@pytest.fixture
def run():
    return factories.make_case()


@pytest.fixture
def sam():
    return Waiter(caller("sam", "support").token)


async def test_a_settled_run_is_answered_at_once(sam, run):
    await in_db(settle)(run)
    answer, seconds = await sam.get(f"/runs/{run.pk}?wait=20")
    assert (answer.json()["status"], seconds < 2) == ("success", True)


async def test_a_nudge_ends_the_wait(sam, run):
    task = later(settle, run)
    answer, seconds = await sam.get(f"/runs/{run.pk}?wait=20")
    await task
    assert answer.json()["status"] == "success"
    assert 0.3 < seconds < 3, "the nudge came through the channel layer"


async def test_a_lost_nudge_only_delays(sam, run, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_AGAIN", 0.6)
    task = later(settle, run, tell=False)
    answer, seconds = await sam.get(f"/runs/{run.pk}?wait=20")
    await task
    assert (answer.json()["status"], seconds < 4) == ("success", True)


async def test_without_a_broker_it_looks_every_second(sam, run, settings):
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "approvals.notify.HintLayer",
            "CONFIG": {"hosts": [{"address": "redis://127.0.0.1:1", "socket_connect_timeout": 0.5}]},
        }
    }
    task = later(settle, run)
    answer, seconds = await sam.get(f"/runs/{run.pk}?wait=20")
    await task
    assert (answer.json()["status"], seconds < 5) == ("success", True)


async def test_the_wait_is_over_when_it_is_over(sam, run):
    answer, seconds = await sam.get(f"/runs/{run.pk}?wait=0.7")
    assert (answer.json()["status"], 0.6 < seconds < 3) == ("pending", True)


async def test_a_pending_decision_ends_the_wait_and_a_given_one_does_not(sam, run):
    request = await in_db(factories.make_request)(run)
    answer, seconds = await sam.get(f"/runs/{run.pk}?wait=20")
    assert (answer.json()["status"], seconds < 2) == ("interrupted", True)
    await in_db(factories.decide)(request, "approve")
    task = later(settle, run)
    answer, _ = await sam.get(f"/runs/{run.pk}?wait=20")
    await task
    assert answer.json()["status"] == "success"


async def test_who_may_not_see_the_run_does_not_wait(run):
    otto = await in_db(caller)("otto")
    answer, seconds = await Waiter(otto.token).get(f"/runs/{run.pk}?wait=20")
    assert (answer.status_code, seconds < 2) == (404, True)
    answer, seconds = await Waiter("cseal_no_token").get(f"/runs/{run.pk}?wait=20")
    assert (answer.status_code, seconds < 2) == (401, True)


async def test_a_session_waits_too(run):
    from django.test import Client

    def sign_in() -> str:
        client = Client()
        client.force_login(factories.make_user("tomas", "support"))
        return client.cookies["sessionid"].value

    waiter = Waiter("")
    waiter.http.headers.pop("Authorization")
    waiter.http.cookies.set("sessionid", await in_db(sign_in)())
    task = later(settle, run)
    answer, seconds = await waiter.get(f"/runs/{run.pk}?wait=20")
    await task
    assert (answer.json()["status"], seconds > 0.3) == ("success", True)


async def test_waiting_holds_no_thread_and_no_connection(sam, run):
    await sam.get(f"/runs/{run.pk}?wait=0.1")
    before = threading.active_count()
    tasks = [asyncio.create_task(sam.get(f"/runs/{run.pk}?wait=20")) for _ in range(60)]
    await asyncio.sleep(2)
    assert threading.active_count() - before <= 6
    query = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )

    def others() -> int:
        with connection.cursor() as cursor:
            cursor.execute(query)
            return int(cursor.fetchone()[0])

    assert await in_db(others)() <= 2
    await in_db(settle)(run)
    answers = await asyncio.gather(*tasks)
    assert {answer.json()["status"] for answer, _ in answers} == {"success"}


async def test_a_client_that_leaves_ends_the_wait(sam, run):
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    asked: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope)

    scope = {
        "type": "http", "method": "GET", "path": f"/api/v1/runs/{run.pk}", "query_string": b"wait=20",
        "headers": [(b"authorization", sam.http.headers["Authorization"].encode())],
    }  # fmt: skip
    task = asyncio.create_task(with_long_poll(app)(scope, messages.get, None))
    await asyncio.sleep(0.5)
    assert not task.done()
    messages.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(task, 2)
    assert asked == []


async def test_the_application_gets_every_message_it_would_have_got(sam):
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    bodies = [{"type": "http.request", "body": b"x", "more_body": more} for more in (True, False)]
    last = {"type": "http.disconnect"}
    for body in bodies:
        messages.put_nowait(body)
    got: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.extend([await receive(), await receive()])
        messages.put_nowait(last)
        got.append(await receive())

    scope = {"type": "http", "method": "GET", "path": "/api/v1/runs/00000000-0000-0000-0000-000000000000",
             "query_string": b"wait=20", "headers": []}  # fmt: skip
    await with_long_poll(app)(scope, messages.get, None)
    assert got == [*bodies, last]


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/api/v1/runs", "wait=5"),
        ("POST", "/api/v1/runs/00000000-0000-0000-0000-000000000000", "wait=5"),
        ("GET", "/api/v1/runs/00000000-0000-0000-0000-000000000000/steps", "wait=5"),
        ("GET", "/api/v1/runs/00000000-0000-0000-0000-000000000000", ""),
        ("GET", "/api/v1/runs/00000000-0000-0000-0000-000000000000", "wait=0"),
        ("GET", "/api/v1/runs/00000000-0000-0000-0000-000000000000", "wait=-1"),
        ("GET", "/api/v1/runs/00000000-0000-0000-0000-000000000000", "wait=nan"),
        ("GET", "/api/v1/runs/00000000-0000-0000-0000-000000000000", "wait=soon"),
    ],
)
def test_everything_else_goes_straight_through(method, path, query):
    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
    assert waiting.wanted(scope) == (None, 0)


def test_a_wait_is_at_most_a_minute():
    path = "/api/v1/runs/00000000-0000-0000-0000-000000000000"
    for raw in (b"wait=600", b"wait=inf", b"wait=1e9"):
        scope = {"type": "http", "method": "GET", "path": path, "query_string": raw}
        assert waiting.wanted(scope)[1] == 60

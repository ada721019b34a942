"""The live socket: who may open it, what it says, what it never does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test import Client

from approvals import dispatch, notify
from approvals.actors import SYSTEM, Actor
from approvals.consumers import LiveConsumer
from approvals.models import ApprovalRequest, Event, User
from approvals.routing import live
from approvals.services import events, people, sessions, tokens
from tests import factories
from tests.live.link import Link

pytestmark = pytest.mark.django_db(transaction=True)

HERE = "http://localhost:8000"


@pytest.fixture(autouse=True)
def hints(monkeypatch):
    monkeypatch.setattr(dispatch, "_put", lambda hint: None)


async def do(act: Any, *args: Any, **more: Any) -> Any:
    """Database work of the test, on a connection that is closed again."""

    def closing() -> Any:
        try:
            return act(*args, **more)
        finally:
            connection.close()

    return await sync_to_async(closing, thread_sensitive=False)()


def session_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return str(client.cookies["sessionid"].value)


@asynccontextmanager
async def socket(
    session: str = "", token: str = "", origin: str | None = HERE, host: str = "localhost:8000", **scope: Any
) -> AsyncIterator[Link]:
    headers = [(b"host", host.encode())]
    headers += [(b"cookie", f"a=b; sessionid={session}".encode())] if session else []
    headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
    headers += [(b"origin", origin.encode())] if origin is not None else []
    link = Link(live, "/ws/live/", headers, **scope)
    assert await link.open(), "a refused handshake would be retried for ever"
    try:
        yield link
    finally:
        await link.leave()


async def follow(link: Link, *topics: str, since: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """(replayed nudges, ready)"""
    await link.send_json_to({"type": "follow", "topics": list(topics), "since": since})
    replayed = []
    while (message := await link.receive_json_from(seconds=3)).get("type") != "ready":
        replayed.append(message)
    return replayed, message


def change(*topics: str, kind: str = "changed", object_id: object = "1") -> int:
    with transaction.atomic():
        events.record(*topics, kind=kind, object_id=object_id, rev=2)
    return events.current_seq()


@pytest.fixture
def rita():
    return factories.make_user("rita", "refund-reviewers")


@pytest.fixture
def session(rita):
    return session_of(rita)


async def test_follow_then_nudges(session):
    request = await do(factories.make_request)
    before = await do(events.current_seq)
    async with socket(session) as link:
        replayed, ready = await follow(link, "inbox", since=before)
        assert (replayed, ready) == (
            [],
            {"type": "ready", "seq": before, "topics": ["inbox"], "resync": False},
        )
        seq = await do(change, "inbox", kind="decided", object_id=request.pk)
        nudge = await link.receive_json_from(seconds=3)
        assert nudge == {"seq": seq, "topic": "inbox", "type": "decided", "id": str(request.pk), "rev": 2}


async def test_the_inbox_names_only_what_one_may_see(session):
    """A reviewer hears that the inbox has changed, but not the ids of another queue."""
    start = await do(events.current_seq)
    other = await do(factories.make_request, queue="finance")
    async with socket(session) as link:
        replayed, _ = await follow(link, "inbox", since=start)
        assert {nudge["id"] for nudge in replayed} == {""}
        await do(change, "inbox", object_id=other.pk)
        assert (await link.receive_json_from(seconds=3))["id"] == ""
    tomas = await do(factories.make_user, "tomas", "support")
    async with socket(await do(session_of, tomas)) as link:
        replayed, _ = await follow(link, "inbox", since=start)
        assert str(other.pk) in {nudge["id"] for nudge in replayed}


async def test_what_was_missed_is_replayed_before_ready(session):
    start = await do(events.current_seq)
    for _ in range(3):
        await do(change, "inbox")
    async with socket(session) as link:
        replayed, ready = await follow(link, "inbox", since=start + 1)
        assert [nudge["seq"] for nudge in replayed] == [start + 2, start + 3]
        assert ready["seq"] == start + 3


async def test_a_gap_that_is_too_long_is_a_resync(session):
    start = await do(events.current_seq)
    await do(change, *["inbox"] * 501)
    async with socket(session) as link:
        replayed, ready = await follow(link, "inbox", since=start)
        assert (replayed, ready["resync"], ready["seq"]) == ([], True, start + 501)


async def test_pruned_events_and_a_restored_database_are_a_resync(session):
    start = await do(change, "inbox")
    await do(change, "inbox")
    await do(Event.objects.filter(seq__lte=start).delete)
    async with socket(session) as link:
        assert (await follow(link, "inbox", since=start - 1))[1]["resync"] is True
        assert (await follow(link, "inbox", since=start + 1_000))[1]["resync"] is True
        assert (await follow(link, "inbox", since=start))[1]["resync"] is False


async def test_only_what_one_may_see_is_followed(session):
    hidden = await do(factories.make_case)
    shown = await do(factories.make_request)
    other = await do(factories.make_request, queue="finance")
    wanted = [
        "inbox", f"thread:{hidden.thread_id}", f"run:{shown.run_id}", f"request:{shown.pk}", f"request:{other.pk}",
        "inbox:1", "request:1", "user:1", "", "x" * 5_000, f"request:{shown.pk}",
    ]  # fmt: skip
    async with socket(session) as link:
        _, ready = await follow(link, *wanted)
        assert ready["topics"] == ["inbox", f"run:{shown.run_id}", f"request:{shown.pk}"]


async def test_an_account_without_rights_hears_nothing(db):
    otto = await do(factories.make_user, "otto")
    request = await do(factories.make_request)
    async with socket(await do(session_of, otto)) as link:
        _, ready = await follow(link, "inbox", f"request:{request.pk}", f"run:{request.run_id}")
        assert ready["topics"] == []
        await do(change, "inbox", request.topic)
        assert await link.receive_nothing(timeout=0.5)


async def test_unfollowed_topics_are_silent(session):
    request = await do(factories.make_request)
    async with socket(session) as link:
        await follow(link, "inbox", request.topic, since=2**40)
        await link.send_json_to({"type": "unfollow", "topics": ["inbox"]})
        await do(change, "inbox")
        await do(change, request.topic)
        assert (await link.receive_json_from(seconds=3))["topic"] == request.topic


async def test_streamed_text_passes_through(session):
    request = await do(factories.make_request)
    topic = f"run:{request.run_id}"
    async with socket(session) as link:
        await follow(link, topic, since=2**40)
        await do(notify.delta, topic, "m1", 5, "退款")
        said = await link.receive_json_from(seconds=3)
        assert said == {"type": "delta", "topic": topic, "block": "m1", "at": 5, "text": "退款"}


async def test_ping_and_heartbeat_say_how_far_the_numbers_are(session, monkeypatch):
    seq = await do(change, "inbox")
    async with socket(session) as link:
        await link.send_json_to({"type": "ping"})
        assert await link.receive_json_from(seconds=3) == {"type": "hb", "seq": seq}
    monkeypatch.setattr(LiveConsumer, "HEARTBEAT", 0.1)
    async with socket(session) as link:
        assert await link.receive_json_from(seconds=3) == {"type": "hb", "seq": seq}


async def test_a_lost_nudge_is_found_by_the_next_heartbeat(session, monkeypatch):
    async with socket(session) as link:
        _, ready = await follow(link, "inbox", since=0)
        monkeypatch.setattr(notify, "_send", lambda group, message: None)
        seq = await do(change, "inbox")
        assert await link.receive_nothing(timeout=0.3)
        await link.send_json_to({"type": "ping"})
        assert (await link.receive_json_from(seconds=3))["seq"] == seq > ready["seq"]
        replayed, _ = await follow(link, "inbox", since=ready["seq"])
        assert [nudge["seq"] for nudge in replayed] == [seq]


async def test_the_story_of_a_request_reaches_the_inbox(session, rita):
    async with socket(session) as link:
        await follow(link, "inbox", since=2**40)
        request = await do(factories.make_request)
        await do(factories.decide, request, "approve", rita)
        kinds = []
        while "decided" not in kinds:
            kinds.append((await link.receive_json_from(seconds=3))["type"])
        assert kinds == ["opened", "asked", "interrupted", "decided"]


@pytest.mark.parametrize(
    "frame",
    [
        "approve", "{", "null", "[]", "5", '"x"', "{}", '{"type":"approve","id":1}', '{"type":"follow"}',
        '{"type":"follow","topics":"inbox","since":0}', '{"type":"follow","topics":["inbox"],"since":"0"}',
        '{"type":"nudge","nudge":{"topic":"inbox"}}', '{"type":"websocket.close"}', "[" * 60_000,
        '{"type":["follow"],"topics":[[1]],"since":1}',
    ],
)  # fmt: skip
async def test_everything_else_is_ignored(session, frame):
    request = await do(factories.make_request)
    frame = frame.replace('"id":1', f'"id":"{request.pk}","rev":1,"digest":"{request.digest}"')
    async with socket(session) as link:
        await link.send_to(text_data=frame)
        await link.send_to(bytes_data=b"\x00\xff")
        await link.send_json_to({"type": "ping"})
        assert (await link.receive_json_from(seconds=3))["type"] == "hb"
    fresh = await do(ApprovalRequest.objects.get)
    assert fresh.status == "pending"


async def test_odd_members_of_a_follow_are_left_out(session):
    async with socket(session) as link:
        await link.send_to(text_data='{"type":"follow","topics":[1,null,["inbox"],"inbox"],"since":-5}')
        assert (await link.receive_json_from(seconds=3))["topics"] == ["inbox"]
        await link.send_to(text_data=json.dumps({"type": "follow", "topics": ["inbox"], "since": 10**30}))
        assert (await link.receive_json_from(seconds=3))["resync"] is True


async def test_at_most_fifty_topics(session):
    def many() -> list[str]:
        run = factories.make_request().run
        return [
            f"request:{factories.make_request(run, args=factories.REFUND | {'amount': n}).pk}"
            for n in range(51)
        ]

    topics = await do(many)
    async with socket(session) as link:
        _, ready = await follow(link, *topics, since=2**40)
        assert ready["topics"] == topics[:50]
        _, ready = await follow(link, topics[50], topics[0], since=2**40)
        assert topics[50] not in ready["topics"]
        await link.send_json_to({"type": "unfollow", "topics": topics[:2]})
        _, ready = await follow(link, topics[50], since=2**40)
        assert ready["topics"] == topics[50:]


async def test_a_frame_that_is_too_big_ends_it(session):
    async with socket(session) as link:
        await link.send_to(text_data="x" * 70_000)
        assert await link.close_code() == 1009


async def test_a_flood_is_not_read(session):
    async with socket(session) as link:
        for _ in range(320):
            await link.send_json_to({"type": "ping"})
        answers = 0
        while not await link.receive_nothing(timeout=0.5):
            await link.receive_json_from()
            answers += 1
        assert answers == 300


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        (HERE, None),
        ("http://LOCALHOST:8000", None),
        ("http://localhost:9000", 4403),
        ("http://localhost", 4403),
        ("https://localhost:8000", 4403),
        ("http://evil.example", 4403),
        ("http://localhost:8000.evil.example", 4403),
        ("http://localhost:8000/x", 4403),
        ("http://rita@localhost:8000", 4403),
        ("null", 4403),
        ("", 4403),
        (None, 4403),
        ("http://localhost:x", 4403),
    ],
)
async def test_a_session_is_good_only_from_our_own_pages(session, origin, code):
    async with socket(session, origin=origin) as link:
        if code:
            assert await link.close_code() == code
        else:
            assert (await follow(link, "inbox"))[1]["topics"] == ["inbox"]


async def test_a_foreign_host_is_no_origin(session):
    async with socket(session, origin="http://evil.example", host="evil.example") as link:
        assert await link.close_code() == 4403


async def test_named_origins_are_the_only_ones(session, settings):
    settings.ORIGINS = ["https://desk.example.com"]
    async with socket(session, origin="https://desk.example.com") as link:
        assert (await follow(link, "inbox"))[1]["topics"] == ["inbox"]
    async with socket(session, origin=HERE) as link:
        assert await link.close_code() == 4403


async def test_behind_https_the_origin_is_https(session):
    async with socket(session, origin="https://localhost", host="localhost", scheme="wss") as link:
        assert (await follow(link, "inbox"))[1]["topics"] == ["inbox"]


async def test_a_token_needs_no_origin_but_the_scope(rita):
    token = await do(factories.make_token, rita, "read")
    async with socket(token=token, origin=None) as link:
        assert (await follow(link, "inbox"))[1]["topics"] == ["inbox"]
    async with socket(token=token, origin="http://evil.example") as link:
        assert await link.close_code() == 4403
    for useless in (await do(factories.make_token, rita, "decide"), "cseal_no_token"):
        async with socket(token=useless, origin=None) as link:
            assert await link.close_code() == 4401


@pytest.mark.parametrize("session_key", ["", "unknown"])
async def test_strangers_are_told_to_sign_in(db, session_key):
    async with socket(session_key) as link:
        assert await link.close_code() == 4401


async def test_a_useless_token_is_not_saved_by_a_good_session(session):
    async with socket(session, token="cseal_no_token") as link:
        assert await link.close_code() == 4401


async def test_who_signed_out_hears_no_more_after_the_next_heartbeat(session, monkeypatch):
    monkeypatch.setattr(LiveConsumer, "HEARTBEAT", 0.2)
    async with socket(session) as link:
        await follow(link, "inbox", since=2**40)
        await do(Session.objects.all().delete)
        assert await link.close_code() == 4401


@pytest.mark.parametrize("end", ["inactive", "password", "expired"])
async def test_a_session_that_ended_closes_the_socket(session, rita, monkeypatch, end):
    monkeypatch.setattr(LiveConsumer, "HEARTBEAT", 0.2)
    acts = {
        "inactive": lambda: User.objects.filter(pk=rita.pk).update(is_active=False),
        "password": lambda: User.objects.filter(pk=rita.pk).update(password="changed"),
        "expired": lambda: Session.objects.update(expire_date=Now()),
    }
    async with socket(session) as link:
        await follow(link, "inbox", since=2**40)
        await do(acts[end])
        assert await link.close_code() == 4401


async def test_a_token_that_was_revoked_closes_the_socket(rita, monkeypatch):
    monkeypatch.setattr(LiveConsumer, "HEARTBEAT", 0.2)
    token = await do(factories.make_token, rita, "read")
    async with socket(token=token, origin=None) as link:
        await follow(link, "inbox", since=2**40)
        await do(lambda: rita.tokens.update(revoked_at=Now()))
        assert await link.close_code() == 4401


async def test_who_loses_a_role_is_sent_away(session, rita, monkeypatch):
    monkeypatch.setattr(LiveConsumer, "HEARTBEAT", 0.2)
    async with socket(session) as link:
        await follow(link, "inbox", since=2**40)
        await do(rita.groups.clear)
        assert await link.close_code() == 4403


LOST = {
    "signed out": (
        4401,
        lambda rita, token: (sessions.signed_out(user=rita), Session.objects.all().delete()),
    ),
    "a role lost": (4403, lambda rita, token: lose_role(rita)),
    "deactivated": (4401, lambda rita, token: deactivate(rita)),
}


def lose_role(rita):
    before = people.rights_of(rita)
    with transaction.atomic():
        rita.groups.clear()
        people.record_rights(actor=SYSTEM, subject=rita, before=before)


def deactivate(rita):
    before = people.rights_of(rita)
    with transaction.atomic():
        rita.is_active = False
        rita.save()
        people.record_rights(actor=SYSTEM, subject=rita, before=before)


@pytest.mark.parametrize("kind", LOST)
async def test_a_lost_right_closes_the_socket_long_before_the_next_heartbeat(session, rita, kind):
    code, act = LOST[kind]
    other = await do(lambda: session_of(factories.make_user("chen", "refund-reviewers")))
    async with socket(session) as link, socket(other) as bystander:
        await follow(link, "inbox", since=2**40)
        await follow(bystander, "inbox", since=2**40)
        await do(act, rita, "")
        assert await link.close_code(seconds=LiveConsumer.HEARTBEAT / 5) == code
        if kind != "signed out":  # there every session was ended
            await bystander.send_json_to({"type": "ping"})
            assert (await bystander.receive_json_from(seconds=3))["type"] == "hb"


async def test_a_revoked_token_closes_its_socket_long_before_the_next_heartbeat(rita):
    token = await do(factories.make_token, rita, "read")
    async with socket(token=token, origin=None) as link:
        await follow(link, "inbox", since=2**40)
        await do(lambda: tokens.revoke(actor=Actor.of(rita), token_pk=rita.tokens.get().pk))
        assert await link.close_code(seconds=LiveConsumer.HEARTBEAT / 5) == 4401


async def test_forty_sockets_hear_of_one_change(session):
    async def one() -> int:
        async with socket(session) as link:
            await follow(link, "inbox", since=2**40)
            ready.release()
            return int((await link.receive_json_from(seconds=10))["seq"])

    ready = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(one()) for _ in range(40)]
    for _ in tasks:
        await ready.acquire()
    seq = await do(change, "inbox")
    assert set(await asyncio.gather(*tasks)) == {seq}

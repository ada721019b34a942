"""The live socket of a real web process while its surroundings die: every change is heard of once, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from approvals.models import Event
from approvals.services import events
from tests import factories, plugin
from tests.services import Valkey, Web, wait_until

TOPIC = "inbox"


class Reader:
    """A client as the page is one: it remembers the last number, asks for what came after it, and passes over doubles."""

    def __init__(self, web: Web, token: str) -> None:
        self.url = f"ws://127.0.0.1:{web.port}/ws/live/"
        self.headers = {"Authorization": f"Bearer {token}"}
        self.since = events.current_seq()
        self.heard: list[int] = []
        self.connections = 0
        self.socket: ClientConnection | None = None

    def read_until(self, seq: int) -> None:
        wait_until(lambda: self._read(seq), 60, f"heard {self.since} of {seq}")

    def _read(self, seq: int) -> bool:
        """All there is. Whether `seq` has been heard of."""
        try:
            if self.socket is None:
                self.socket = connect(
                    self.url, additional_headers=self.headers, max_queue=1, close_timeout=1, legacy=True
                )
                self.connections += 1
                self._follow()
            while self.since < seq:
                self._take(json.loads(self.socket.recv(timeout=0.2)))
        except TimeoutError:
            self._say({"type": "ping"})
        except (ConnectionClosed, OSError):
            self.socket = None
        return self.since >= seq

    def _take(self, message: dict[str, Any]) -> None:
        if "topic" in message:
            if message["seq"] == self.since + 1:
                self.since = message["seq"]
                self.heard.append(message["seq"])
            elif message["seq"] > self.since:
                self._follow()
        elif message["seq"] > self.since and message["type"] != "ready":
            self._follow()

    def _follow(self) -> None:
        self._say({"type": "follow", "topics": [TOPIC], "since": self.since})

    def _say(self, message: dict[str, Any]) -> None:
        assert self.socket is not None
        self.socket.send(json.dumps(message))


def change(times: int = 1) -> int:
    for _ in range(times):
        with transaction.atomic():
            events.record(TOPIC, kind="changed", object_id="1")
    return events.current_seq()


@pytest.fixture
def reader(web: Web) -> Iterator[Reader]:
    found = Reader(web, factories.make_token(factories.make_user("ada", "administrators"), "read"))
    yield found
    if found.socket is not None:
        found.socket.close()


def all_after(start: int) -> list[int]:
    return list(
        Event.objects.filter(topic=TOPIC, seq__gt=start).order_by("seq").values_list("seq", flat=True)
    )


def test_a_killed_web_process_and_a_broker_that_restarts_lose_no_nudge(web, reader):
    start = reader.since
    reader.read_until(change())
    web.kill9()
    change(3)
    web.start().wait_ready()
    reader.read_until(change())
    broker = plugin.server(Valkey)
    broker.kill9()
    change(3)
    broker.start().wait_ready()
    reader.read_until(change())
    assert reader.heard == all_after(start)
    assert len(reader.heard) == 9
    assert reader.connections >= 2


def test_whoever_reads_slowly_sees_the_gap_and_asks(web, reader):
    start = reader.since
    reader.read_until(change())
    reader.read_until(change(400))
    assert reader.heard == all_after(start)
    assert len(reader.heard) == 401

"""Outcomes over the wire: what was sent, what is known, and how long it may take."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from agents.outcomes import Ambiguous, Refused, Unavailable
from agents.refunds.http_shop import HttpShop

BODY = {"order_id": "A-1", "amount": "1.00", "currency": "CNY", "reason": ""}
MADE = b'{"refund_id": "rf_1", "order_id": "A-1", "amount": "1.00", "currency": "CNY"}'


@contextmanager
def answering(reply: Callable[[socket.socket], None]) -> Iterator[HttpShop]:
    """A server that reads one request and then does what it is told."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65536)
                with suppress(OSError):
                    reply(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield HttpShop(f"http://127.0.0.1:{server.getsockname()[1]}")
    finally:
        server.close()


def says(status: str, body: bytes = b"{}", *, length: int | None = None) -> Callable[[socket.socket], None]:
    def reply(connection: socket.socket) -> None:
        size = len(body) if length is None else length
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body)

    return reply


@pytest.mark.parametrize("status", ["200 OK", "201 Created"])
def test_an_answer_is_an_answer(status):
    with answering(says(status, MADE)) as shop:
        assert shop.refund(BODY, "k", 2)["refund_id"] == "rf_1"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_definite_no(status):
    with (
        answering(says(f"{status} No", b'{"message": "because"}')) as shop,
        pytest.raises(Refused, match="because"),
    ):
        shop.refund(BODY, "k", 2)


def test_a_reused_key_is_a_definite_no():
    with (
        answering(says("409 Conflict", b'{"error": "key_reused"}')) as shop,
        pytest.raises(Refused, match="key_reused"),
    ):
        shop.refund(BODY, "k", 2)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 302, 202, 204])
def test_what_says_nothing_about_the_refund_is_ambiguous(status):
    with answering(says(f"{status} Hm", b'{"error": "in_progress"}')) as shop, pytest.raises(Ambiguous):
        shop.refund(BODY, "k", 2)


@pytest.mark.parametrize(
    "reply",
    [
        says("200 OK", b"not json"),
        says("200 OK", b"[]"),
        says("200 OK", b'{"refund_id": "rf_1", "order_id": "A-2"}'),
        says("200 OK", MADE, length=999),
        lambda connection: None,
        lambda connection: connection.sendall(b"HTTP/1.1 200"),
        lambda connection: connection.sendall(b"garbage\r\n\r\n"),
    ],
)
def test_half_an_answer_is_ambiguous(reply):
    with answering(reply) as shop, pytest.raises(Ambiguous):
        shop.refund(BODY, "k", 2)


def test_nobody_listening_means_nothing_was_sent():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(Refused, match="nothing was sent"):
        HttpShop(url).refund(BODY, "k", 2)
    with pytest.raises(Unavailable):
        HttpShop(url).order("A-1")


def drip_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.1)


def drip_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for n in range(100):
        connection.sendall(f"X-{n}: y\r\n".encode())
        time.sleep(0.1)


@pytest.mark.parametrize("reply", [drip_body, drip_headers, lambda connection: time.sleep(5)])
def test_no_server_can_hold_a_call_longer_than_its_limit(reply):
    with answering(reply) as shop:
        began = time.monotonic()
        with pytest.raises(Ambiguous):
            shop.refund(BODY, "k", 0.6)
        assert time.monotonic() - began < 1.5


def test_a_read_that_fails_is_unavailable():
    with answering(says("500 No")) as shop, pytest.raises(Unavailable, match="500"):
        shop.order("A-1")

"""The shop over HTTP: one hard time limit per call, and every outcome sorted into answer, `Refused` or `Ambiguous`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agents.outcomes import Ambiguous, Refused, Unavailable
from agents.refunds.ports import Record

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://127.0.0.1:8001"
READ_TIMEOUT = 5.0  # seconds
MAX_ANSWER = 4 * 1024 * 1024  # bytes; more than that is not an answer of ours

DEFINITE = frozenset({400, 401, 403, 404, 405, 410, 413, 415, 422})
OK, NOT_FOUND = 200, 404
CONFLICT = 409


class _TooLate(Exception):
    """The time was used up before the first byte was sent."""


class _Call:
    """One request on its own connection: knows whether anything was sent, and cuts the socket at the deadline.

    httpx limits each read, not the call as a whole: a server that drips one byte a second would hold a worker for
    ever, and the ledger's quiet period relies on a call being over after its time-out.
    """

    def __init__(self, timeout: float) -> None:
        self.deadline = time.monotonic() + timeout
        self.sent = False
        self._stream: Any = None
        self._timer = threading.Timer(timeout, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> _Call:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """httpx's "trace" extension, called around every step of the request."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._stream = info["return_value"]
        if event == "http11.send_request_headers.started":
            if time.monotonic() >= self.deadline:  # a slow name look-up is under no time limit of httpx's
                raise _TooLate
            self.sent = True

    def _cut(self) -> None:
        sock = self._stream.get_extra_info("socket") if self._stream else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class HttpShop:
    """`ports.Shop` over HTTP/JSON. Thread-safe; one connection per call, so that none is ever stale."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def order(self, order_id: str) -> Record | None:
        return self._one(f"/orders/{quote(order_id, safe='')}")

    def policies(self) -> list[Record]:
        return list((self._one("/policies") or {}).get("items", []))

    def policy(self, policy_id: str) -> Record | None:
        return self._one(f"/policies/{quote(policy_id, safe='')}")

    def refunds(self, *, order_id: str | None = None, customer_id: str | None = None) -> list[Record]:
        wanted = {"order": order_id, "customer": customer_id}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in wanted.items() if value)
        return list((self._one(f"/refunds?{query}") or {}).get("items", []))

    def refund_by_key(self, key: str) -> Record | None:
        items = (self._one(f"/refunds?key={quote(key, safe='')}") or {}).get("items", [])
        return items[0] if items else None

    def refund(self, body: Mapping[str, Any], key: str, timeout: float) -> Record:
        status, value = self._send("POST", "/refunds", timeout, body, {"Idempotency-Key": key})
        said = f"{value.get('message') or value.get('error') or 'no reason given'}"
        if status in (200, 201):
            if value.get("order_id") != body["order_id"] or not value.get("refund_id"):
                raise Ambiguous("the shop's answer is not about this refund")
            return value
        if status in DEFINITE or (status == CONFLICT and value.get("error") == "key_reused"):
            raise Refused(f"the shop refused ({status}): {said}")
        raise Ambiguous(f"the shop answered {status}: {said}")

    def _one(self, path: str) -> Record | None:
        """A read. None: not found. Raises `Unavailable` for everything that is not an answer."""
        try:
            status, value = self._send("GET", path, READ_TIMEOUT)
        except (Refused, Ambiguous) as error:
            raise Unavailable(str(error)) from error
        if status == NOT_FOUND:
            return None
        if status != OK:
            raise Unavailable(f"the shop answered {status} to {path}")
        return value

    def _send(
        self,
        method: str,
        path: str,
        timeout: float,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Record]:
        """(status, JSON object). Raises `Refused` if nothing was sent, `Ambiguous` if no whole answer was read."""
        import httpx  # noqa: PLC0415 - slow import

        with _Call(timeout) as call:
            try:
                with _client().stream(
                    method,
                    self.url + path,
                    json=body,
                    headers=dict(headers or {}),
                    timeout=timeout,
                    extensions={"trace": call.trace},
                ) as response:
                    return response.status_code, _json(_whole(response.iter_bytes, call.deadline))
            except (_TooLate, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
                raise Refused(f"nothing was sent to the shop ({type(error).__name__})") from error
            except (httpx.HTTPError, httpx.StreamError, OSError) as error:
                why = type(error).__name__
                if not call.sent:
                    raise Refused(f"the shop is not reachable, nothing was sent ({why})") from error
                raise Ambiguous(_unanswered(error, timeout)) from error


def _unanswered(error: Exception, timeout: float) -> str:
    import httpx  # noqa: PLC0415 - slow import

    if isinstance(error, httpx.TimeoutException):
        return f"the shop did not answer within {timeout:g} s"
    return "the shop closed the connection without a whole answer"


def _whole(chunks: Callable[[], Any], deadline: float) -> bytes:
    data = b""
    for chunk in chunks():
        data += chunk
        if len(data) > MAX_ANSWER:
            raise Ambiguous("the shop's answer is too long")
    if time.monotonic() > deadline:  # cut by us: a body without a length would look complete
        raise Ambiguous("the shop's answer came too late")
    return data


def _json(data: bytes) -> Record:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise Ambiguous("the shop's answer is not JSON") from error
    if not isinstance(value, dict):
        raise Ambiguous("the shop's answer is not an object")
    return value


@lru_cache(maxsize=1)
def _client() -> httpx.Client:
    import httpx  # noqa: PLC0415 - slow import

    # No proxy and no redirects: the shop is one known address. No kept connections: a stale one is an unknown outcome.
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=0)
    return httpx.Client(trust_env=False, follow_redirects=False, limits=limits)


def shop_url() -> str:
    return os.environ.get("COUNTERSEAL_SHOP_URL") or DEFAULT_URL


def shop_from_env() -> HttpShop:
    return HttpShop(shop_url())

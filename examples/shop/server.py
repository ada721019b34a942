"""The shop's HTTP interface."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from examples.shop import page, policies
from examples.shop.faults import BadFault, Fault, Faults, parse
from examples.shop.store import Rejected, Row, Store

MAX_BODY = 64 * 1024
MAX_LIMIT = 500
MAX_KEY = 255


class _Silent(Exception):
    """Close the connection without an answer."""


class Shop(ThreadingHTTPServer):
    """One shop: its store, its faults and the keys whose first request has not been answered yet."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], folder: Path, more: int = 0) -> None:
        super().__init__(address, Handler)
        self.store = Store(folder, more)
        self.faults = Faults()
        self._open_keys: set[str] = set()
        self._lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def open_key(self, key: str) -> bool:
        """False: a request with this key is still in flight."""
        with self._lock:
            if key in self._open_keys:
                return False
            self._open_keys.add(key)
            return True

    def close_key(self, key: str) -> None:
        with self._lock:
            self._open_keys.discard(key)


class Handler(BaseHTTPRequestHandler):
    server: Shop
    protocol_version = "HTTP/1.1"
    timeout = 30  # an idle connection must not hold a thread for ever

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_HEAD(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def _serve(self, act: Any) -> None:
        url = urlsplit(self.path)
        self.route = unquote(url.path)
        self.query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.fault = Fault()
        try:
            if self.route != "/faults":  # it must stay possible to end a fault
                self.fault = self.server.faults.take(self.command, self.route, self.headers.get("X-Fault"))
            self._misbehave_before()
            act()
        except _Silent:
            self._hang_up()
        except Rejected as error:
            self._answer(error.status, error.body)

    def _misbehave_before(self) -> None:
        match self.fault.mode:
            case "down":
                raise _Silent
            case "slow" if not self._is_refund():
                time.sleep(self.fault.seconds)
            case "error_before":
                self._body()
                raise Rejected(500, "internal", "the shop failed before it acted")
            case "conflict":
                self._body()
                raise Rejected(409, "in_progress", "the first request with this key is still in flight")

    def _misbehave_after(self) -> None:
        match self.fault.mode:
            case "slow_after":
                time.sleep(self.fault.seconds)
            case "drop_after":
                raise _Silent
            case "error_after":
                raise Rejected(500, "internal", "the shop failed after it acted")

    def _is_refund(self) -> bool:
        return self.command == "POST" and self.route == "/refunds"

    def _get(self) -> None:
        value = self._read(*[part for part in self.route.split("/") if part])
        self._misbehave_after()
        if isinstance(value, str):
            self._send(200, value.encode(), "text/html; charset=utf-8")
        else:
            self._answer(200, value)

    def _read(self, kind: str = "", ident: str = "", *rest: str) -> Row | str:
        """What a GET answers. Raises `Rejected` (404)."""
        found = None if rest else self._entry(kind, ident) if ident else self._collection(kind)
        if found is None:
            raise Rejected(404, "not_found", f"there is no {self.route}")
        return found

    def _entry(self, kind: str, ident: str) -> Row | None:
        match kind:
            case "orders":
                return self.server.store.order(ident)
            case "customers":
                return self.server.store.customer(ident)
            case "policies":
                return next((policy for policy in policies.POLICIES if policy["id"] == ident), None)
        return None

    def _collection(self, kind: str) -> Row | str | None:
        match kind:
            case "":
                return self._page()
            case "healthz":
                return {"status": "ok"}
            case "orders":
                return self._orders()
            case "policies":
                return {"items": list(policies.POLICIES)}
            case "refunds":
                wanted = {name: self.query.get(name, "") for name in ("key", "order", "customer")}
                return {"items": self.server.store.refunds(**wanted)}
            case "effects":
                items = self.server.store.effects(order=self.query.get("order", ""))
                return {"count": len(items), "items": items}
            case "faults":
                return self.server.faults.show()
        return None

    def _orders(self) -> Row:
        try:
            limit = min(max(int(self.query.get("limit", "50")), 1), MAX_LIMIT)
        except ValueError as error:
            raise Rejected(422, "bad_limit", "limit must be a whole number", "limit") from error
        items = self.server.store.orders(after=self.query.get("after", ""), limit=limit + 1)
        return {"items": items[:limit], "next": items[limit - 1]["id"] if len(items) > limit else None}

    def _page(self) -> str:
        store = self.server.store
        refunds = store.refunds()[::-1]
        effects = sum(1 for row in refunds if row["key"])
        return page.render(store.orders(limit=1000)[::-1], refunds[:200], effects, self.server.faults.show())

    def _post(self) -> None:
        body = self._body()
        if self.route == "/refunds":
            self._refund(body)
        elif self.route == "/faults":
            self._set_fault(body)
        else:
            raise Rejected(404, "not_found", f"there is no {self.route}")

    def _set_fault(self, body: Row) -> None:
        try:
            self.server.faults.set(parse(body))
        except BadFault as error:
            raise Rejected(422, "bad_fault", str(error)) from error
        self._answer(200, self.server.faults.show())

    def _refund(self, body: Row) -> None:
        key = self.headers.get("Idempotency-Key", "")
        if not 1 <= len(key) <= MAX_KEY:
            raise Rejected(400, "no_key", "send an Idempotency-Key of 1 to 255 characters")
        if not self.server.open_key(key):
            # Another body is a definite no, whatever becomes of the first request
            self.server.store.known(key, body)
            raise Rejected(409, "in_progress", "the first request with this key is still in flight")
        try:
            if self.fault.mode == "slow":
                time.sleep(self.fault.seconds)
            refund, made = self.server.store.refund(key, body)
            if made:
                self._say(refund)
            self._misbehave_after()
        finally:
            self.server.close_key(key)
        self._answer(201 if made else 200, refund)

    def _say(self, refund: Row) -> None:
        text = f"refund {refund['refund_id']} {refund['order_id']} {refund['currency']} {refund['amount']} key={refund['key']}"
        print(text, flush=True)  # noqa: T201 - the shop's log

    def _body(self) -> Row:
        """The JSON object that was sent. Raises `Rejected` (400, 413)."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            self.close_connection = True
            raise Rejected(413, "too_long", f"a body has at most {MAX_BODY} bytes")
        raw = self.rfile.read(int(length))
        if self.command != "POST":
            return {}
        try:
            value = json.loads(raw or b"{}")
        except (ValueError, RecursionError) as error:
            raise Rejected(400, "bad_json", "the body is not JSON") from error
        if not isinstance(value, dict):
            raise Rejected(400, "bad_json", "the body is not a JSON object")
        return value

    def _answer(self, status: int, value: object) -> None:
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        self._send(status, data, "application/json; charset=utf-8")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        with suppress(OSError):  # the caller is gone; the refund is not
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged; committed refunds are."""

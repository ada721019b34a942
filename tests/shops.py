"""The demo shop as tests talk to it: one line for each request."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from tests.services import Shop


class ShopProcess(Shop):
    """A shop with a voice; `kill9` and `start` begin again on the same data and port."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """(status, JSON or text). Header names use _ for -."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, _value(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _value(error.read())

    def refund(self, order_id: str, amount: str, currency: str, key: str, **headers: str) -> tuple[int, Any]:
        body = {"order_id": order_id, "amount": amount, "currency": currency}
        return self.call("POST", "/refunds", body, Idempotency_Key=key, **headers)

    def fault(self, mode: str, **more: Any) -> None:
        status, said = self.call("POST", "/faults", {"mode": mode, **more})
        assert status == 200, said

    def effects(self, order_id: str) -> int:
        count: int = self.call("GET", f"/effects?order={order_id}")[1]["count"]
        return count


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()

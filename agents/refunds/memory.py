"""The shop in memory: for tests and for reading. Same bounds and the same outcomes as over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import uuid4

from agents.outcomes import Ambiguous, Refused, Unavailable
from agents.refunds import policy
from agents.refunds.ports import Record

POLICY: Record = {
    "id": "RP-4",
    "title": "Refunds and returns",
    "version": "4.2",
    "effective": "2026-03-01",
    "clauses": [
        {
            "id": "§3.2",
            "title": "Damaged on arrival",
            "text": "Items damaged on arrival and reported within 14 days of delivery get a full refund.",
        },
        {
            "id": "§3.3",
            "title": "Changed mind",
            "text": "Unopened goods returned within 30 days of delivery are refunded minus 10 % for restocking.",
        },
    ],
}


def sample_order(
    order_id: str = "A-20931", captured: str = "1280.00", currency: str = "CNY", **changes: Any
) -> Record:
    """One delivered order; `delivered_days` (None: not delivered) and any key of an order can be given."""
    today = datetime.now(UTC).replace(hour=10, minute=0, second=0, microsecond=0)
    days = changes.pop("delivered_days", 3)
    order: Record = {
        "id": order_id,
        "currency": currency,
        "captured": captured,
        "refunded": policy.plain(Decimal(0), currency),
        "refundable": captured,
        "status": "shipped" if days is None else "delivered",
        "customer_id": "C-1001",
        "customer": {
            "id": "C-1001",
            "name": "李伟",
            "latin_name": "Li Wei",
            "language": "zh-CN",
            "tier": "standard",
        },
        "items": [
            {
                "sku": "LMP-01",
                "title": "Standing desk lamp",
                "title_zh": "站立式台灯",
                "qty": 1,
                "price": captured,
            }
        ],
        "placed_at": (today - timedelta(days=8)).isoformat(),
        "delivered_at": None if days is None else (today - timedelta(days=days)).isoformat(),
        "payment": {"method": "card", "last4": "4417"},
        "carrier": {"name": "Parcelwing", "tracking": "PW1"},
    }
    return order | changes


class MemoryShop:
    """`ports.Shop` in memory. `fault`: "down", "lost" (acts, then no answer) or "refuse"; it stays until cleared."""

    def __init__(self, orders: Iterable[Record] = (), policies: Iterable[Record] = (POLICY,)) -> None:
        self.fault: str | None = None
        self.made: list[Record] = []  # refunds made through `refund`, oldest first
        self._orders = {str(order["id"]): deepcopy(order) for order in orders}
        self._policies = [deepcopy(entry) for entry in policies]
        self._by_key: dict[str, tuple[Record, Record]] = {}
        self._lock = threading.Lock()

    def order(self, order_id: str) -> Record | None:
        self._read()
        return deepcopy(self._orders.get(order_id))

    def policies(self) -> list[Record]:
        self._read()
        return deepcopy(self._policies)

    def policy(self, policy_id: str) -> Record | None:
        return next((entry for entry in self.policies() if entry["id"] == policy_id), None)

    def refunds(self, *, order_id: str | None = None, customer_id: str | None = None) -> list[Record]:
        self._read()
        return [
            deepcopy(row)
            for row in self.made
            if (order_id is None or row["order_id"] == order_id)
            and (customer_id is None or self._orders[row["order_id"]]["customer_id"] == customer_id)
        ]

    def refund_by_key(self, key: str) -> Record | None:
        self._read()
        known = self._by_key.get(key)
        return deepcopy(known[1]) if known else None

    def refund(self, body: Mapping[str, Any], key: str, timeout: float) -> Record:
        if self.fault == "down":
            raise Refused("the shop is not reachable, nothing was sent")
        if self.fault == "refuse":
            raise Refused("the shop refused (422): told to")
        with self._lock:
            result = self._commit(dict(body), key)
        if self.fault == "lost":
            raise Ambiguous(f"no answer from the shop within {timeout:g} s")
        return deepcopy(result)

    def _read(self) -> None:
        if self.fault == "down":
            raise Unavailable("the shop is not reachable")

    def _commit(self, body: Record, key: str) -> Record:
        if known := self._by_key.get(key):
            if known[0] != body:
                raise Refused("the shop refused (409): this Idempotency-Key was used with another body")
            return known[1]
        order = self._orders.get(str(body["order_id"]))
        if order is None:
            raise Refused("the shop refused (404): there is no such order")
        amount = _bounded(order, body)
        currency = str(order["currency"])
        refunded = Decimal(order["refunded"]) + amount
        order["refunded"] = policy.plain(refunded, currency)
        order["refundable"] = policy.plain(Decimal(order["captured"]) - refunded, currency)
        result: Record = {
            "refund_id": f"rf_{uuid4().hex[:16]}",
            "order_id": order["id"],
            "amount": policy.plain(amount, currency),
            "currency": currency,
            "reason": str(body.get("reason") or ""),
            "status": "succeeded",
            "key": key,
            "created_at": datetime.now(UTC).isoformat(),
        }
        self._by_key[key] = (body, result)
        self.made.append(result)
        return result


def _bounded(order: Record, body: Record) -> Decimal:
    currency = str(order["currency"])
    if body["currency"] != currency:
        raise Refused(f"the shop refused (422): the order was paid in {currency}")
    try:
        amount = Decimal(body["amount"])
    except (InvalidOperation, TypeError, ValueError) as error:
        raise Refused("the shop refused (422): amount must be a decimal string") from error
    if not amount.is_finite() or not policy.fits(amount, currency):
        raise Refused(f"the shop refused (422): {currency} has {policy.decimals(currency)} decimals")
    if amount <= 0:
        raise Refused("the shop refused (422): amount must be more than zero")
    if amount > Decimal(order["refundable"]):
        raise Refused(f"the shop refused (422): at most {order['refundable']} can be refunded")
    return amount

"""The shop's store: one SQLite file with a write-ahead log. What it has answered with 201 survives a kill -9."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from examples.shop import data, money

type Row = dict[str, Any]

SCHEMA = """
create table if not exists orders (
    id text primary key, customer_id text not null, currency text not null, captured integer not null,
    refunded integer not null default 0 check (refunded >= 0 and refunded <= captured), doc text not null
);
create index if not exists orders_customer on orders (customer_id);
create table if not exists refunds (
    n integer primary key autoincrement, id text unique not null, key text unique, order_id text not null references orders,
    amount integer not null check (amount > 0), currency text not null, reason text not null, body text not null,
    created_at text not null, days_ago integer
);
create index if not exists refunds_order on refunds (order_id);
"""


class Rejected(Exception):
    """A refund that is not made. `status` is the HTTP status, `body` the JSON to answer."""

    def __init__(self, status: int, error: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: Row = {"error": error, "message": message} | ({"field": field} if field else {})


class Store:
    """All methods are thread-safe: one connection, one lock."""

    def __init__(self, folder: Path, more: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(
            folder / "shop.sqlite3", check_same_thread=False, isolation_level=None, timeout=10
        )
        self._db.row_factory = sqlite3.Row
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = normal")
        self._db.execute("pragma foreign_keys = on")
        self._db.executescript(SCHEMA)
        with self._transaction():
            if not self._db.execute("select 1 from orders limit 1").fetchone():
                self._fill(more)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def order(self, order_id: str) -> Row | None:
        with self._lock:
            row = self._db.execute("select * from orders where id = ?", (order_id,)).fetchone()
        return _order(row) if row else None

    def orders(self, *, after: str = "", limit: int = 50) -> list[Row]:
        """Orders by id, those behind `after`."""
        with self._lock:
            rows = self._db.execute(
                "select * from orders where id > ? order by id limit ?", (after, limit)
            ).fetchall()
        return [_order(row) for row in rows]

    def customer(self, customer_id: str) -> Row | None:
        found = next((customer for customer in data.CUSTOMERS if customer.id == customer_id), None)
        if found is None:
            return None
        with self._lock:
            rows = self._db.execute(
                "select id from orders where customer_id = ? order by id", (customer_id,)
            ).fetchall()
        return {**_customer(found), "orders": [row["id"] for row in rows]}

    def refunds(self, *, key: str = "", order: str = "", customer: str = "") -> list[Row]:
        """Committed refunds, oldest first; those of before the shop opened included."""
        with self._lock:
            rows = self._db.execute(
                """select refunds.* from refunds join orders on orders.id = order_id
                    where (:key = '' or key = :key) and (:order = '' or order_id = :order)
                      and (:customer = '' or customer_id = :customer) order by n""",
                {"key": key, "order": order, "customer": customer},
            ).fetchall()
        return [_refund(row) for row in rows]

    def effects(self, *, order: str = "") -> list[Row]:
        """Refunds made through this API."""
        return [row for row in self.refunds(order=order) if row["key"]]

    def known(self, key: str, body: Row) -> Row | None:
        """The refund made with this key, None if there is none. Raises `Rejected` (409) if it was for another body."""
        with self._lock:
            row = self._db.execute("select * from refunds where key = ?", (key,)).fetchone()
        if row is None:
            return None
        if row["body"] != _canonical(body):
            raise Rejected(409, "key_reused", "this Idempotency-Key was used with another body")
        return _refund(row)

    def refund(self, key: str, body: Row) -> tuple[Row, bool]:
        """(refund, whether this call made it). Raises `Rejected`; then nothing was changed."""
        with self._transaction():
            if (known := self.known(key, body)) is not None:
                return known, False
            order_id, amount = self._bounds(body)
            values = (
                f"rf_{uuid4().hex[:16]}",
                key,
                order_id,
                amount,
                body["currency"],
                str(body.get("reason") or ""),
                _canonical(body),
                datetime.now(UTC).isoformat(timespec="milliseconds"),
            )
            self._db.execute("update orders set refunded = refunded + ? where id = ?", (amount, order_id))
            self._db.execute(
                "insert into refunds (id, key, order_id, amount, currency, reason, body, created_at) "
                "values (?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            row = self._db.execute("select * from refunds where key = ?", (key,)).fetchone()
        return _refund(row), True

    def _bounds(self, body: Row) -> tuple[str, int]:
        row = None
        if isinstance(body.get("order_id"), str):
            row = self._db.execute("select * from orders where id = ?", (body["order_id"],)).fetchone()
        if row is None:
            raise Rejected(404, "unknown_order", "there is no such order", "order_id")
        currency = row["currency"]
        if body.get("currency") != currency:
            raise Rejected(422, "wrong_currency", f"the order was paid in {currency}", "currency")
        try:
            amount = money.minor(body.get("amount"), currency)
        except money.BadAmount as error:
            raise Rejected(422, "bad_amount", str(error), "amount") from error
        left = row["captured"] - row["refunded"]
        if amount <= 0:
            raise Rejected(422, "not_positive", "amount must be more than zero", "amount")
        if amount > left:
            raise Rejected(422, "too_much", f"at most {money.text(left, currency)} can be refunded", "amount")
        return row["id"], amount

    def _fill(self, more: int) -> None:
        for seed in data.orders(more):
            doc = {
                "status": seed.status,
                "placed_days": seed.placed_days,
                "delivered_days": seed.delivered_days,
                "last4": seed.last4,
                "items": [asdict(item) for item in seed.items],
            }
            refunded = sum(amount for amount, _, _ in seed.refunds)
            self._db.execute(
                "insert into orders values (?, ?, ?, ?, ?, ?)",
                (
                    seed.id,
                    seed.customer_id,
                    seed.currency,
                    seed.captured,
                    refunded,
                    json.dumps(doc, ensure_ascii=False),
                ),
            )
            for number, (amount, days_ago, reason) in enumerate(seed.refunds):
                self._db.execute(
                    "insert into refunds (id, order_id, amount, currency, reason, body, created_at, days_ago) "
                    "values (?, ?, ?, ?, ?, '', '', ?)",
                    (f"rf_{seed.id}_{number}", seed.id, amount, seed.currency, reason, days_ago),
                )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._db.execute("rollback")
                raise
            self._db.execute("commit")


def _canonical(body: Row) -> str:
    return json.dumps(body, sort_keys=True, ensure_ascii=False)


def _ago(days: int | None, salt: str) -> str | None:
    """A moment so many days before today (UTC), at a time of day that stays the same for one order."""
    if days is None:
        return None
    today = datetime.combine(datetime.now(UTC).date(), time(), UTC)
    minutes = sum(salt.encode()) * 7 % 600 + 480 if days else 0
    return (today - timedelta(days=days) + timedelta(minutes=minutes)).isoformat()


def _customer(customer: data.Customer) -> Row:
    since = datetime.now(UTC).date() - timedelta(days=customer.since_days)
    return {
        "id": customer.id,
        "name": customer.name,
        "latin_name": customer.latin_name,
        "language": customer.language,
        "tier": customer.tier,
        "email": customer.email,
        "since": since.isoformat(),
    }


def _order(row: sqlite3.Row) -> Row:
    doc, currency = json.loads(row["doc"]), row["currency"]
    customer = next(customer for customer in data.CUSTOMERS if customer.id == row["customer_id"])
    items = [{**item, "price": money.text(item["price"], currency)} for item in doc["items"]]
    return {
        "id": row["id"],
        "currency": currency,
        "captured": money.text(row["captured"], currency),
        "refunded": money.text(row["refunded"], currency),
        "refundable": money.text(row["captured"] - row["refunded"], currency),
        "status": doc["status"],
        "customer_id": row["customer_id"],
        "customer": _customer(customer),
        "items": items,
        "placed_at": _ago(doc["placed_days"], row["id"]),
        "delivered_at": _ago(doc["delivered_days"], row["id"]),
        "payment": {"method": "card", "last4": doc["last4"]},
        "carrier": {"name": "Parcelwing", "tracking": f"PW{row['id'][2:]}{doc['last4']}"},
    }


def _refund(row: sqlite3.Row) -> Row:
    return {
        "refund_id": row["id"],
        "order_id": row["order_id"],
        "amount": money.text(row["amount"], row["currency"]),
        "currency": row["currency"],
        "reason": row["reason"],
        "status": "succeeded",
        "key": row["key"],
        "created_at": row["created_at"] or _ago(row["days_ago"], row["order_id"]),
    }

"""What the refund agent needs from the shop, as a Protocol over plain JSON.

Two adapters: `http_shop.HttpShop` and `memory.MemoryShop`; one contract suite tests both.

An order: `id`, `currency`, `captured`, `refunded`, `refundable` (decimal strings), `status`
(`placed|shipped|delivered|cancelled`), `customer_id`, `customer` (`id name latin_name language tier email since`),
`items` (`sku title title_zh qty price`), `placed_at`, `delivered_at` (UTC ISO or None), `payment` (`method last4`),
`carrier` (`name tracking eta`).
A policy: `id title version effective text clauses`; a clause: `id title text`.
A refund: `refund_id order_id amount currency reason status key created_at`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

type Record = dict[str, Any]


def receipt(refund: Record) -> Record:
    """A refund as it goes into the ledger and to the model: the key is none of their business."""
    return {name: refund[name] for name in ("refund_id", "order_id", "amount", "currency")}


class Shop(Protocol):
    """The system of record. Reads raise `agents.outcomes.Unavailable`."""

    def order(self, order_id: str) -> Record | None:
        """None: there is no such order."""
        ...

    def policies(self) -> list[Record]: ...

    def policy(self, policy_id: str) -> Record | None: ...

    def refunds(self, *, order_id: str | None = None, customer_id: str | None = None) -> list[Record]:
        """Committed refunds, oldest first."""
        ...

    def refund_by_key(self, key: str) -> Record | None:
        """None proves nothing while the request that carries this key may still be on its way."""
        ...

    def refund(self, body: Mapping[str, Any], key: str, timeout: float) -> Record:
        """Refund once per `key`. `body`: order_id, amount (decimal string), currency, reason.

        Returns within `timeout` seconds in all. Raises `Refused` when nothing was refunded, `Ambiguous` when nobody
        knows.
        """
        ...

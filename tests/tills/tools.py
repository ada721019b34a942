from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from agents.refunds import policy
from agents.refunds.http_shop import HttpShop as connect
from agents.refunds.ports import Record, Shop, receipt
from tests.tills.facts import by_reference

__all__ = ["SENDERS", "TOOL_BUILDERS", "connect"]


def _sender(shop: Shop) -> tuple[Callable[..., Record], Callable[[str], Record | None]]:
    def send(args: dict[str, Any], key: str, timeout: float) -> Record:
        """A new key each time: whatever is sent twice is paid twice."""
        body = {
            "order_id": args["order_id"],
            "amount": policy.plain(args["amount"], args["currency"]),
            "currency": args["currency"],
            "reason": key,
        }
        return receipt(shop.refund(body, uuid.uuid4().hex, timeout))

    return send, lambda key: by_reference(shop, key)


TOOL_BUILDERS: Mapping[str, Any] = {}
SENDERS = {"pay_back": _sender, "pay_blind": _sender}

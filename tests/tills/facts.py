from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.catalogue import CheckUnavailable, ToolFacts
from agents.outcomes import Unavailable
from agents.refunds import http_shop
from agents.refunds.facts import IssueRefund
from agents.refunds.ports import Record, Shop, receipt


def by_reference(shop: Shop, reference: str) -> Record | None:
    """The refund whose reason names the reference: this provider knows no keys."""
    found = [row for row in shop.refunds() if row["reason"] == reference]
    return receipt(found[0]) if found else None


def _lookup(reference: str) -> Mapping[str, Any] | None:
    try:
        return by_reference(http_shop.shop_from_env(), reference)
    except Unavailable as error:
        raise CheckUnavailable(str(error)) from error


TOOLS = tuple(
    ToolFacts(
        name=name,
        title="Pay back {currency} {amount}",
        description="Pay money back.",
        effect="write",
        args=IssueRefund,
        lookup=lookup,
        timeout=3.0,
        margin=1.0,
    )
    for name, lookup in (("pay_back", _lookup), ("pay_blind", None))
)

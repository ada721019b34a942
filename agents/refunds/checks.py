"""Business checks of a proposed or edited refund, against the shop as it is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from agents.catalogue import Args, Check, CheckUnavailable
from agents.outcomes import Unavailable
from agents.refunds import http_shop, policy
from agents.refunds.ports import Record, Shop, receipt
from agents.words import gettext_noop

RECENT_DAYS = 90
MANY_SHOWN = 20


def issue_refund(args: Args, context: Mapping[str, Any]) -> list[Check]:
    """`CheckCall` of the write, asking the shop that the environment names."""
    return check_refund(http_shop.shop_from_env(), args, context)


def refund_by_key(key: str) -> Record | None:
    """`LookupByKey` of the write."""
    try:
        known = http_shop.shop_from_env().refund_by_key(key)
    except Unavailable as error:
        raise CheckUnavailable(f"The shop did not answer ({error}). Try again in a moment.") from error
    return receipt(known) if known else None


def check_refund(
    shop: Shop, args: Args, context: Mapping[str, Any], now: datetime | None = None
) -> list[Check]:
    """Every finding about one refund, most important first. Raises `CheckUnavailable`.

    `context`: `customer` ({"id"?, "name"?}) and `order_id` of the case, both optional. The arguments are what a model
    or a person wrote: any of them may be missing or of the wrong type.
    """
    order_id = args.get("order_id")
    if not isinstance(order_id, str) or not order_id:
        return [Check("fail", gettext_noop("No order is named"), field="/order_id")]
    try:
        order = shop.order(order_id)
        mine = shop.refunds(order_id=order_id) if order else []
        theirs = shop.refunds(customer_id=order["customer_id"]) if order else []
    except Unavailable as error:
        raise CheckUnavailable(f"The shop did not answer ({error}). Try again in a moment.") from error
    if order is None:
        return [
            Check("fail", gettext_noop("Order %(order)s does not exist"), {"order": order_id}, "/order_id")
        ]
    now = now or datetime.now(UTC)
    return [
        *_amount(order, args),
        *_owner(order, context),
        *_delivery(order, args, now),
        *_earlier(order, mine, theirs, now),
    ]


def _amount(order: Record, args: Args) -> list[Check]:
    currency = str(order["currency"])
    found = []
    if args.get("currency") != currency:
        text = gettext_noop("The order was paid in %(currency)s")
        found.append(Check("fail", text, {"currency": currency}, "/currency"))
    try:
        amount = policy.number(args.get("amount"))
    except policy.BadAmount:
        return [*found, Check("fail", gettext_noop("The amount is not a plain number"), field="/amount")]
    return [*found, *_bounds(order, amount, currency, str(args.get("reason") or ""))]


def _bounds(order: Record, amount: Decimal, currency: str, reason: str) -> list[Check]:
    said, refundable = policy.money(amount, currency), Decimal(order["refundable"])
    if amount <= 0:
        return [Check("fail", gettext_noop("The amount must be more than zero"), field="/amount")]
    if not policy.fits(amount, currency):
        text = gettext_noop("%(amount)s has more decimals than %(currency)s allows")
        return [Check("fail", text, {"amount": f"{amount:f}", "currency": currency}, "/amount")]
    if amount > refundable:
        text = gettext_noop("%(amount)s is more than the %(refundable)s that can still be refunded")
        params = {"amount": said, "refundable": policy.money(refundable, currency)}
        return [Check("fail", text, params, "/amount")]
    return [_size(order, amount, currency, reason)]


def _size(order: Record, amount: Decimal, currency: str, reason: str) -> Check:
    """How an amount within bounds compares with what was paid and with what the policy computes."""
    captured = Decimal(order["captured"])
    computed = policy.compute(order, policy.classify(reason))
    params = {
        "amount": policy.money(amount, currency),
        "captured": policy.money(captured, currency),
        "computed": policy.money(computed.amount, currency),
        "clause": computed.clause,
    }
    if amount == captured == computed.amount:
        text = gettext_noop("The amount equals the amount paid and the amount computed by %(clause)s")
        return Check("pass", text, params, "/amount")
    if amount == computed.amount:
        return Check(
            "pass", gettext_noop("The amount equals the amount computed by %(clause)s"), params, "/amount"
        )
    if amount == captured:
        text = gettext_noop("The amount equals the amount paid, but %(clause)s computes %(computed)s")
        return Check("warn", text, params, "/amount")
    if amount > computed.amount:
        text = gettext_noop("%(amount)s is more than the %(computed)s that %(clause)s computes")
        return Check("warn", text, params, "/amount")
    return Check(
        "warn", gettext_noop("Partial refund: %(amount)s of the %(captured)s paid"), params, "/amount"
    )


def _owner(order: Record, context: Mapping[str, Any]) -> list[Check]:
    """Whether the order is the case's customer's. An id decides; a name alone can only raise a doubt."""
    customer, asked = order["customer"], context.get("customer") or {}
    name = str(customer["latin_name"] or customer["name"])
    params = {
        "order": str(order["id"]),
        "owner": name,
        "customer": str(asked.get("name") or asked.get("id") or ""),
    }
    found = []
    if asked.get("id"):
        same = asked["id"] == customer["id"]
        text = (
            gettext_noop("The order belongs to this case's customer, %(owner)s")
            if same
            else gettext_noop("Order %(order)s belongs to %(owner)s, but this case is about %(customer)s")
        )
        found.append(Check("pass" if same else "fail", text, params, "/order_id"))
    elif asked.get("name"):
        names = {str(customer[key]).casefold() for key in ("name", "latin_name")}
        same = str(asked["name"]).casefold().strip() in names
        text = (
            gettext_noop("The order belongs to this case's customer, %(owner)s")
            if same
            else gettext_noop("Order %(order)s belongs to %(owner)s, but this case is about %(customer)s")
        )
        found.append(Check("pass" if same else "warn", text, params, "/order_id"))
    if context.get("order_id") and context["order_id"] != order["id"]:
        text = gettext_noop("This case is about order %(case)s, the refund is for %(order)s")
        found.append(Check("warn", text, {**params, "case": str(context["order_id"])}, "/order_id"))
    return found


def _delivery(order: Record, args: Args, now: datetime) -> list[Check]:
    if order["status"] == "cancelled":
        return [Check("pass", gettext_noop("The order was cancelled"))]
    days = policy.days_since(order["delivered_at"], now)
    if days is None:
        text = gettext_noop("Not delivered yet (%(status)s): %(clause)s asks for a carrier case first")
        return [Check("warn", text, {"status": str(order["status"]), "clause": "RP-4 §5.1"})]
    reason = policy.classify(str(args.get("reason") or ""))
    limits = {"damaged": policy.DAMAGED_DAYS, "wrong_item": policy.DAMAGED_DAYS}
    limit = limits.get(reason, policy.CHANGED_MIND_DAYS)
    params = {"days": str(days), "limit": str(limit)}
    if days > limit:
        text = gettext_noop("Delivered %(days)s days ago, outside the %(limit)s days of the policy")
        return [Check("warn", text, params)]
    recent = {
        0: gettext_noop("Delivered today, within the %(limit)s days of the policy"),
        1: gettext_noop("Delivered yesterday, within the %(limit)s days of the policy"),
    }
    text = gettext_noop("Delivered %(days)s days ago, within the %(limit)s days of the policy")
    return [Check("pass", recent.get(days, text), params)]


def _earlier(order: Record, mine: Sequence[Record], theirs: Sequence[Record], now: datetime) -> list[Check]:
    """What has been refunded before: for this order, and for its customer elsewhere."""
    found = []
    currency = str(order["currency"])
    refunded = Decimal(order["refunded"])
    if refunded > 0:
        text = gettext_noop("%(amount)s has been refunded for this order before")
        found.append(
            Check("warn", text, {"amount": policy.money(refunded, currency), "count": str(len(mine))})
        )
    else:
        found.append(Check("pass", gettext_noop("Nothing has been refunded for this order")))
    others = [
        row
        for row in theirs
        if row["order_id"] != order["id"] and (policy.days_since(row["created_at"], now) or 0) <= RECENT_DAYS
    ]
    if others:
        text = gettext_noop("This customer had other refunds in the last %(days)s days: %(orders)s")
        orders = ", ".join(sorted({str(row["order_id"]) for row in others})[:MANY_SHOWN])
        found.append(Check("warn", text, {"days": str(RECENT_DAYS), "orders": orders}))
    return found

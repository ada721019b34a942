"""What the demo model says about orders and refunds. Whatever it claims comes from a tool's result. Pure."""

from __future__ import annotations

from decimal import Decimal

from agents.refunds import policy
from agents.refunds.demo_reading import Language, Outcome, Wanted
from agents.refunds.demo_turn import Call, Record, Turn
from agents.refunds.demo_words import say


def conclusion(turn: Turn, wanted: Wanted) -> str:
    """One sentence about one order: what really happened."""
    language, order_id = turn.language, wanted.order_id
    order = turn.data("lookup_order", order_id)
    if order is None:
        return say(language, "unreadable", order=order_id)
    if "error" in order:
        return say(language, "unknown_order", order=order_id)
    if calls := turn.of("issue_refund", order_id):
        return tell(language, calls[-1], order)
    if turn.request.intent == "info":
        return describe(language, order)
    return _why_not(turn, wanted, order)


def _why_not(turn: Turn, wanted: Wanted, order: Record) -> str:
    language, order_id = turn.language, wanted.order_id
    if Decimal(str(order.get("refundable", "0"))) <= 0:
        return say(language, "nothing_left", order=order_id)
    computed = turn.data("compute_refund", order_id)
    if computed is None:
        return say(language, "unreadable", order=order_id)
    if "error" in computed:
        return say(language, "bad_amount", order=order_id, why=str(computed.get("message", "")))
    if computed.get("eligible") is False:
        if not turn.asked_about_doubts:
            return say(language, "not_allowed", order=order_id, why=str(computed.get("explanation", "")))
        if turn.answer is None:
            return say(language, "staff_silent", order=order_id)
        return say(language, "staff_no", order=order_id, answer=turn.answer)
    return say(language, "no_tool", order=order_id)


def tell(language: Language, call: Call, order: Record | None) -> str:
    """How one refund call ended, in the words of the situation."""
    outcome, order_id = call.outcome, str(call.args.get("order_id", ""))
    if outcome.kind == "paid":
        return _tell_paid(language, call, outcome, order)
    if outcome.kind == "rejected" and outcome.text:
        return say(language, "rejected_why", order=order_id, why=outcome.text)
    return say(language, outcome.kind, order=order_id, why=outcome.text)


def _tell_paid(language: Language, call: Call, outcome: Outcome, order: Record | None) -> str:
    currency, order_id = str(call.args.get("currency", "")), str(call.args.get("order_id", ""))
    last4 = str(((order or {}).get("payment") or {}).get("last4", ""))
    amount = money(outcome.amount, currency) if outcome.amount is not None else currency
    if not last4 or not outcome.reference:
        return say(language, "paid_plain", order=order_id, amount=amount)
    return say(
        language,
        "paid_edited" if outcome.edited else "paid",
        order=order_id,
        amount=amount,
        last4=last4,
        reference=outcome.reference,
        proposed=money(call.args.get("amount", 0), currency),
    )


def describe(language: Language, order: Record) -> str:
    customer = order.get("customer") or {}
    title = "title_zh" if language == "zh" else "title"
    return say(
        language,
        "info",
        order=str(order["id"]),
        items=", ".join(str(item.get(title) or item.get("title")) for item in order.get("items", [])),
        customer=str(customer.get("name", "")),
        paid=money(order["captured"], order["currency"]),
        refunded=money(order["refunded"], order["currency"]),
        status=str(order["status"]),
    )


def found(turn: Turn, wanted: Wanted) -> str:
    order = turn.data("lookup_order", wanted.order_id)
    if order and "error" not in order:
        return describe(turn.language, order)
    return say(turn.language, "unknown_order" if order else "unreadable", order=wanted.order_id)


def money(amount: object, currency: object) -> str:
    return policy.money(Decimal(str(amount)), str(currency))

"""The refund agent's tools. Imported by workers only: LangChain is heavy.

Reads and the question are built here. The write is only a pair of functions: `agents.gate` wraps them into a tool that
carries the approval gate and the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from agents.catalogue import all_tools
from agents.refunds import policy
from agents.refunds.http_shop import HttpShop
from agents.refunds.ports import Record, Shop, receipt

type Send = Callable[[dict[str, Any], str, float], Record]
"""(validated arguments, idempotency key, seconds in all) -> result. Raises `Refused` or `Ambiguous`."""
type Lookup = Callable[[str], Record | None]
"""key -> the result the shop knows of it, or None. Raises `Ambiguous`."""


connect = HttpShop
"""COUNTERSEAL_SHOP_URL -> what the builders and senders below get."""


def read_tools(shop: Shop) -> list[BaseTool]:
    return [TOOL_BUILDERS[name](shop) for name in ("lookup_order", "read_policy", "compute_refund")]


def ask_tool() -> BaseTool:
    return _ask_staff(None)


def issue_refund_sender(shop: Shop) -> tuple[Send, Lookup]:
    def send(args: dict[str, Any], key: str, timeout: float) -> Record:
        """`customer_note` stays here: it is for the answer, not for the payment system."""
        amount: Decimal = args["amount"]
        body = {
            "order_id": args["order_id"],
            "amount": policy.plain(amount, args["currency"]),
            "currency": args["currency"],
            "reason": args.get("reason", ""),
        }
        return receipt(shop.refund(body, key, timeout))

    def lookup(key: str) -> Record | None:
        found = shop.refund_by_key(key)
        return receipt(found) if found else None

    return send, lookup


def _lookup_order(shop: Shop) -> BaseTool:
    def lookup_order(order_id: str) -> str:
        order = shop.order(order_id)
        if order is None:
            return _text(
                {"error": "unknown_order", "order_id": order_id, "message": "There is no such order."}
            )
        refunds = [
            receipt(row) | {"created_at": row["created_at"]} for row in shop.refunds(order_id=order_id)
        ]
        return _text(
            order | {"refunds": refunds, "days_since_delivery": policy.days_since(order["delivered_at"])}
        )

    return _tool(lookup_order)


def _read_policy(shop: Shop) -> BaseTool:
    def read_policy(topic: str = "", policy_id: str = "") -> str:
        policies = shop.policies()
        if policy_id:
            policies = [entry for entry in policies if entry["id"].casefold() == policy_id.casefold().strip()]
        return _text({"policies": _about(policies, topic), "topic": topic})

    return _tool(read_policy)


def _about(policies: list[Record], topic: str) -> list[Record]:
    """The clauses that share most words with the topic; all of them if none does or nothing was asked for."""
    words = set(re.findall(r"\w{4,}", topic.casefold().replace("_", " ")))

    def score(clause: Record) -> int:
        return sum(word in f"{clause['title']} {clause['text']}".casefold() for word in words)

    best = max((score(clause) for entry in policies for clause in entry["clauses"]), default=0)
    found = [{**e, "clauses": [c for c in e["clauses"] if score(c) == best]} for e in policies]
    return [entry for entry in found if entry["clauses"]]


def _compute_refund(shop: Shop) -> BaseTool:
    def compute_refund(
        order_id: str,
        reason: policy.Reason = "other",
        percent: Decimal | None = None,
        amount: Decimal | None = None,
    ) -> str:
        order = shop.order(order_id)
        if order is None:
            return _text(
                {"error": "unknown_order", "order_id": order_id, "message": "There is no such order."}
            )
        try:
            result = policy.compute(order, reason, percent=percent, amount=amount)
        except policy.BadAmount as error:
            return _text({"error": "bad_amount", "order_id": order_id, "message": str(error)})
        return _text(
            {
                "order_id": order_id,
                "currency": result.currency,
                "amount": policy.plain(result.amount, result.currency),
                "eligible": result.eligible,
                "clause": result.clause,
                "percent": f"{result.percent:f}",
                "captured": order["captured"],
                "refunded": order["refunded"],
                "refundable": order["refundable"],
                "explanation": result.explanation,
            }
        )

    return _tool(compute_refund)


def _ask_staff(_: Shop | None) -> BaseTool:
    def ask_staff(question: str) -> str:
        # A person answers in place of the tool. If this runs, nobody was asked, and that must not look like an answer.
        raise RuntimeError(
            "ask_staff was run, but only a person can answer it: is it listed in human_in_the_loop?"
        )

    return _tool(ask_staff)


def _tool(function: Callable[..., str]) -> BaseTool:
    facts = all_tools()[function.__name__]
    return StructuredTool.from_function(
        function, name=facts.name, description=facts.description, args_schema=facts.args
    )


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


TOOL_BUILDERS: Mapping[str, Callable[[Shop], BaseTool]] = {
    "lookup_order": _lookup_order,
    "read_policy": _read_policy,
    "compute_refund": _compute_refund,
    "ask_staff": _ask_staff,
}
SENDERS: Mapping[str, Callable[[Shop], tuple[Send, Lookup]]] = {"issue_refund": issue_refund_sender}


def emulated() -> Shop:
    """The house in memory, with the orders that examples name: for trials."""
    from agents.refunds.memory import MemoryShop, sample_order  # noqa: PLC0415 - only trials need it

    return MemoryShop([sample_order(), sample_order("A-20877", "240.00"), sample_order("A-20925", "3460.00")])

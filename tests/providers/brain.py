"""The refund agent's model, scripted: it goes by the conversation it received, as a real one does."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from tests.providers.loopback import Brain, Result, Say, Turn

ORDER = re.compile(r"[A-Z]-\d{5}")
ASKED = re.compile(r"refund (\d+(?:\.\d+)?) of")


def refund_agent(turn: Turn) -> Say:
    """Look up, read the policy, compute, pay, then repeat what the results said. Calls for several orders are parallel."""
    orders = list(dict.fromkeys(ORDER.findall(turn.message)))
    if not orders:
        return _ask(turn)
    if not turn.of("lookup_order"):
        return Say(
            f"I will look {_joined(orders)} up.",
            tuple(("lookup_order", {"order_id": order}) for order in orders),
        )
    if not turn.of("read_policy"):
        return Say("I will read the policy.", (("read_policy", {"topic": "damaged on arrival"}),))
    if not turn.of("compute_refund"):
        return Say("I will compute the amount.", tuple(_compute(order, turn.message) for order in orders))
    if not (paid := turn.of("issue_refund")):
        return Say(
            "I will ask for the refund now.", tuple(_refund(found) for found in turn.of("compute_refund"))
        )
    return Say("This is what happened: " + " | ".join(result.text for result in paid))


def script(*says: Say) -> Brain:
    """The same for every conversation: one `Say` per answer that is due, the last one for all after."""

    def brain(turn: Turn) -> Say:
        due = 0
        results = len(turn.results)
        while due < len(says) - 1 and results >= len(says[due].calls) > 0:
            results -= len(says[due].calls)
            due += 1
        return says[due]

    return brain


def refund(order_id: str, amount: Any, currency: str = "CNY", **more: Any) -> tuple[str, dict[str, Any]]:
    return "issue_refund", {"order_id": order_id, "amount": amount, "currency": currency, **more}


def _ask(turn: Turn) -> Say:
    answers = turn.of("ask_staff")
    if not answers:
        return Say("I have to ask a colleague.", (("ask_staff", {"question": "Which order is it?"}),))
    return Say(f"A colleague said: {answers[0].text}")


def _compute(order_id: str, message: str) -> tuple[str, dict[str, Any]]:
    asked = ASKED.search(message)
    amount = {"amount": _plain(asked[1])} if asked else {}
    return "compute_refund", {"order_id": order_id, "reason": "damaged", **amount}


def _refund(computed: Result) -> tuple[str, dict[str, Any]]:
    found = json.loads(computed.text)
    return refund(
        found["order_id"],
        _plain(found["amount"]),
        found["currency"],
        reason=f"Clause {found['clause']}",
        customer_note="The money is on its way.",
    )


def _plain(amount: str) -> int | float:
    number = Decimal(amount)
    return int(number) if number == int(number) else float(number)


def _joined(orders: list[str]) -> str:
    return " and ".join(orders)

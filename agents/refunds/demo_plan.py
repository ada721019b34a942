"""What the demo model does next: one step of a turn from everything before it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from agents.refunds import demo_reading as reading
from agents.refunds import demo_telling as telling
from agents.refunds import policy
from agents.refunds.demo_reading import Language, Wanted
from agents.refunds.demo_turn import Record, Turn
from agents.refunds.demo_words import joined, reason_words, say

MAX_READS = 2  # a read that failed is tried once more
QUOTED = 300  # characters of a message that are repeated in a question

type Proposal = tuple[str, Record]
"""(tool, arguments)"""


@dataclass
class Reply:
    """What the model says and proposes next."""

    text: str
    calls: list[Proposal] = field(default_factory=list)


def reply_to(turn: Turn) -> Reply:
    """The next step of the turn."""
    match turn.request.intent:
        case "thanks":
            return Reply(say(turn.language, "thanks"))
        case "status":
            return _tell_status(turn)
        case "unclear" if not turn.orders:
            return _ask_meaning(turn)
        case _ if not turn.orders:
            return _ask_order(turn)
    for step in (_look_up, _read_policy, _compute, _ask_about_doubts, _issue):
        if reply := step(turn):
            return reply
    return Reply("\n".join(telling.conclusion(turn, wanted) for wanted in turn.orders))


def _ask_meaning(turn: Turn) -> Reply:
    if not turn.of("ask_staff") and turn.has("ask_staff"):
        return _question(turn, "unclear", say(turn.language, "unclear_question", text=turn.text[:QUOTED]))
    if turn.answer is None:
        return Reply(say(turn.language, "no_answer"))
    return Reply(say(turn.language, "no_meaning", answer=turn.answer))


def _ask_order(turn: Turn) -> Reply:
    if not turn.of("ask_staff") and turn.has("ask_staff"):
        return _question(turn, "which", say(turn.language, "which_question", text=turn.text[:QUOTED]))
    return Reply(say(turn.language, "no_order"))


def _question(turn: Turn, why: str, question: str) -> Reply:
    return Reply(say(turn.language, why), [("ask_staff", {"question": question})])


def _look_up(turn: Turn) -> Reply | None:
    missing = [
        wanted.order_id
        for wanted in turn.orders
        if turn.data("lookup_order", wanted.order_id) is None
        and len(turn.of("lookup_order", wanted.order_id)) < MAX_READS
    ]
    if not missing or not turn.has("lookup_order"):
        return None
    text = say(turn.language, "look", orders=joined(turn.language, missing))
    return Reply(text, [("lookup_order", {"order_id": order_id}) for order_id in missing])


def _open(turn: Turn) -> list[tuple[Wanted, Record]]:
    """Orders that a refund is wanted for, that exist, and that have something left to refund."""
    if turn.request.intent == "info":
        return []
    found = [(wanted, turn.data("lookup_order", wanted.order_id)) for wanted in turn.orders]
    return [
        (wanted, order)
        for wanted, order in found
        if order and "error" not in order and Decimal(str(order.get("refundable", "0"))) > 0
    ]


def _read_policy(turn: Turn) -> Reply | None:
    if not _open(turn) or turn.of("read_policy") or not turn.has("read_policy"):
        return None
    topic = reason_words("en", turn.reason)
    return Reply(say(turn.language, "policy"), [("read_policy", {"topic": topic})])


def _compute(turn: Turn) -> Reply | None:
    missing = [
        wanted
        for wanted, _ in _open(turn)
        if turn.data("compute_refund", wanted.order_id) is None
        and len(turn.of("compute_refund", wanted.order_id)) < MAX_READS
    ]
    if not missing or not turn.has("compute_refund"):
        return None
    text = say(
        turn.language, "compute", orders=joined(turn.language, [wanted.order_id for wanted in missing])
    )
    return Reply(text, [("compute_refund", _wish(wanted, turn.reason)) for wanted in missing])


def _wish(wanted: Wanted, reason: policy.Reason) -> Record:
    args: Record = {"order_id": wanted.order_id, "reason": reason}
    if wanted.amount is not None:
        args["amount"] = _number(wanted.amount)
    elif wanted.percent is not None:
        args["percent"] = _number(wanted.percent)
    return args


def _doubtful(turn: Turn) -> list[tuple[Wanted, Record, Record]]:
    """Orders that the policy does not simply let through, with the computation that says why."""
    found = [(wanted, order, turn.data("compute_refund", wanted.order_id)) for wanted, order in _open(turn)]
    return [(w, o, computed) for w, o, computed in found if computed and computed.get("eligible") is False]


def _ask_about_doubts(turn: Turn) -> Reply | None:
    doubtful = _doubtful(turn)
    if not doubtful or turn.asked_about_doubts or not turn.has("ask_staff"):
        return None
    doubts = " ".join(_doubt(turn.language, order, computed) for _, order, computed in doubtful)
    return _question(turn, "doubt", say(turn.language, "doubt_question", doubts=doubts))


def _doubt(language: Language, order: Record, computed: Record) -> str:
    if not order.get("delivered_at"):
        paid = telling.money(order["captured"], order["currency"])
        return say(
            language, "doubt_undelivered", order=str(order["id"]), paid=paid, status=str(order["status"])
        )
    return say(language, "doubt_other", order=str(order["id"]), why=str(computed.get("explanation", "")))


def _issue(turn: Turn) -> Reply | None:
    """All refunds of the turn at once, and only once: whatever came of a call, it is not made again unasked."""
    if turn.of("issue_refund") or not turn.has("issue_refund"):
        return None
    agreed = _agreed(turn)
    ready = [(wanted, order, _amount_for(turn, wanted, order)) for wanted, order in _open(turn)]
    calls, said = [], []
    for _, order, amount in ready:
        if amount is not None and amount > 0:
            calls.append(("issue_refund", _refund_args(turn, order, amount)))
            said.append(f"{telling.money(amount, order['currency'])} ({order['id']})")
    if not calls:
        return None
    key = "issue_anyway" if agreed and _doubtful(turn) else "issue"
    return Reply(say(turn.language, key, refunds=joined(turn.language, said)), calls)


def _agreed(turn: Turn) -> bool:
    """Whether a colleague answered the doubts, and not with a no."""
    return turn.asked_about_doubts and turn.answer is not None and not reading.is_no(turn.answer)


def _amount_for(turn: Turn, wanted: Wanted, order: Record) -> Decimal | None:
    """What to propose for an order; None: nothing."""
    refundable = Decimal(str(order["refundable"]))
    computed = turn.data("compute_refund", wanted.order_id)
    if computed is None:
        if turn.has("compute_refund"):
            return None  # it could not be computed: say so rather than guess
        return min(wanted.amount or refundable, refundable)
    if "error" in computed:
        return None
    if computed.get("eligible") is False:
        asked = (reading.amount_in(turn.answer or "") or wanted.amount) if _agreed(turn) else Decimal(0)
        return min(asked or refundable, refundable) if _agreed(turn) else None
    return Decimal(str(computed["amount"]))


def _refund_args(turn: Turn, order: Record, amount: Decimal) -> Record:
    currency, order_id = str(order["currency"]), str(order["id"])
    computed = turn.data("compute_refund", order_id.upper()) or {}
    reason = reason_words(turn.language, turn.reason)
    clause = f" ({computed['clause']})" if computed.get("clause") else ""
    last4 = str((order.get("payment") or {}).get("last4", ""))
    return {
        "order_id": order_id,
        "amount": _number(amount),
        "currency": currency,
        "reason": f"{reason}{clause}",
        # Without the amount: a reviewer may change it
        "customer_note": say(
            turn.language, "note", amount=telling.money(amount, currency), order=order_id, last4=last4
        ),
    }


def _tell_status(turn: Turn) -> Reply:
    """ "Did you refund it?": from the record of this conversation, else from the order itself."""
    asked = {wanted.order_id for wanted in turn.orders}
    orders = {
        call.order_id: call.data for call in (*turn.earlier, *turn.calls) if call.name == "lookup_order"
    }
    refunds = {call.order_id: call for call in turn.earlier if call.name == "issue_refund"}
    told = [
        telling.tell(turn.language, call, orders.get(order_id))
        for order_id, call in refunds.items()
        if not asked or order_id in asked
    ]
    if told:
        return Reply("\n".join(told))
    if turn.orders:
        return _look_up(turn) or Reply("\n".join(telling.found(turn, wanted) for wanted in turn.orders))
    return Reply(say(turn.language, "status_none"))


def _number(amount: Decimal) -> int | float:
    """A JSON number, as a provider would send it."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)

"""Refund arithmetic: pure, Decimal, no I/O. The clauses it applies are those of the shop's policy RP-4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, Literal, get_args

type Order = Mapping[str, Any]
Reason = Literal["damaged", "wrong_item", "not_delivered", "changed_mind", "late", "other"]
REASONS: tuple[Reason, ...] = get_args(Reason)

# ISO 4217 exponents that differ from 2; an unknown currency counts as 2, the shop has the last word
_EXPONENTS = {
    "JPY": 0,
    "KRW": 0,
    "CLP": 0,
    "VND": 0,
    "ISK": 0,
    "KWD": 3,
    "BHD": 3,
    "JOD": 3,
    "OMR": 3,
    "TND": 3,
}

DAMAGED_DAYS = 14
CHANGED_MIND_DAYS = 30
RESTOCKING_PERCENT = Decimal(10)
LATE_DAYS = 10
LATE_PERCENT = Decimal(15)

# The first pattern that matches decides, so the specific ones come first.
_WORDS: tuple[tuple[Reason, str], ...] = (
    (
        "not_delivered",
        r"not\s+(?:been\s+)?(?:yet\s+)?(?:delivered|arrived?|received?)|never\s+(?:arrived|came|received|delivered)"
        r"|(?:did|has|have)(?:n[’']?t| not)\s+(?:yet\s+)?(?:arrived?|received?|come|been delivered)"
        r"|undelivered|lost in (?:the )?(?:post|mail|transit)|没有?收到|未收到|没到|未送达|丢件|丢失",
    ),
    (
        "damaged",
        r"broken|broke\b|damag|crack|shatter|torn|defect|faulty|scratch|smashed|dead on arrival"
        r"|破|坏|损|裂|碎|瑕疵|故障",
    ),
    (
        "wrong_item",
        r"wrong (?:item|colou?r|size|model|product)|not what (?:i|was) ordered|发错|错发|货不对|颜色不对|尺寸不对",
    ),
    (
        "changed_mind",
        r"changed (?:my|his|her|their|the)? ?mind|no longer (?:want|need)|don[’']?t (?:want|need)"
        r"|unopened|不想要|不要了|不需要|改变主意|无理由|未拆封",
    ),
    ("late", r"\blate\b|delay|too slow|overdue|迟|延误|太慢|晚到"),
)


class BadAmount(ValueError):
    """The value is not an amount this order can be refunded by; the text says why."""


@dataclass(frozen=True)
class Computation:
    """What the policy allows for one order and reason."""

    amount: Decimal
    currency: str
    clause: str  # "RP-4 §3.2"
    percent: Decimal
    explanation: str
    eligible: bool = True  # False: the policy asks for something else first; amount is then 0


def decimals(currency: str) -> int:
    """Number of decimals of a currency's smallest unit."""
    return _EXPONENTS.get(currency.upper(), 2)


def fits(amount: Decimal, currency: str) -> bool:
    """Whether the currency can express the amount exactly."""
    exponent = amount.normalize().as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= decimals(currency)


def rounded(amount: Decimal, currency: str) -> Decimal:
    """To the currency's smallest unit, half to even."""
    return amount.quantize(Decimal(1).scaleb(-decimals(currency)), rounding=ROUND_HALF_EVEN)


def plain(amount: Decimal, currency: str) -> str:
    """Decimal string for the wire: "1280.00". An amount the currency cannot express keeps all its digits."""
    return f"{rounded(amount, currency) if fits(amount, currency) else amount:f}"


def money(amount: Decimal, currency: str) -> str:
    """For people: "CNY 1,280.00"."""
    return f"{currency} {rounded(amount, currency) if fits(amount, currency) else amount:,f}"


def number(value: object) -> Decimal:
    """A finite Decimal from a JSON number. Booleans and text are refused: Decimal("１５００") and Decimal("1_000") exist."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise BadAmount("must be a JSON number")
    try:
        result = Decimal(str(value))
    except InvalidOperation as error:  # pragma: no cover - str() of a number always parses
        raise BadAmount("must be a JSON number") from error
    if not result.is_finite():
        raise BadAmount("must be a finite number")
    return result


def classify(text: str) -> Reason:
    """The reason a sentence gives, in English or Chinese. "other" if none is recognised."""
    for reason, pattern in _WORDS:
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    return "other"


def days_since(moment: str | None, now: datetime | None = None) -> int | None:
    """Calendar days (UTC) since an ISO time; None stays None."""
    if not moment:
        return None
    return ((now or datetime.now(UTC)).date() - datetime.fromisoformat(moment).astimezone(UTC).date()).days


def compute(
    order: Order,
    reason: Reason,
    *,
    percent: Decimal | None = None,
    amount: Decimal | None = None,
    now: datetime | None = None,
) -> Computation:
    """The refund this order may get. `percent` (0 to 100) or `amount` ask for less than the policy's maximum.

    Raises `BadAmount` for a percentage or amount out of range.
    """
    currency = str(order["currency"])
    refundable = Decimal(order["refundable"])
    clause, allowed, words = _clause(order, reason, now)
    if allowed == 0 or refundable <= 0:
        if refundable <= 0:
            clause, words = "RP-4 §2.1", "Everything that was paid has been refunded already."
        return Computation(Decimal(0), currency, clause, Decimal(0), words, eligible=False)
    most = min(rounded(Decimal(order["captured"]) * allowed / 100, currency), refundable)
    if amount is not None:
        if amount <= 0 or not fits(amount, currency):
            raise BadAmount(f"{amount} is not an amount in {currency}")
        if amount > refundable:
            raise BadAmount(
                f"{money(amount, currency)} is more than the {money(refundable, currency)} left to refund"
            )
        words = f"{words} {money(amount, currency)} was asked for; the policy allows up to {money(most, currency)}."
        return Computation(min(amount, most), currency, clause, allowed, words)
    if percent is not None:
        if not 0 < percent <= 100:
            raise BadAmount("percent must be above 0 and at most 100")
        part = min(rounded(Decimal(order["captured"]) * percent / 100, currency), most)
        return Computation(
            part, currency, clause, percent, f"{words} {percent:f}% of the amount paid was asked for."
        )
    return Computation(most, currency, clause, allowed, words)


def _clause(order: Order, reason: Reason, now: datetime | None) -> tuple[str, Decimal, str]:
    """(clause, percent of the amount paid that it allows, why)."""
    days = days_since(order.get("delivered_at"), now)
    if order.get("status") == "cancelled":
        return "RP-4 §2.3", Decimal(100), "The order was cancelled: everything not yet refunded is returned."
    if days is None:
        return "RP-4 §5.1", Decimal(0), "Not delivered yet: open a case with the carrier before any refund."
    when = f"Delivered {days} day{'' if days == 1 else 's'} ago."
    if reason in ("damaged", "wrong_item"):
        clause = "RP-4 §3.2" if reason == "damaged" else "RP-4 §3.1"
        if days <= DAMAGED_DAYS:
            return clause, Decimal(100), f"{when} Reported within {DAMAGED_DAYS} days: full refund."
        return clause, Decimal(0), f"{when} Reported after {DAMAGED_DAYS} days: a specialist must look."
    if reason == "changed_mind":
        if days <= CHANGED_MIND_DAYS:
            share = 100 - RESTOCKING_PERCENT
            return "RP-4 §3.3", share, f"{when} Changed mind: minus {RESTOCKING_PERCENT:f}% restocking."
        return (
            "RP-4 §3.3",
            Decimal(0),
            f"{when} After {CHANGED_MIND_DAYS} days unopened goods are not taken back.",
        )
    if reason == "late":
        return (
            "RP-4 §4.2",
            LATE_PERCENT,
            f"{when} Late delivery: {LATE_PERCENT:f}% of the amount paid as a gesture.",
        )
    if reason == "not_delivered":
        return (
            "RP-4 §5.2",
            Decimal(0),
            f"{when} The carrier says it was delivered: check the proof of delivery first.",
        )
    return "RP-4 §4.1", Decimal(100), f"{when} No listed reason: goodwill, at the reviewer's judgement."

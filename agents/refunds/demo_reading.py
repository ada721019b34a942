"""How the demo model reads: requests in English or Chinese, answers of colleagues, results of its own calls. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from agents.refunds.policy import Reason, classify

Language = Literal["en", "zh"]
Intent = Literal["refund", "status", "info", "thanks", "unclear"]
OutcomeKind = Literal[
    "paid",
    "rejected",
    "expired",
    "withdrawn",
    "superseded",
    "elsewhere",
    "unknown",
    "limit",
    "refused",
    "waiting",
]

_ORDER = re.compile(r"(?<![A-Za-z0-9])A-[0-9]{1,12}(?![0-9])", re.IGNORECASE)
_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?"
_CURRENCY = r"CNY|RMB|USD|EUR|GBP|JPY|BRL|AED|R\$|US\$|[¥$€£]"
_AMOUNT = re.compile(
    rf"(?:{_CURRENCY})\s*(?P<marked>{_NUMBER})"
    rf"|(?P<unit>{_NUMBER})\s*(?:{_CURRENCY}|元|块|yuan|dollars?|euros?|pounds?|yen|reais|dirhams?)"
    rf"|(?:refund(?:ing)?|pay back|退款|退还|退回|退|金额为?)\s*(?:only|just|me|them|him|her|about|the customer|共|金额)?"
    rf"\s*(?P<verb>{_NUMBER})(?!\s*(?:%|％|percent|items?|orders?|days?|天|件|个|单))"
    rf"|(?P<of>{_NUMBER})\s+(?:of|from|for|on)\s+(?:the\s+)?(?:order\s+)?(?=A-[0-9])",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)\s*(?:%|percent)", re.IGNORECASE)
_HALF = re.compile(r"\bhalf\b|一半|半价", re.IGNORECASE)

_REFUND = re.compile(
    r"refund|money back|reimburs|pay (?:it |them |me )?back|退款|退钱|退还|退货|全额|返还|退一?下|退给|(?<!不)退[^了]",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"\b(?:did|have|has|had|was|were|is|are)\b[^.!]*\b(?:refund|paid|pay|money|done|approved|happen)[^.!]*\?"
    r"|what happened|what is the status|any (?:news|update)|where is (?:my|the) (?:money|refund)"
    r"|(?:退款?|办|处理|到账)[^。!]*(?:了吗|了没|没有|吗|成功)|退了吗|进度|怎么样了|结果如何",
    re.IGNORECASE,
)
_INFO = re.compile(
    r"look(?:ing)? up|check|show|find|tell me about|status of|what (?:is|was) in|查询|查一下|查看|看一下",
    re.I,
)
_THANKS = re.compile(
    r"^\W*(?:(?:thanks?|thank you|thx|great|perfect|ok|okay|hello|hi|good (?:morning|day))\b|谢谢|好的|你好|多谢)",
    re.I,
)
_AGAIN = re.compile(
    r"\b(?:again|retry|try|do it|go ahead|same order|that order|it)\b|再|重新|重试|继续|这个订单|该订单", re.I
)
_NO = re.compile(
    r"^\W*(?:no|nope|don[’']?t|do not|never|stop|wait|not yet|reject|deny|decline)\b"
    r"|\bdo not refund|\bdon[’']?t refund|^\W*(?:不|否|别|先不|等)|不要退|不予退|不退",
    re.IGNORECASE,
)
_CJK = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Wanted:
    """What is wanted for one order."""

    order_id: str
    amount: Decimal | None = None
    percent: Decimal | None = None


@dataclass(frozen=True)
class Request:
    """One message, read."""

    intent: Intent
    language: Language
    orders: tuple[Wanted, ...]
    reason: Reason


@dataclass(frozen=True)
class Outcome:
    """How one issue_refund call ended."""

    kind: OutcomeKind
    amount: Decimal | None = None  # what was really paid
    edited: bool = False
    reference: str = ""
    text: str = ""  # the reviewer's reason, or the shop's words


def language_of(text: str) -> Language:
    return "zh" if _CJK.search(text) else "en"


def read_request(text: str, known_orders: tuple[str, ...] = ()) -> Request:
    """`known_orders`: named earlier in the conversation; "do it again" means them."""
    plain = unicodedata.normalize("NFKC", text)
    orders = _wanted(plain)
    intent = _intent(plain, bool(orders), bool(known_orders))
    if not orders and intent in ("refund", "status", "info"):
        amount, percent = _amount(plain), _percent(plain)
        orders = tuple(Wanted(order_id, amount, percent) for order_id in known_orders)
    return Request(intent, language_of(plain), orders, classify(plain))


def order_ids(text: str) -> tuple[str, ...]:
    found = _ORDER.findall(unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(order_id.upper() for order_id in found))


def is_no(text: str) -> bool:
    """Whether a colleague's answer to "refund anyway?" is a no."""
    return bool(_NO.search(unicodedata.normalize("NFKC", text)))


def amount_in(text: str) -> Decimal | None:
    return _amount(unicodedata.normalize("NFKC", text))


def _intent(text: str, names_order: bool, knows_order: bool) -> Intent:
    asks_refund = bool(_REFUND.search(text))
    if _STATUS.search(text) and not re.search(
        r"\b(?:please|can you|could you) refund|^\W*refund|请[^。]*退", text, re.I
    ):
        return "status"
    if names_order:
        names_amount = bool(_AMOUNT.search(_ORDER.sub("", text)) or _percent(text))
        return "refund" if asks_refund or names_amount or classify(text) != "other" else "info"
    if asks_refund:
        return "refund"
    if knows_order and (_AGAIN.search(text) or _AMOUNT.search(text)) and not _THANKS.search(text):
        return "refund"
    return "thanks" if _THANKS.search(text) else "unclear"


def _wanted(text: str) -> tuple[Wanted, ...]:
    """Orders in the order they are named; an amount belongs to the order it is "of", else to the one before it."""
    places = [(match.start(), match.group().upper()) for match in _ORDER.finditer(text)]
    found = {order_id: Wanted(order_id) for _, order_id in places}
    if not found:
        return ()
    blank = _ORDER.sub(
        lambda match: "A-" + "0" * (len(match.group()) - 2), text
    )  # same length, digits kept out of amounts
    for match in _AMOUNT.finditer(blank):
        value = _value(match)
        after = [order_id for at, order_id in places if at >= match.end()]
        before = [order_id for at, order_id in places if at < match.start()]
        owner = (
            after[0]
            if after and (match.group("of") or not before or _leads(blank, match.end(), places))
            else before[-1]
        )
        if value is not None and found[owner].amount is None:
            found[owner] = replace(found[owner], amount=value)
    percent = _percent(text)
    return tuple(wanted if wanted.amount else replace(wanted, percent=percent) for wanted in found.values())


def _leads(text: str, end: int, places: list[tuple[int, str]]) -> bool:
    """Whether an amount that ends here is followed by "of/for/from order A-1"."""
    return any(
        re.fullmatch(r"\s*(?:of|from|for|on)\s+(?:the\s+)?(?:order\s+)?", text[end:at], re.I)
        for at, _ in places
        if at >= end
    )


def _value(match: re.Match[str]) -> Decimal | None:
    number = next((part for part in match.groups() if part), None)
    value = Decimal(number.replace(",", "")) if number else None
    return value if value else None


def _amount(text: str) -> Decimal | None:
    match = _AMOUNT.search(_ORDER.sub("", text))
    return _value(match) if match else None


def _percent(text: str) -> Decimal | None:
    if match := _PERCENT.search(text):
        percent = Decimal(match.group(1))
        return percent if 0 < percent <= 100 else None
    return Decimal(50) if _HALF.search(text) else None


def read_json(text: str | None) -> dict[str, Any] | None:
    """The last JSON object in a tool's result, whatever stands before it."""
    if text is None:
        return None
    for match in re.finditer(r"(?:^|\n|\s)(\{)", text):
        try:
            value, end = json.JSONDecoder().raw_decode(text, match.start(1))
        except ValueError:
            continue
        if isinstance(value, dict) and not text[end:].strip():
            return value
    return None


# The first that matches decides. Sentences come from the application and from the write gate; none is taken for a
# success.
_ENDINGS: tuple[tuple[OutcomeKind, str], ...] = (
    ("expired", r"nobody decided|in time|expired|timed out waiting"),
    ("withdrawn", r"withdr[ae]w|stopped the run|cancell?ed by"),
    ("superseded", r"superseded|(?:was|is) replaced before"),
    ("elsewhere", r"elsewhere|taken care of this outside|handled outside"),
    ("rejected", r"reviewer rejected|\brejected\b"),
    ("unknown", r"outcome[^.]*(?:unknown|not known|unclear)|unknown outcome|nobody knows|still unknown"),
    ("limit", r"limit of [0-9]+ calls|call limit"),
)


def read_outcome(result: str | None, *, is_error: bool, proposed: Decimal | None) -> Outcome:
    """What the result of an issue_refund call says. Nothing but a success without doubt counts as paid."""
    if result is None:
        return Outcome("waiting")
    ran = _ran_instead(result)
    data = read_json(result)
    if (
        data is not None
        and not is_error
        and (data.get("refund_id") or data.get("reference") or data.get("amount"))
    ):
        amount = _decimal(data.get("amount")) or ran or proposed
        edited = ran is not None or (amount is not None and proposed is not None and amount != proposed)
        reference = str(data.get("refund_id") or data.get("reference") or "")
        return Outcome("paid", amount, edited, reference)
    for kind, pattern in _ENDINGS:
        if re.search(pattern, result, re.IGNORECASE):
            return Outcome(kind, text=_reason(result))
    return Outcome("refused" if is_error else "unknown", text=result)


def _ran_instead(result: str) -> Decimal | None:
    """The amount of a call that a reviewer edited, from LangChain's notice."""
    at = result.find("Executed instead:")
    start = result.find("{", at) if at >= 0 else -1
    if start < 0:
        return None
    try:
        args, _ = json.JSONDecoder().raw_decode(result, start)
    except ValueError:
        return None
    return _decimal(args.get("amount")) if isinstance(args, dict) else None


def _decimal(value: object) -> Decimal | None:
    text = str(value)
    return Decimal(text) if re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text) else None


def _reason(result: str) -> str:
    """What stands behind "Reason:", without the instruction to the model that follows it."""
    match = re.search(r"\bReason:\s*(.+?)\s*(?:\bDo not (?:propose|make)\b.*)?$", result, re.DOTALL)
    return match.group(1).strip() if match else ""

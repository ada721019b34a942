"""Amounts for people. Money is Decimal; a JSON number is read by its shortest text, never through a float's bits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from babel.numbers import UnknownCurrencyError, format_currency, get_currency_name

ISO_AMOUNT = re.compile(r"([A-Z]{3}) (-?[\d,]+(?:\.\d+)?)")
BABEL_LOCALES = {"zh-hans": "zh_Hans_CN", "en": "en"}


def decimal_of(value: Any) -> Decimal | None:
    """The exact number a JSON value spells; None if it spells none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def spoken(amount: Any, currency: str, language: str = "en") -> str:
    """ "CN¥1,280.00": unambiguous between currencies that share a sign. Falls back to plain text, never hides digits."""
    number = decimal_of(amount)
    if number is None or not _is_currency(currency):
        return f"{currency} {amount}".strip()
    locale = BABEL_LOCALES.get(language, "en")
    if number == round(number, 2):
        return format_currency(number, currency, locale=locale)
    return format_currency(number, currency, locale=locale, currency_digits=False, decimal_quantization=False)


def respoken(params: Mapping[str, Any], language: str = "en") -> dict[str, Any]:
    """Values of a sentence, those that are amounts ("CNY 1,280.00") written as everywhere else on the page."""
    return {name: _again(value, language) for name, value in params.items()}


def _again(value: Any, language: str) -> Any:
    found = ISO_AMOUNT.fullmatch(value) if isinstance(value, str) else None
    return spoken(found[2].replace(",", ""), found[1], language) if found else value


def _is_currency(currency: str) -> bool:
    try:
        get_currency_name(currency, locale="en")
    except (UnknownCurrencyError, ValueError):
        return False
    return len(currency) == 3 and currency.isascii() and currency.isupper()


def places(args: Mapping[str, Any], language: str = "en") -> dict[str, str]:
    """What a title template may use: every argument as text; `amount` with its currency, `currency` then empty."""
    found = {name: str(value) for name, value in args.items()}
    currency = args.get("currency")
    if isinstance(currency, str) and decimal_of(args.get("amount")) is not None:
        found |= {"amount": spoken(args["amount"], currency, language), "currency": ""}
    return found


class _Gaps(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"


def fill(template: str, args: Mapping[str, Any], language: str = "en") -> str:
    """ "Refund {currency} {amount}" -> "Refund CN¥1,280.00"."""
    return " ".join(template.format_map(_Gaps(places(args, language))).split())

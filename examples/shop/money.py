"""Money as whole minor units, and its decimal strings."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

EXPONENTS = {"JPY": 0, "CNY": 2, "USD": 2, "EUR": 2, "GBP": 2, "BRL": 2, "AED": 2, "KWD": 3}
MAX_TEXT = 20


class BadAmount(ValueError):
    """Not an amount; the text says why."""


def text(minor: int, currency: str) -> str:
    """128000 CNY -> "1280.00"."""
    return f"{Decimal(minor).scaleb(-EXPONENTS[currency]):f}"


def minor(value: object, currency: str) -> int:
    """"1280.00" CNY -> 128000. Only plain ASCII decimal strings. Raises `BadAmount`."""
    if not isinstance(value, str) or len(value) > MAX_TEXT or not value.isascii() or "_" in value or "e" in value.lower():
        raise BadAmount('amount must be a decimal string such as "12.50"')
    try:
        amount = Decimal(value)
    except InvalidOperation as error:
        raise BadAmount('amount must be a decimal string such as "12.50"') from error
    if not amount.is_finite():
        raise BadAmount("amount must be finite")
    units = amount.scaleb(EXPONENTS[currency])
    if units != units.to_integral_value():
        raise BadAmount(f"{currency} has {EXPONENTS[currency]} decimals")
    return int(units)

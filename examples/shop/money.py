"""Money as whole minor units, and its decimal strings."""

from __future__ import annotations

import re
from decimal import Decimal

EXPONENTS = {"JPY": 0, "CNY": 2, "USD": 2, "EUR": 2, "GBP": 2, "BRL": 2, "AED": 2, "KWD": 3}
PLAIN = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?", re.ASCII)


class BadAmount(ValueError):
    """Not an amount; the text says why."""


def text(minor: int, currency: str) -> str:
    """128000 CNY -> "1280.00"."""
    return f"{Decimal(minor).scaleb(-EXPONENTS[currency]):f}"


def minor(value: object, currency: str) -> int:
    """The text 1280.00 in CNY -> 128000. Only plain ASCII decimals. Raises `BadAmount`."""
    if not isinstance(value, str) or not PLAIN.fullmatch(value):
        raise BadAmount('amount must be a decimal string such as "12.50"')
    units = Decimal(value).scaleb(EXPONENTS[currency])
    if units != units.to_integral_value():
        raise BadAmount(f"{currency} has {EXPONENTS[currency]} decimals")
    return int(units)

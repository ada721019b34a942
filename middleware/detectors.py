"""Named detectors of personal data that need more than a pattern. Light and pure; JSON refers to them by name.

A detector takes a text and gives what it found: `text`, `start`, `end`. A new one is one more entry of `DETECTORS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypedDict


class Found(TypedDict):
    text: str
    start: int
    end: int


type Detect = Callable[[str], list[Found]]

_SSN = re.compile(r"(?<!\d)(\d{3})-(\d{2})-(\d{4})(?!\d)")
_CN_ID = re.compile(r"(?<!\d)\d{17}[\dXx](?!\d)")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_PHONE = re.compile(r"(?<![\d+])\+?\d(?:[\s().-]?\d){6,14}(?!\d)")
_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _matches(pattern: re.Pattern[str], text: str, valid: Callable[[re.Match[str]], bool]) -> list[Found]:
    def found() -> Iterator[Found]:
        for match in pattern.finditer(text):
            if valid(match):
                yield Found(text=match.group(0), start=match.start(), end=match.end())

    return list(found())


def us_ssn(text: str) -> list[Found]:
    """Social security numbers that were given out: not 000, 666 or 9xx in front, no part of zeros."""

    def valid(match: re.Match[str]) -> bool:
        area, group, serial = match.groups()
        return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"

    return _matches(_SSN, text, valid)


def cn_id_card(text: str) -> list[Found]:
    """Chinese identity numbers of 18 places, by their check digit."""

    def valid(match: re.Match[str]) -> bool:
        digits = match.group(0).upper()
        total = sum(int(digit) * weight for digit, weight in zip(digits[:17], _CN_WEIGHTS, strict=True))
        return digits[17] == "10X98765432"[total % 11]

    return _matches(_CN_ID, text, valid)


def iban(text: str) -> list[Found]:
    """Bank account numbers, by their check digits."""

    def valid(match: re.Match[str]) -> bool:
        number = match.group(0).replace(" ", "")
        turned = number[4:] + number[:4]
        return int("".join(str(int(place, 36)) for place in turned)) % 97 == 1

    return _matches(_IBAN, text, valid)


def phone(text: str) -> list[Found]:
    """Telephone numbers of 9 to 15 digits, unless they are part of a longer word such as an order number."""

    def valid(match: re.Match[str]) -> bool:
        before = text[match.start() - 1] if match.start() else " "
        digits = sum(place.isdigit() for place in match.group(0))
        return 9 <= digits <= 15 and not before.isalnum() and before not in "-_/"

    return _matches(_PHONE, text, valid)


DETECTORS: Mapping[str, Detect] = {one.__name__: one for one in (us_ssn, cn_id_card, iban, phone)}

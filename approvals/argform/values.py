"""Value -> the text a reviewer sees, and back."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from decimal import Decimal

from django.utils.translation import gettext as _

from approvals.argform.fields import Node
from approvals.argform.pointer import Json
from approvals.argform.schema import UNPRINTABLE

INTEGER = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)")
NUMBER = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?([eE][+-]?\d{1,3})?")


class InvalidText(ValueError):
    """The text does not fit the field."""


def show(node: Node) -> str:
    """The text in the field; parse() is its inverse."""
    if node.masked:
        return mask(node.value)
    return to_json(node.value) if node.kind == "json" else text_of(node.value)


def text_of(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, dict | list) else str(value)


def to_json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return json.dumps(value, indent=2) if UNPRINTABLE.search(text) else text


def mask(value: Json) -> str:
    text = text_of(value)
    if not text:
        return ""
    return "••••" + (text[-4:] if isinstance(value, str) and len(text) > 8 else "")


def parse(node: Node, text: str) -> Json:
    """Raises InvalidText with a sentence for the field."""
    if text == "" and node.nullable and node.kind not in ("text", "long"):
        return None
    match node.kind:
        case "json":
            return _parse_json(text)
        case "integer":
            return _in_64_bits(_parse_number(text, INTEGER, _("Enter a whole number.")))
        case "number" | "decimal":
            return _in_same_type(
                node, _parse_number(text, NUMBER, _("Enter a number, with a point for decimals."))
            )
        case "boolean":
            return _pick((True, False), text)
        case "enum":
            return _pick(node.choices, text)
    return text


def _parse_json(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError as error:
        raise InvalidText(_("This is not valid JSON: %(why)s") % {"why": error}) from error
    return value


def _parse_number(text: str, shape: re.Pattern[str], message: str) -> Decimal:
    """Full-width digits and commas are accepted. "1,5" is refused: nobody can know what it means."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if not shape.fullmatch(plain):
        raise InvalidText(message)
    return Decimal(plain.replace(",", ""))


def _in_same_type(node: Node, number: Decimal) -> Json:
    if isinstance(node.value, str) or (node.kind == "decimal" and node.value is None):
        return format(number, "f")  # the proposal spells it as text, so does the edit
    if isinstance(node.value, int) and number == number.to_integral_value():
        return _in_64_bits(number)
    if not math.isfinite(float(number)):
        raise InvalidText(_("Enter a smaller number."))
    return float(number)


def _in_64_bits(number: Decimal) -> int:
    """Larger ones cannot be stored with the conversation."""
    if not -(2**63) <= number < 2**63:
        raise InvalidText(_("Enter a smaller number."))
    return int(number)


def _pick(choices: tuple[Json, ...], text: str) -> Json:
    for choice in choices:
        if text_of(choice) == text:
            return choice
    raise InvalidText(_("Pick one of the listed values."))

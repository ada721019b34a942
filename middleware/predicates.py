"""Named rules: which proposed calls need a person. Light; pure in the arguments; JSON refers to them by name.

A rule in JSON: `{"use": "amount_over", "arg": "amount", "value": 1000}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, field_validator

from middleware.ports import Args, Judge, Verdict

# Not a union with Decimal: a rule is written as JSON and must come back from the database as the same bytes
Limit = StrictInt | Annotated[float, Field(strict=True, allow_inf_nan=False)]


class BadRule(ValueError):
    """The rule cannot be used as it is written; the text says why."""


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _None(_Options):
    pass


class AmountOver(_Options):
    arg: str = Field(min_length=1)
    value: Annotated[Limit, Field(ge=0)]


class AmountOverByCurrency(_Options):
    arg: str = Field(min_length=1)
    currency_arg: str = Field(min_length=1)
    limits: dict[str, Annotated[Limit, Field(ge=0)]] = Field(min_length=1)


class TextOutside(_Options):
    """`allow`: regular expressions; a text that matches one of them as a whole needs no person."""

    arg: str = Field(min_length=1)
    allow: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = Field(min_length=1)

    @field_validator("allow")
    @classmethod
    def _compile(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern} is no regular expression: {error}") from error
        return value


@dataclass(frozen=True)
class Predicate:
    """One named rule. `asks(options, args)`: whether a person must decide."""

    name: str
    options: type[_Options]
    asks: Callable[[Any, Args], bool]
    words: Callable[[Any], str]  # for reviewers
    gates: bool = True  # False: it never asks, so it cannot be the rule of a write


def plain_number(value: object) -> Decimal | None:
    """A finite JSON number as a Decimal, None for anything else: text, booleans, NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = Decimal(str(value))
    return number if number.is_finite() else None


def _over(options: AmountOver, args: Args) -> bool:
    amount = plain_number(args.get(options.arg))
    return amount is None or not Decimal(0) <= amount <= Decimal(str(options.value))


def _over_by_currency(options: AmountOverByCurrency, args: Args) -> bool:
    amount, currency = plain_number(args.get(options.arg)), args.get(options.currency_arg)
    limit = options.limits.get(currency) if isinstance(currency, str) else None
    return amount is None or limit is None or not Decimal(0) <= amount <= Decimal(str(limit))


def _outside(options: TextOutside, args: Args) -> bool:
    text = args.get(options.arg)
    return not isinstance(text, str) or not any(re.fullmatch(pattern, text) for pattern in options.allow)


def _outside_words(options: TextOutside) -> str:
    return f"{options.arg} other than {' or '.join(options.allow)}"


def _by_currency_words(options: AmountOverByCurrency) -> str:
    limits = ", ".join(f"{currency} {limit:,}" for currency, limit in sorted(options.limits.items()))
    return f"{options.arg} over {limits}, or in another currency"


PREDICATES: Mapping[str, Predicate] = {
    predicate.name: predicate
    for predicate in (
        Predicate("always", _None, lambda _, __: True, lambda _: "every call"),
        Predicate("never", _None, lambda _, __: False, lambda _: "no call", gates=False),
        Predicate("amount_over", AmountOver, _over, lambda options: f"{options.arg} over {options.value:,}"),
        Predicate("amount_over_by_currency", AmountOverByCurrency, _over_by_currency, _by_currency_words),
        Predicate("text_outside", TextOutside, _outside, _outside_words),
    )
}


@dataclass(frozen=True)
class Rule:
    """A predicate with its options."""

    predicate: Predicate
    options: _Options

    @property
    def words(self) -> str:
        return self.predicate.words(self.options)

    def judge(self, args: Args) -> Verdict:
        """`middleware.ports.Judge`: pure, and never raises."""
        asks = self.predicate.asks(self.options, args)
        reason = "a person must decide" if asks else "within the rule"
        return Verdict(asks=asks, rule=self.words, reason=reason)


def rule(spec: Mapping[str, Any] | None) -> Rule:
    """From JSON. None is `always`: a gate without a rule asks every time. Raises `BadRule`."""
    given = {"use": "always"} if spec is None else dict(spec)
    name = given.pop("use", None)
    predicate = PREDICATES.get(name) if isinstance(name, str) else None
    if predicate is None:
        raise BadRule(f"there is no rule {name!r}; known are {', '.join(sorted(PREDICATES))}")
    try:
        options = predicate.options.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "options"
        raise BadRule(f"rule {name}: {where}: {first['msg']}") from error
    return Rule(predicate, options)


def judge_of(spec: Mapping[str, Any] | None) -> Judge:
    return rule(spec).judge

"""The refund agent's arithmetic, arguments, checks and tools."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from pydantic import ValidationError

from agents.catalogue import CheckUnavailable, all_tools
from agents.outcomes import Refused
from agents.refunds import checks, policy
from agents.refunds.facts import IssueRefund
from agents.refunds.memory import MemoryShop, sample_order
from agents.refunds.tools import SENDERS, TOOL_BUILDERS, ask_tool, issue_refund_sender, read_tools


@pytest.mark.parametrize(
    ("reason", "days", "amount", "clause", "eligible"),
    [
        ("damaged", 3, "1280.00", "RP-4 §3.2", True),
        ("damaged", 14, "1280.00", "RP-4 §3.2", True),
        ("damaged", 15, "0", "RP-4 §3.2", False),
        ("wrong_item", 3, "1280.00", "RP-4 §3.1", True),
        ("changed_mind", 30, "1152.00", "RP-4 §3.3", True),
        ("changed_mind", 31, "0", "RP-4 §3.3", False),
        ("late", 3, "192.00", "RP-4 §4.2", True),
        ("other", 3, "1280.00", "RP-4 §4.1", True),
        ("not_delivered", 3, "0", "RP-4 §5.2", False),
        ("damaged", None, "0", "RP-4 §5.1", False),
    ],
)
def test_the_policy_to_the_cent(reason, days, amount, clause, eligible):
    found = policy.compute(sample_order(delivered_days=days), reason)
    assert (found.amount, found.clause, found.eligible) == (Decimal(amount), clause, eligible)


def test_a_partly_refunded_order_has_only_the_rest():
    order = sample_order(refunded="1000.00", refundable="280.00")
    assert policy.compute(order, "damaged").amount == Decimal("280.00")
    assert not policy.compute(sample_order(refundable="0.00"), "damaged").eligible


def test_parts_are_rounded_to_the_currency():
    assert policy.compute(sample_order("A-1", "9801", "JPY"), "late").amount == Decimal(1470)
    assert policy.compute(sample_order(), "damaged", percent=Decimal("33.3")).amount == Decimal("426.24")
    assert policy.compute(sample_order(), "changed_mind", amount=Decimal(1200)).amount == Decimal("1152.00")


@pytest.mark.parametrize(
    "wrong", [{"amount": Decimal("1280.01")}, {"amount": Decimal(0)}, {"percent": Decimal(101)}]
)
def test_a_wish_out_of_bounds_is_refused(wrong):
    with pytest.raises(policy.BadAmount):
        policy.compute(sample_order(), "damaged", **wrong)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("the lamp arrived broken", "damaged"), ("台灯破损", "damaged"), ("it never arrived", "not_delivered"),
        ("has not been delivered", "not_delivered"), ("一直没收到", "not_delivered"), ("wrong colour", "wrong_item"),
        ("发错货了", "wrong_item"), ("I changed my mind", "changed_mind"), ("不想要了", "changed_mind"),
        ("came too late", "late"), ("please", "other"), ("chocolate", "other"),
    ],
)  # fmt: skip
def test_reasons_are_read_in_two_languages(text, reason):
    assert policy.classify(text) == reason


# --- arguments

GOOD = {"order_id": "A-20931", "amount": 128.1, "currency": "CNY"}


@pytest.mark.parametrize("amount", [1280, 1280.1, 0.01])
def test_amounts_are_exact(amount):
    assert IssueRefund.model_validate(GOOD | {"amount": amount}).amount == Decimal(str(amount))


@pytest.mark.parametrize(
    "amount", [0, -5, 1.005, True, "12", "１２", "1_000", None, [], float("nan"), json.loads("1e309"), 10**40]
)
def test_what_is_not_a_plain_positive_number_is_no_amount(amount):
    with pytest.raises(ValidationError):
        IssueRefund.model_validate(GOOD | {"amount": amount})


def test_the_schema_is_closed_and_shows_a_number():
    schema = all_tools()["issue_refund"].schema()
    assert schema["additionalProperties"] is False
    assert schema["properties"]["amount"]["type"] == "number"
    assert schema["properties"]["amount"]["exclusiveMinimum"] == 0
    assert schema["required"] == ["order_id", "amount", "currency"]


def test_only_the_write_is_a_write():
    effects = {name: facts.effect for name, facts in all_tools().items()}
    assert effects == {
        "lookup_order": "read", "read_policy": "read", "compute_refund": "read", "issue_refund": "write", "ask_staff": "ask",
    }  # fmt: skip
    facts = all_tools()["issue_refund"]
    assert facts.idempotent
    assert facts.lookup is not None
    assert facts.locked == ("/order_id", "/currency")
    assert facts.check is not None


# --- checks

CALL = {"order_id": "A-20931", "amount": 1280, "currency": "CNY", "reason": "arrived broken"}


def found(call=None, context=None, **order):
    shop = MemoryShop([sample_order(**order), sample_order("A-2", "50.00")])
    return checks.check_refund(shop, CALL | (call or {}), context or {})


def levels(findings, field):
    return [check.level for check in findings if check.field == field]


def test_a_plain_refund_passes_every_check():
    findings = found(context={"customer": {"id": "C-1001", "name": "Li Wei"}, "order_id": "A-20931"})
    assert {check.level for check in findings} == {"pass"}
    assert len(findings) == 4


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ({"amount": 1280.01}, "/amount"), ({"amount": 0}, "/amount"), ({"amount": -5}, "/amount"),
        ({"amount": "1280"}, "/amount"), ({"amount": float("nan")}, "/amount"), ({"amount": None}, "/amount"),
        ({"amount": True}, "/amount"), ({"amount": 1.005}, "/amount"), ({"currency": "USD"}, "/currency"),
        ({"order_id": "A-0"}, "/order_id"), ({"order_id": None}, "/order_id"), ({"order_id": ["A"]}, "/order_id"),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_fails_at_its_field(call, field):
    assert "fail" in levels(found(call), field)


def test_yen_with_decimals_fail():
    order = sample_order(currency="JPY", captured="9800")
    findings = checks.check_refund(MemoryShop([order]), CALL | {"amount": 10.5, "currency": "JPY"}, {})
    assert levels(findings, "/amount") == ["fail"]


def test_a_part_is_a_warning():
    assert levels(found({"amount": 100}), "/amount") == ["warn"]


def test_more_than_the_policy_computes_is_a_warning():
    assert levels(found({"reason": "changed my mind"}), "/amount") == ["warn"]


@pytest.mark.parametrize(
    ("customer", "level"),
    [({"id": "C-1001"}, "pass"), ({"id": "C-9"}, "fail"), ({"name": "李伟"}, "pass"), ({"name": "li wei"}, "pass"), ({"name": "Bob"}, "warn")],
)  # fmt: skip
def test_the_customer_of_the_case_is_compared(customer, level):
    assert levels(found(context={"customer": customer}), "/order_id") == [level]


def test_undelivered_and_earlier_refunds_are_warnings():
    texts = {check.text for check in found(delivered_days=None) if check.level == "warn"}
    assert any("Not delivered yet" in text for text in texts)
    shop = MemoryShop([sample_order(), sample_order("A-2", "50.00")])
    for order_id in ("A-20931", "A-2"):
        shop.refund({"order_id": order_id, "amount": "10.00", "currency": "CNY"}, order_id, 1)
    warned = [
        check for check in checks.check_refund(shop, CALL | {"amount": 100}, {}) if check.level == "warn"
    ]
    assert any("before" in check.text for check in warned)
    assert any(check.params.get("orders") == "A-2" for check in warned)


def test_every_finding_can_be_filled_in():
    for check in [*found(), *found({"amount": 5, "currency": "USD"}), *found(context={"order_id": "A-2"})]:
        assert "%(" not in check.text % check.params


def test_a_silent_shop_is_said_so():
    shop = MemoryShop([sample_order()])
    shop.fault = "down"
    with pytest.raises(CheckUnavailable, match="did not answer"):
        checks.check_refund(shop, CALL, {})


def test_age_is_counted_in_days_of_the_calendar():
    now = datetime(2026, 3, 4, 0, 5, tzinfo=UTC)
    assert policy.days_since((now - timedelta(minutes=10)).isoformat(), now) == 1
    assert policy.days_since(None, now) is None


# --- tools


def test_every_tool_can_be_built():
    shop = MemoryShop([sample_order()])
    built = [*read_tools(shop), ask_tool()]
    facts = all_tools()
    assert {tool.name for tool in built} == set(TOOL_BUILDERS)
    assert set(TOOL_BUILDERS) | set(SENDERS) == set(facts)
    assert all(tool.description == facts[tool.name].description for tool in built)


def test_the_reads_answer_in_json():
    tools = {tool.name: tool for tool in read_tools(MemoryShop([sample_order()]))}
    assert json.loads(tools["lookup_order"].invoke({"order_id": "A-20931"}))["customer"]["name"] == "李伟"
    assert json.loads(tools["lookup_order"].invoke({"order_id": "A-0"}))["error"] == "unknown_order"
    clauses = json.loads(tools["read_policy"].invoke({"topic": "changed mind, unopened"}))["policies"][0][
        "clauses"
    ]
    assert [clause["id"] for clause in clauses] == ["§3.3"]
    computed = json.loads(
        tools["compute_refund"].invoke({"order_id": "A-20931", "reason": "damaged", "amount": 9999})
    )
    assert computed["error"] == "bad_amount"


def test_the_question_never_answers_itself():
    with pytest.raises(RuntimeError, match="only a person"):
        ask_tool().invoke({"question": "which?"})


def test_the_sender_sends_exactly_what_was_approved():
    shop = MemoryShop([sample_order()])
    send, lookup = issue_refund_sender(shop)
    args = dict(IssueRefund.model_validate(GOOD | {"customer_note": "for the customer"}))
    assert lookup("k") is None
    sent = send(args, "k", 1)
    assert sent == {
        "refund_id": shop.made[0]["refund_id"],
        "order_id": "A-20931",
        "amount": "128.10",
        "currency": "CNY",
    }
    assert lookup("k") == sent
    assert [row["amount"] for row in shop.made] == [sent["amount"]]


def test_an_amount_that_the_currency_cannot_express_is_sent_as_it_is_and_refused():
    send, _ = issue_refund_sender(MemoryShop([sample_order("A-1", "9800", "JPY")]))
    with pytest.raises(Refused, match="0 decimals"):
        send({"order_id": "A-1", "amount": Decimal("10.5"), "currency": "JPY"}, "k", 1)

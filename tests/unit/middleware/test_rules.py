"""Rules, policies and the order contract of a stack, without LangChain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agents.catalogue import all_tools, fingerprint
from agents.refunds.spec import spec
from middleware import policy, predicates
from middleware.stack import StackError, build_stack, lint
from tests.fakes import MemoryApprovals
from tests.unit.middleware.stacks import ERROR, GOOD, GUARD, HITL, LIMIT, OVER, RETRY, TOOLS, gate


@pytest.mark.parametrize(
    ("amount", "asks"),
    [
        (1000, False), (1000.0, False), (999.99, False), (1, False), (0, False),
        (1000.01, True), (1001, True), (-1, True), (10**30, True),
        (float("nan"), True), (float("inf"), True), (True, True), ("5", True), ("１５００", True), (None, True), ([5], True),
    ],
)  # fmt: skip
def test_amount_over_asks_for_everything_that_is_not_a_small_plain_number(amount, asks):
    assert predicates.judge_of(OVER)({"amount": amount}).asks is asks


def test_a_missing_amount_asks():
    assert predicates.judge_of(OVER)({}).asks


@pytest.mark.parametrize(
    ("currency", "amount", "asks"),
    [("USD", 100, False), ("USD", 100.01, True), ("JPY", 15000, False), ("EUR", 1, True), (["USD"], 1, True)],
)
def test_a_currency_without_a_limit_asks(currency, amount, asks):
    rule = {
        "use": "amount_over_by_currency",
        "arg": "a",
        "currency_arg": "c",
        "limits": {"USD": 100, "JPY": 15000},
    }
    assert predicates.judge_of(rule)({"a": amount, "c": currency}).asks is asks


def test_no_rule_asks_always():
    verdict = predicates.judge_of(None)({"amount": 1})
    assert (verdict.asks, verdict.rule) == (True, "every call")


def test_rules_have_words_for_reviewers():
    assert predicates.rule(OVER).words == "amount over 1,000"


@pytest.mark.parametrize(
    "bad",
    [
        {"use": "nothing"}, {}, {"use": ["amount_over"]}, {"use": "amount_over"}, OVER | {"value": "1000"},
        OVER | {"extra": 1}, OVER | {"value": float("nan")}, OVER | {"value": -1},
    ],
)  # fmt: skip
def test_a_bad_rule_is_refused(bad):
    with pytest.raises(predicates.BadRule):
        predicates.rule(bad)


def test_the_shipped_policy_is_read_from_the_spec():
    found = policy.policy_for(spec().middleware, "issue_refund")
    assert found == policy.ApprovalPolicy(
        "refund-reviewers", 1800, ("approve", "edit", "reject"), "amount over 1,000", remind_after=1200
    )
    assert policy.policy_for(spec().middleware, "ask_staff").allowed_decisions == ("respond",)
    assert policy.policy_for(spec().middleware, "lookup_order") is None
    assert set(policy.judges(spec().middleware)) == {"issue_refund", "ask_staff"}


# --- the order contract


def test_a_good_stack_has_no_findings():
    assert lint(GOOD, TOOLS) == []
    assert lint(spec().middleware, all_tools()) == []


@pytest.mark.parametrize(
    ("code", "stack"),
    [
        ("unreadable", [{"use": "nothing"}]),
        ("unreadable", [*GOOD, {"use": "tool_retry"}]),
        ("unreadable", [LIMIT | {"typo": 1}, HITL, GUARD]),
        ("unreadable", [LIMIT, HITL | {"interrupt_mode": "batched"}, GUARD]),
        ("unreadable", [LIMIT, gate(pay={"when": {"use": "nothing"}}), GUARD]),
        ("unreadable", [LIMIT, gate(pay={"allowed_decisions": []}), GUARD]),
        ("outside-approval", [LIMIT, ERROR, HITL, GUARD]),
        ("outside-approval", [LIMIT, RETRY, HITL, GUARD]),
        ("outside-approval", [LIMIT, GUARD, HITL]),
        ("retried-write", [LIMIT, HITL, GUARD, RETRY | {"tools": ["pay"]}]),
        ("caught-write", [LIMIT, HITL, ERROR | {"tools": ["ask"]}, GUARD]),
        ("inside-guard", [LIMIT, HITL, GUARD, RETRY | {"tools": ["see", "pay"]}]),
        ("no-guard", [LIMIT, HITL]),
        ("duplicate", [LIMIT, HITL, GUARD, RETRY, RETRY]),
        ("two-gates", [LIMIT, HITL, HITL | {"id": "second"}, GUARD]),
        ("unknown-tool", [LIMIT, gate(delete={}), GUARD]),
        ("unknown-tool", [LIMIT, HITL, GUARD, RETRY | {"tools": ["nothing"]}]),
        ("ungated-write", [LIMIT, {"use": "human_in_the_loop", "interrupt_on": {"ask": {"allowed_decisions": ["respond"]}}}, GUARD]),
        ("ungated-write", [LIMIT, GUARD]),
        ("unasked", [LIMIT, {"use": "human_in_the_loop", "interrupt_on": {"pay": {}}}, GUARD]),
        ("respond-on-write", [LIMIT, gate(pay={"allowed_decisions": ["approve", "respond"]}), GUARD]),
        ("never-asks", [LIMIT, gate(pay={"when": {"use": "never"}}), GUARD]),
        ("ask-decisions", [LIMIT, gate(ask={"allowed_decisions": ["approve", "respond"]}), GUARD]),
        ("ask-rule", [LIMIT, gate(ask={"allowed_decisions": ["respond"], "when": {"use": "never"}}), GUARD]),
    ],
)  # fmt: skip
def test_a_stack_that_opens_a_gate_is_refused_with_a_reason(code, stack):
    errors = [finding for finding in lint(stack, TOOLS) if finding.level == "error"]
    assert code in {finding.code for finding in errors}
    assert all(finding.text for finding in errors)
    with pytest.raises(StackError):
        build_stack(stack, tools=TOOLS, approvals=MemoryApprovals())


@pytest.mark.parametrize(
    ("code", "stack"),
    [
        ("limit-resets", [{"use": "model_call_limit", "run_limit": 9}, *GOOD[1:]]),
        ("no-limit", GOOD[1:]),
        ("retry-outside-error", [LIMIT, HITL, RETRY, ERROR, GUARD]),
        ("pii-stream", [{"use": "pii", "pii_type": "email", "apply_to_output": True}, *GOOD]),
        ("failure-as-answer", [{"use": "model_retry", "on_failure": "continue"}, *GOOD]),
    ],
)
def test_a_doubtful_stack_is_warned_of(code, stack):
    findings = lint(stack, TOOLS)
    assert code in {finding.code for finding in findings}
    assert {finding.level for finding in findings} == {"warning"}


def test_two_instances_with_ids_are_two():
    stack = [*GOOD, RETRY | {"id": "slow"}]
    assert lint(stack, TOOLS) == []
    names = [middleware.name for middleware in build_stack(stack, tools=TOOLS, approvals=MemoryApprovals())]
    assert names[-2:] == ["ToolRetryMiddleware", "ToolRetryMiddleware[slow]"]


def test_the_fingerprint_follows_the_rule():
    changed = [dict(entry) for entry in spec().middleware]
    at = next(n for n, entry in enumerate(changed) if entry["use"] == "human_in_the_loop")
    gates = dict(changed[at]["interrupt_on"])
    gates["issue_refund"] = gates["issue_refund"] | {"when": OVER | {"value": 5000}}
    changed[at] = changed[at] | {"interrupt_on": gates}
    assert fingerprint(spec()) == fingerprint(spec())
    assert fingerprint(spec().model_copy(update={"middleware": tuple(changed)})) != fingerprint(spec())


def test_what_the_web_process_imports_is_light():
    modules = (
        "agents.catalogue, agents.refunds.facts, agents.refunds.checks, agents.refunds.spec, middleware.ports, "
        "middleware.policy, middleware.predicates, middleware.catalogue, middleware.stack"
    )
    code = (
        f"import sys, {modules}\n"
        "from agents.refunds.spec import spec\n"
        "from agents.catalogue import all_tools\n"
        "assert middleware.stack.lint(spec().middleware, all_tools()) == []\n"
        "middleware.catalogue.describe()\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('langchain', 'langchain_core', 'langgraph', 'httpx')])"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr

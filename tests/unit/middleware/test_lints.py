"""Each rule about a stack: a bad one triggers it, a good one that is as near as possible does not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from middleware.stack import lint
from tests.unit.middleware.stacks import (
    ERROR,
    GOOD,
    GUARD,
    HITL,
    LIMIT,
    OVER,
    RETRY,
    TOOLS,
    gate,
    with_inside,
)


def entry(use: str, **options: Any) -> dict[str, Any]:
    return {"use": use, **options}


PII = entry("pii", pii_type="email")
SUMMARY = entry("summarization", model="demo:scripted")
FALLBACK = entry("model_fallback", models=["demo:other"])
CACHE = entry("anthropic_prompt_caching")
SHELL = entry("shell_tool")
SHELL_GATE = gate(shell={})
READER = {"name": "reader", "description": "reads", "tools": ["see"]}
EMULATOR = entry("llm_tool_emulator", tools=["see"])
JUDGE = {"model": "demo:scripted"}


def subagents(**changes: Any) -> dict[str, Any]:
    return entry("subagents", subagents=[READER | changes], general_purpose=False)


def deep(levels: int) -> dict[str, Any]:
    return subagents(middleware=[deep(levels - 1)]) if levels > 1 else subagents()


class Rule(NamedTuple):
    code: str
    bad: list[dict[str, Any]]
    good: list[dict[str, Any]]
    model: str = ""
    level: str = "error"


def warns(code: str, bad: list[Any], good: list[Any], model: str = "") -> Rule:
    return Rule(code, bad, good, model, "warning")


RULES = [
    Rule("unreadable", [entry("nothing")], GOOD),
    Rule("duplicate", [*GOOD, RETRY], [*GOOD, RETRY | {"id": "slow"}]),
    Rule("two-gates", [LIMIT, HITL, HITL | {"id": "second"}, GUARD], GOOD),
    Rule("two-guards", [LIMIT, HITL, GUARD, GUARD | {"id": "second"}], GOOD),
    Rule("tool-clash",
         [*GOOD, entry("file_search", root_path="/tmp"), entry("anthropic_file_search")],
         [*GOOD, entry("file_search", root_path="/tmp")]),
    Rule("unknown-tool", [LIMIT, gate(delete={}), GUARD], GOOD),
    Rule("unknown-tool", [entry("llm_tool_selector", always_include=["nothing"]), *GOOD],
         [entry("llm_tool_selector", always_include=["see"]), *GOOD]),
    Rule("unknown-tool", [entry("tool_call_limit", tool_name="nothing", thread_limit=2), *GOOD],
         [entry("tool_call_limit", tool_name="see", thread_limit=2), *GOOD]),
    Rule("unknown-tool", [entry("role_tools", allow={"nothing": ["x"]}), *GOOD],
         [entry("role_tools", allow={"pay": ["x"]}), *GOOD]),
    Rule("ungated-write", [LIMIT, GUARD], GOOD),
    Rule("ungated-write", [LIMIT, HITL, SHELL, GUARD], [LIMIT, SHELL_GATE, SHELL, GUARD]),
    Rule("ungated-write", with_inside(entry("filesystem", backend={"use": "disk", "root_dir": "/tmp"})),
         with_inside(entry("filesystem"))),
    Rule("ungated-write", with_inside(entry("anthropic_memory", where="disk", root_path="/tmp")),
         with_inside(entry("anthropic_memory"))),
    Rule("unasked", [LIMIT, entry("human_in_the_loop", interrupt_on={"pay": {}}), GUARD], GOOD),
    Rule("respond-on-write", [LIMIT, gate(pay={"allowed_decisions": ["approve", "respond"]}), GUARD], GOOD),
    Rule("never-asks", [LIMIT, gate(pay={"when": {"use": "never"}}), GUARD], [LIMIT, gate(pay={"when": OVER}), GUARD]),
    Rule("ask-decisions", [LIMIT, gate(ask={"allowed_decisions": ["approve", "respond"]}), GUARD], GOOD),
    Rule("ask-rule", [LIMIT, gate(ask={"allowed_decisions": ["respond"], "when": {"use": "never"}}), GUARD], GOOD),
    Rule("no-guard", [LIMIT, HITL], GOOD),
    Rule("inside-guard", [LIMIT, HITL, ERROR, GUARD, entry("llm_tool_emulator")], with_inside(EMULATOR)),
    Rule("outside-approval", [LIMIT, ERROR, HITL, GUARD], GOOD),
    Rule("outside-approval", [LIMIT, RETRY, HITL, GUARD], GOOD),
    Rule("outside-approval", [LIMIT, GUARD, HITL], GOOD),
    Rule("outside-approval", [LIMIT, EMULATOR, HITL, GUARD], with_inside(EMULATOR)),
    Rule("outside-approval", [LIMIT, entry("auto_mode", tools=["pay"], classifier=JUDGE), HITL, GUARD],
         with_inside(entry("auto_mode", tools=["pay"], classifier=JUDGE))),
    Rule("retried-write", [LIMIT, HITL, GUARD, RETRY | {"tools": ["pay"]}], GOOD),
    Rule("caught-write", [LIMIT, HITL, ERROR | {"tools": ["ask"]}, GUARD], GOOD),
    Rule("unknown-size", [SUMMARY | {"trigger": ["fraction", 0.8]}, *GOOD], [SUMMARY | {"trigger": ["tokens", 800]}, *GOOD]),
    Rule("wrong-provider", [entry("provider_tool_search", searchable_tools=["see"]), *GOOD],
         [entry("provider_tool_search"), *GOOD], "mistralai:large"),
    Rule("wrong-provider", [CACHE | {"unsupported_model_behavior": "raise"}, *GOOD], [CACHE, *GOOD], "openai:gpt-5.4"),
    Rule("subagent-gate", with_inside(subagents(middleware=[HITL])), with_inside(subagents())),
    Rule("subagent-gate", with_inside(subagents(middleware=[GUARD])), with_inside(subagents(middleware=[ERROR]))),
    Rule("retried-write", with_inside(subagents(tools=["pay"], middleware=[RETRY | {"tools": ["pay"]}])),
         with_inside(subagents(tools=["pay"]))),
    Rule("nested-subagents", with_inside(deep(4)), with_inside(deep(3))),
    Rule("graph-with-options", with_inside(subagents(graph="echo")),
         with_inside(subagents(graph="echo", tools=None))),
    warns("missing-here", [entry("openai_moderation", api_key_env="NOBODY_SETS_THIS"), *GOOD],
          [entry("openai_moderation", api_key_env="PATH"), *GOOD]),
    warns("missing-here", [LIMIT, SHELL_GATE, SHELL | {"execution_policy": {"use": "codex", "binary": "no-such"}}, GUARD],
          [LIMIT, SHELL_GATE, SHELL | {"execution_policy": {"use": "codex", "binary": "sh"}}, GUARD]),
    warns("emulated-write", with_inside(entry("llm_tool_emulator")), with_inside(EMULATOR)),
    warns("asked-in-vain", [LIMIT, HITL, ERROR, entry("repeat_guard"), GUARD], [LIMIT, entry("repeat_guard"), HITL, ERROR, GUARD]),
    warns("asked-in-vain", with_inside(entry("role_tools", allow={"pay": ["x"]})),
          [LIMIT, entry("role_tools", allow={"pay": ["x"]}), HITL, GUARD]),
    warns("retry-outside-error", [LIMIT, HITL, RETRY, ERROR, GUARD], GOOD),
    warns("retry-unanswered", [LIMIT, HITL, GUARD, RETRY], GOOD),
    warns("caching-outside-fallback", [CACHE, FALLBACK, *GOOD], [FALLBACK, CACHE, *GOOD]),
    warns("refusal-outside-fallback", [entry("model_refusal"), FALLBACK, *GOOD], [FALLBACK, entry("model_refusal"), *GOOD]),
    warns("retry-outside-fallback", [entry("model_retry"), FALLBACK, *GOOD], [FALLBACK, entry("model_retry"), *GOOD]),
    warns("caching-too-early", [CACHE, entry("todo_list"), *GOOD], [entry("todo_list"), CACHE, *GOOD]),
    warns("limit-resets", [entry("model_call_limit", run_limit=9), *GOOD[1:]],
          [entry("model_call_limit", thread_limit=9), *GOOD[1:]]),
    warns("limit-resets", [entry("tool_call_limit", tool_name="see", run_limit=9), *GOOD],
          [entry("tool_call_limit", tool_name="see", run_limit=9, on_limit="ask"), *GOOD]),
    warns("no-limit", GOOD[1:], GOOD),
    warns("long-wait", [entry("model_retry", max_retries=10, max_delay=60), *GOOD], [entry("model_retry"), *GOOD]),
    warns("failure-as-answer", [entry("model_retry", on_failure="continue"), *GOOD], [entry("model_retry"), *GOOD]),
    warns("summary-of-nothing", [SUMMARY | {"trigger": ["messages", 20]}, *GOOD], [SUMMARY | {"trigger": ["messages", 21]}, *GOOD]),
    warns("pii-late", [SUMMARY, PII, *GOOD], [PII, SUMMARY, *GOOD]),
    warns("pii-after-moderation", [entry("openai_moderation", api_key_env="PATH"), PII, *GOOD],
          [PII, entry("openai_moderation", api_key_env="PATH"), *GOOD]),
    warns("pii-stream", [PII | {"apply_to_output": True}, *GOOD], [PII, *GOOD]),
    warns("shell-on-host", [LIMIT, SHELL_GATE, SHELL, GUARD],
          [LIMIT, SHELL_GATE, SHELL | {"execution_policy": {"use": "docker", "binary": "sh"}}, GUARD]),
    warns("shell-session-lost", [LIMIT, SHELL_GATE, SHELL, GUARD], GOOD),
    warns("idle-provider", [CACHE, *GOOD], GOOD, "openai:gpt-5.4"),
    warns("idle-provider", [entry("bedrock_prompt_caching"), *GOOD], GOOD, "anthropic:claude-sonnet-4-6"),
    warns("nothing-to-search", with_inside(entry("anthropic_file_search")),
          with_inside(entry("anthropic_text_editor"), entry("anthropic_file_search"))),
]  # fmt: skip


def found(stack: list[dict[str, Any]], model: str) -> set[tuple[str, str]]:
    return {(finding.level, finding.code) for finding in lint(stack, TOOLS, model=model)}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_bad_stack_triggers_it_and_a_good_one_does_not(rule: Rule):
    assert (rule.level, rule.code) in found(rule.bad, rule.model)
    assert (rule.level, rule.code) not in found(rule.good, rule.model)
    assert "error" not in {level for level, _ in found(rule.good, rule.model)}


def test_every_finding_has_a_rule_here():
    from middleware.lints.words import WORDS

    elsewhere = {"unavailable", "jump-undeclared", "no-facts"}  # below, test_own.py, test_legacy.py
    assert set(WORDS) - {rule.code for rule in RULES} == elsewhere


def test_a_missing_package_is_named(monkeypatch):
    from middleware import entry as home

    monkeypatch.setattr(home, "find_spec", lambda name: None if name == "langchain_aws" else object())
    (finding,) = lint([entry("bedrock_prompt_caching"), *GOOD], TOOLS)
    assert (finding.level, finding.code) == ("error", "unavailable")
    assert "pip install langchain-aws" in finding.text


def test_errors_come_first_and_name_the_sub_agent():
    stack = [
        entry("model_retry", on_failure="continue"),
        *with_inside(subagents(middleware=[RETRY | {"tools": ["no"]}])),
    ]
    findings = lint(stack, TOOLS)
    assert [finding.level for finding in findings][:1] == ["error"]
    assert any("subagents (reader)" in finding.text for finding in findings)

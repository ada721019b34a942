"""Every entry: it reads its options, builds LangChain's class, and tells the truth about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from middleware import catalogue
from middleware.entry import HOOKS
from tests.unit.middleware.stacks import ERROR, GUARD, HITL, LIMIT, RETRY, around

JUDGE = {"model": "demo:scripted"}
MINI = "demo:scripted"
SEARCH = {"glob_search", "grep_search"}

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "human_in_the_loop": [HITL],
    "model_call_limit": [
        LIMIT,
        {"thread_limit": 3},
        {"thread_limit": 10, "run_limit": 5, "exit_behavior": "error"},
    ],
    "tool_call_limit": [
        {"tool_name": "pay", "run_limit": 2, "on_limit": "ask"},
        {"tool_name": "pay", "thread_limit": 2},
        {"thread_limit": 2, "exit_behavior": "end"},
    ],
    "spend_limit": [
        {"tokens": 1000, "hard_cap": 5000},
        {"cost": 1.5, "currency": "EUR", "input_price": 3, "output_price": 15, "scope": "thread"},
    ],
    "repeat_guard": [{}, {"tools": ["pay"]}],
    "model_fallback": [{"models": [MINI, {"model": MINI, "options": {}}]}],
    "model_retry": [{}, {"on_failure": "plain", "retry_on": ["rate_limit", "http"]}, {"backoff_factor": 0.0}],
    "model_refusal": [{}],
    "model_router": [
        {
            "choices": {
                "small": {"model": MINI, "criteria": "easy"},
                "large": {"model": MINI, "criteria": "hard"},
            },
            "instructions": "the cheapest that can do it",
            "classifier": JUDGE,
        }
    ],
    "llm_tool_selector": [
        {"max_tools": 1, "always_include": ["see"]},
        {"model": MINI, "on_parsing_failure": ["see"]},
    ],
    "provider_tool_search": [{"searchable_tools": ["see"]}],
    "dynamic_prompt": [
        {"lines": ["The customer is {customer_name}."], "for_roles": {"support": "Be brief."}}
    ],
    "auto_mode": [
        {"tools": ["pay"], "classifier": JUDGE},
        {"tools": ["pay"], "classifier": JUDGE, "risky_when": "money", "safe_when": "none"},
    ],
    "tool_error": [ERROR, {"tools": ["see"], "words": "type_only"}],
    "write_guard": [GUARD],
    "tool_retry": [RETRY, {"tools": ["see"], "retry_on": ["any"], "jitter": False}],
    "llm_tool_emulator": [{}, {"tools": ["see"], "model": MINI}],
    "role_tools": [{"allow": {"pay": ["finance"]}}],
    "observer": [{}],
    "summarization": [
        {"model": MINI, "trigger": ["tokens", 4000], "keep": ["messages", 20]},
        {"trigger": [["tokens", 3000], ["messages", 6]]},
        {"trigger": {"tokens": 4000, "messages": 10}, "token_counter": "model"},
        {"trigger": [{"tokens": 5000, "messages": 3}, ["messages", 60]], "summarizer": MINI},
    ],
    "context_editing": [{}, {"edits": [{"trigger": 2000, "keep": 3, "exclude_tools": ["see"]}]}],
    "todo_list": [{}, {"system_prompt": "Plan.", "tool_description": "A plan."}],
    "pii": [
        {"pii_type": "email"},
        {"pii_type": "badge", "detector": "B-[0-9]+", "strategy": "hash"},
        {"pii_type": "ssn", "detector": {"use": "us_ssn"}, "apply_to_tool_results": True},
    ],
    "openai_moderation": [{}, {"exit_behavior": "replace", "violation_message": "No: {categories}"}],
    "shell_tool": [
        {"tool_name": "run", "startup_commands": ["true"]},
        {"execution_policy": "docker", "workspace_root": "/tmp/w"},
        {
            "execution_policy": {"use": "codex", "config_overrides": {"sandbox_mode": "read-only"}},
            "redaction_rules": [{"pii_type": "api_key", "detector": "sk-[a-z]{4}"}],
        },
    ],
    "file_search": [{"root_path": "/tmp", "use_ripgrep": False}],
    "filesystem": [
        {},
        {"backend": {"use": "disk", "root_dir": "/tmp/f"}, "tools": ["ls", "read_file"]},
        {"backend": {"use": "composite", "routes": {"/memories/": {"use": "store"}}}},
        {"backend": {"use": "local_shell", "root_dir": "/tmp/f"}},
        {"permissions": [{"operations": ["write"], "paths": ["/secret/**"], "mode": "deny"}]},
    ],
    "subagents": [
        {},
        {
            "subagents": [
                {"name": "reader", "description": "reads", "tools": ["see"], "middleware": [ERROR]}
            ],
            "general_purpose": False,
        },
    ],
    "anthropic_prompt_caching": [{}, {"ttl": "1h", "unsupported_model_behavior": "raise"}],
    "anthropic_bash": [{}],
    "anthropic_text_editor": [
        {},
        {"where": "disk", "root_path": "/tmp/e", "allowed_path_prefixes": ["/src"]},
    ],
    "anthropic_memory": [{}, {"where": "disk", "root_path": "/tmp/m"}],
    "anthropic_file_search": [{}, {"state_key": "memory_files"}],
    "bedrock_prompt_caching": [{}],
}

CASES = [(name, given) for name, some in EXAMPLES.items() for given in some]


def test_every_entry_has_an_example():
    shipped = {name for name, entry in catalogue.ENTRIES.items() if entry.family != "own"}
    assert set(EXAMPLES) == shipped


@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_an_entry_tells_the_name_hooks_and_tools_of_what_it_builds(name, given, tmp_path):
    from langchain.agents.middleware import AgentMiddleware
    from langgraph.store.memory import InMemoryStore

    entry, options = catalogue.parse({"use": name} | given)
    assert entry.unavailable() is None, "the tests need every optional package"
    built = entry.build(options, around(tmp_path, store=InMemoryStore()))
    assert built.name == entry.title(options)
    assert [tool.name for tool in getattr(built, "tools", [])] == [
        tool.name for tool in entry.adds_tools(options)
    ]
    own = {hook for hook in HOOKS if getattr(type(built), hook) is not getattr(AgentMiddleware, hook)}
    assert own <= set(entry.hooks)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_entry_can_be_told_apart_by_an_id(name):
    entry = catalogue.ENTRIES[name]
    unnamed = ("pii", "model_call_limit", "tool_call_limit")
    if name in unnamed:  # LangChain, or the limit itself, names them by what they count
        return
    given = {"use": name} | EXAMPLES[name][0] | {"id": "second"}
    _, options = catalogue.parse(given)
    assert entry.title(options).endswith("[second]")
    from langgraph.store.memory import InMemoryStore

    assert entry.build(options, around(store=InMemoryStore())).name == entry.title(options)


@pytest.mark.parametrize("entry", catalogue.ENTRIES.values(), ids=lambda entry: entry.name)
def test_every_hook_of_an_entry_is_one_of_some_example(entry):
    """A hook that no example has would be a claim that nobody can see."""
    from langchain.agents.middleware import AgentMiddleware
    from langgraph.store.memory import InMemoryStore

    found: set[str] = set()
    for given in EXAMPLES.get(entry.name, []):
        _, options = catalogue.parse({"use": entry.name} | given)
        built = type(entry.build(options, around(store=InMemoryStore())))
        found |= {hook for hook in HOOKS if getattr(built, hook) is not getattr(AgentMiddleware, hook)}
    assert entry.family == "own" or found == set(entry.hooks)


def test_the_catalogue_is_json_and_in_plain_words():
    described = json.loads(json.dumps(catalogue.describe()))
    for entry in described:
        assert entry["available"], entry["reason"]
        assert entry["options_schema"]["additionalProperties"] is False
        assert 20 < len(entry["summary"]) < 120
        assert entry["help"] or entry["family"] == "own"


@pytest.mark.parametrize(
    "bad",
    [
        {"use": "summarization", "trigger": []},
        {"use": "summarization", "trigger": ["words", 5]},
        {"use": "summarization", "keep": ["fraction", 2]},
        {"use": "summarization", "summary_prompt": "no place"},
        {"use": "pii", "pii_type": "badge"},
        {"use": "pii", "pii_type": "badge", "detector": "["},
        {"use": "pii", "pii_type": "badge", "detector": {"use": "nobody"}},
        {"use": "pii", "pii_type": "email", "apply_to_input": False},
        {"use": "spend_limit"},
        {"use": "spend_limit", "cost": 3},
        {"use": "spend_limit", "tokens": 100, "hard_cap": 50},
        {"use": "tool_call_limit", "run_limit": 5, "thread_limit": 2},
        {"use": "model_fallback", "models": []},
        {"use": "shell_tool", "execution_policy": "nowhere"},
        {"use": "filesystem", "tools": ["ls"]},
        {"use": "filesystem", "backend": {"use": "disk", "root_dir": "/x", "virtual_mode": False}},
        {"use": "filesystem", "backend": {"use": "composite", "routes": {"/memories": {"use": "store"}}}},
        {"use": "filesystem", "backend": {"use": "composite", "routes": {"/../x/": {"use": "store"}}}},
        {"use": "subagents", "general_purpose": False},
        {"use": "subagents", "subagents": [{"name": "general-purpose", "description": "twice"}]},
        {"use": "anthropic_memory", "where": "disk"},
        {"use": "auto_mode", "tools": [], "classifier": JUDGE},
        {"use": "model_retry", "on_failure": "shout"},
    ],
    ids=str,
)
def test_bad_options_are_refused_with_a_reason(bad):
    with pytest.raises(catalogue.BadEntry) as refused:
        catalogue.parse(bad)
    assert str(refused.value).startswith(bad["use"])


def test_what_each_entry_does_to_a_step_is_noted_or_has_a_reason_why_not():
    from approvals.contexts.notes import WORDS
    from middleware.notes import OWN, WORTH

    shipped = {name for name, entry in catalogue.ENTRIES.items() if entry.family != "own"}
    assert set(WORTH) == shipped
    assert OWN.union(*WORTH.values()) == set(WORDS)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"use": "pii", "pii_type": "x", "detector": {"use": "regex", "pattern": "a"}},
            "detector.pattern: Extra inputs",
        ),
        ({"use": "tool_retry", "tools": [1]}, "tools.0: "),
        ({"use": "pii"}, "pii_type: Field required"),
        ({"use": "pii", "pii_type": "email", "nonsense": 1}, "nonsense: Extra inputs"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_written(entry, said):
    with pytest.raises(catalogue.BadEntry) as caught:
        catalogue.parse(entry)
    assert said in str(caught.value)
    assert "function-" not in str(caught.value)
    assert "constrained" not in str(caught.value)

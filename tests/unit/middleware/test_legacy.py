"""Specs in older spellings are read, and every change is told."""

from __future__ import annotations

import pytest

from agents.exchange import BadSpec, examine, read
from middleware import catalogue
from middleware.legacy import CLASSES, modernise

AGENT = {
    "slug": "old", "title": "Old", "model": "openai:gpt-4.1", "system_prompt": "Help.",
    "tools": ["lookup_order", "read_policy", "issue_refund"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"use": "summarization", "max_tokens_before_summary": 4000, "messages_to_keep": 20, "summary_prefix": "x"},
            {"use": "summarization", "trigger": ["tokens", 4000], "keep": ["messages", 20]},
        ),
        (
            {"use": "HumanInTheLoopMiddleware", "interrupt_on": {"pay": True, "see": False}, "description_prefix": "x"},
            {"use": "human_in_the_loop", "interrupt_on": {"pay": {}}},
        ),
        (
            {"use": "human_in_the_loop", "tool_configs": {"pay": {"allow_accept": True, "allow_edit": True}}},
            {"use": "human_in_the_loop", "interrupt_on": {"pay": {"allowed_decisions": ["approve", "edit", "reject"]}}},
        ),
        (
            {"use": "human_in_the_loop", "interrupt_on": {}, "interrupt_mode": "batched"},
            {"use": "human_in_the_loop", "interrupt_on": {}, "interrupt_mode": "per_call"},
        ),
        (
            {"use": "tool_retry", "on_failure": "return_message", "retry_on": ["ConnectionError", "TimeoutError"]},
            {"use": "tool_retry", "retry_on": ["connection", "timeout"], "tools": ["see"]},
        ),
        ({"use": "tool_retry", "tools": ["see"], "on_failure": "raise"}, {"use": "tool_retry", "tools": ["see"]}),
        ({"use": "model_retry", "on_failure": "raise"}, {"use": "model_retry", "on_failure": "error"}),
        ({"use": "model_retry", "on_failure": "return_message"}, {"use": "model_retry", "on_failure": "continue"}),
        (
            {"use": "model_fallback", "first_model": "a:b", "additional_models": ["c:d"]},
            {"use": "model_fallback", "models": ["a:b", "c:d"]},
        ),
        (
            {"use": "ContextEditingMiddleware", "edits": [{"type": "ClearToolUsesEdit", "trigger": 5}]},
            {"use": "context_editing", "edits": [{"trigger": 5, "use": "clear_tool_uses"}]},
        ),
        (
            {"use": "shell_tool", "execution_policy": {"type": "DockerExecutionPolicy", "image": "x"}, "startup_commands": "a"},
            {"use": "shell_tool", "execution_policy": {"use": "docker", "image": "x"}, "startup_commands": ["a"]},
        ),
        (
            {"use": "filesystem", "long_term_memory": True},
            {"use": "filesystem", "backend": {"use": "composite", "routes": {"/memories/": {"use": "store"}}}},
        ),
        (
            {
                "use": "FilesystemMiddleware",
                "backend": {"type": "CompositeBackend", "default": "StateBackend", "routes": {"/m/": "StoreBackend"}},
                "tool_descriptions": {"ls": "x"},
            },
            {
                "use": "filesystem",
                "backend": {"use": "composite", "default": {"use": "state"}, "routes": {"/m/": {"use": "store"}}},
                "custom_tool_descriptions": {"ls": "x"},
            },
        ),
        ({"use": "filesystem", "backend": None}, {"use": "filesystem"}),
        (
            {
                "use": "SubAgentMiddleware",
                "default_model": "c:d",
                "default_tools": [],
                "general_purpose_agent": False,
                "subagents": [{"name": "w", "description": "w", "prompt": "p"}],
            },
            {
                "use": "subagents",
                "general_purpose": False,
                "subagents": [{"name": "w", "description": "w", "system_prompt": "p", "model": "c:d"}],
            },
        ),
        (
            {"use": "FilesystemClaudeMemoryMiddleware", "root_path": "/m", "allowed_prefixes": ["/memories"]},
            {"use": "anthropic_memory", "where": "disk", "root_path": "/m", "allowed_path_prefixes": ["/memories"]},
        ),
    ],
)  # fmt: skip
def test_an_older_spelling_becomes_todays(old, new):
    found, notes = modernise(old, reads=["see"], model="a:b")
    assert found == new
    assert notes or old.get("backend", 0) is None
    assert all(str(note) and "%(" not in str(note) for note in notes)


def test_todays_spelling_is_left_alone():
    given = {"use": "tool_retry", "tools": ["see"], "retry_on": ["connection"]}
    assert modernise(given) == (given, [])


def test_every_class_leads_to_an_entry():
    assert {name for name, _ in CLASSES.values()} <= set(catalogue.ENTRIES)


def test_a_whole_spec_is_read_and_told_of():
    old = AGENT | {
        "middleware": [
            {"use": "ModelCallLimitMiddleware", "thread_limit": 10},
            {
                "use": "HumanInTheLoopMiddleware",
                "interrupt_on": {"issue_refund": True, "lookup_order": False},
            },
            {"use": "tool_error", "tools": ["lookup_order", "read_policy"]},
            {"use": "write_guard"},
            {"use": "ToolRetryMiddleware", "max_retries": 3, "on_failure": "continue"},
        ]
    }
    found = read(old)
    assert found.spec.middleware[-1] == {
        "use": "tool_retry",
        "max_retries": 3,
        "tools": ["lookup_order", "read_policy"],
    }
    assert "lookup_order was left out" in " ".join(map(str, found.notes))
    assert examine(found.spec) == []


@pytest.mark.parametrize("bad", [[], "x", {}, AGENT | {"slug": "No Slug"}, AGENT | {"middleware": 5}])
def test_what_is_no_spec_is_refused(bad):
    with pytest.raises(BadSpec):
        read(bad)


def test_an_unknown_tool_is_named():
    (finding,) = examine(read(AGENT | {"tools": ["fly"]}).spec)
    assert (finding.level, finding.code) == ("error", "no-facts")

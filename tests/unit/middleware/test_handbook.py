"""The page of the middleware and the examples are what the catalogue says today."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.exchange import examine, read
from middleware import catalogue
from middleware.proofs import PROOFS

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples" / "agents").glob("*.json"))


def test_the_page_is_up_to_date():
    call_command("agent", "docs", check=True)


def test_the_page_names_every_entry():
    text = (ROOT / "docs" / "middleware.md").read_text()
    assert [name for name in catalogue.ENTRIES if f"`{name}`" not in text] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_in_todays_words_and_can_be_published(path):
    found = read(json.loads(path.read_text()))
    assert found.notes == ()
    assert found.spec.slug == path.stem
    assert [finding for finding in examine(found.spec) if finding.level == "error"] == []


def test_every_prebuilt_middleware_has_an_example():
    used = {entry["use"] for path in EXAMPLES for entry in json.loads(path.read_text())["middleware"]}
    prebuilt = {
        "summarization", "human_in_the_loop", "model_call_limit", "tool_call_limit", "model_fallback", "pii", "todo_list",
        "llm_tool_selector", "tool_retry", "model_retry", "llm_tool_emulator", "context_editing", "shell_tool",
        "file_search", "filesystem", "subagents", "anthropic_prompt_caching", "anthropic_bash", "anthropic_text_editor",
        "anthropic_memory", "anthropic_file_search", "bedrock_prompt_caching", "openai_moderation",
    }  # fmt: skip
    assert prebuilt <= used


def test_every_entry_is_proved_by_a_test_that_is_there():
    shipped = {name for name, entry in catalogue.ENTRIES.items() if entry.family != "own"}
    assert set(PROOFS) == shipped
    for proof in {proof for some in PROOFS.values() for proof in some}:
        name, _, kind = proof.partition("::")
        text = (ROOT / "tests" / "middleware" / name).read_text()
        assert f"class {kind}:" in text if kind else "def test_" in text, proof


def test_the_command_says_what_is_wrong_and_fails(tmp_path):
    bad = json.loads(EXAMPLES[0].read_text()) | {"middleware": [{"use": "tool_retry", "max_retries": 2}]}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(bad))
    said = StringIO()
    with pytest.raises(CommandError, match="1 of 2"):
        call_command("agent", "check", str(EXAMPLES[0]), str(path), stdout=said, no_color=True)
    assert "bad.json: error:" in said.getvalue()
    assert "bad.json: note:" in said.getvalue()


def test_the_catalogue_command_lists_options():
    said = StringIO()
    call_command("agent", "catalogue", json=True, stdout=said)
    listed = {entry["name"]: entry for entry in json.loads(said.getvalue())}
    assert set(listed) == set(catalogue.ENTRIES)
    assert {"name", "hooks", "options_schema", "available"} <= set(listed["pii"])

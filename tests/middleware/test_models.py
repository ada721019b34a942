"""What stands around the model, in the whole product."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine.conftest import call, refund
from tests.middleware.conftest import ORDER, PAY, Bench
from tests.middleware.models import says

LOOK: dict[str, Any] = {"calls": [ORDER]}
DOWN = {"raise": "the provider is down"}
QUICK = {"initial_delay": 0.01, "max_delay": 0.01, "jitter": False}


class TestModelFallback:
    def test_the_next_model_answers(self, bench: Bench):
        bench.publish({"use": "model_fallback", "models": [says(fails="no"), says("the second answers")]})
        assert bench.run(DOWN).answer == "the second answers"
        assert bench.noted("model_fallback") == [{"what": "model", "name": "Says"}]

    def test_when_all_fail_the_run_fails_with_the_last_reason(self, bench: Bench):
        bench.publish({"use": "model_fallback", "models": [says(fails="nobody is there")]})
        assert "nobody is there" in bench.fails(bench.start(DOWN))


class TestModelRetry:
    def flaky(self, bench: Bench, times: int, **options: Any) -> None:
        left = bench.folder / "left"
        left.write_text(str(times))
        retry = {"use": "model_retry", "max_retries": 2, **QUICK, **options}
        bench.publish(retry, model="demo:flaky", model_options={"times": str(left)})

    def test_a_call_that_failed_is_made_again(self, bench: Bench):
        self.flaky(bench, 2)
        assert bench.run({"text": "at last"}).answer == "at last"
        assert bench.noted("model_retry") == [{"what": "attempts", "n": 3, "of": 3}]

    def test_when_all_repeats_fail_the_run_fails(self, bench: Bench):
        self.flaky(bench, 3)
        assert "no answer" in bench.fails(bench.start({"text": "never"}))

    def test_or_ends_in_words_if_it_was_told_to(self, bench: Bench):
        self.flaky(bench, 3, on_failure="plain")
        assert (
            bench.run({"text": "never"}).answer == "The model could not be reached. Please try again later."
        )

    def test_an_error_that_is_not_listed_is_not_repeated(self, bench: Bench):
        self.flaky(bench, 1, retry_on=["timeout"])
        bench.fails(bench.start({"text": "never"}))
        assert (bench.folder / "left").read_text() == "0"


class TestModelRefusal:
    REFUSAL = says(blocks=[{"type": "refusal", "refusal": "I will not."}])

    def test_a_refusal_goes_to_the_fallback(self, bench: Bench):
        bench.publish(
            {"use": "model_fallback", "models": [says("I will.")]},
            {"use": "model_refusal"},
            model=self.REFUSAL["model"],
            model_options=self.REFUSAL["options"],
        )
        assert bench.run({"text": "x"}).answer == "I will."

    def test_without_a_fallback_the_run_fails(self, bench: Bench):
        refusal = self.REFUSAL
        bench.publish({"use": "model_refusal"}, model=refusal["model"], model_options=refusal["options"])
        assert "ModelRefusalError" in bench.fails(bench.start({"text": "x"}))


class TestModelRouter:
    def router(self, verdict: str) -> dict[str, Any]:
        return {
            "use": "model_router",
            "choices": {
                "small": {"model": says("small"), "criteria": "easy"},
                "large": {"model": says("large"), "criteria": "hard"},
            },
            "instructions": "Choose the cheapest that can do it.",
            "classifier": {"model": says(verdict)},
        }

    def test_the_chosen_model_answers_the_whole_run(self, bench: Bench):
        bench.publish(self.router('{"model_route": "large"}'))
        assert bench.run({"text": "x"}).answer == "large"
        assert bench.noted("model_router") == [{"what": "model", "name": "Says"}]

    def test_a_judge_that_names_nobody_fails_the_run(self, bench: Bench):
        bench.publish(self.router('{"model_route": "nobody"}'))
        assert "Unclear" in bench.fails(bench.start({"text": "x"}))


class TestToolSelector:
    def test_the_model_sees_only_what_was_selected(self, bench: Bench):
        chosen = says(call={"tools": ["read_policy"]})
        bench.publish(
            {"use": "llm_tool_selector", "model": chosen, "max_tools": 1, "always_include": ["lookup_order"]}
        )
        bench.run({"text": "end"})
        assert sorted(bench.sent[0]["tools"]) == ["lookup_order", "read_policy"]
        assert bench.noted("llm_tool_selector") == [{"what": "tools", "n": 2, "of": 3}]

    def test_a_selection_that_cannot_be_read_fails_the_run_unless_told_otherwise(self, bench: Bench):
        lost = {"use": "llm_tool_selector", "model": says(call={"nothing": 1}), "max_retries": 0}
        bench.publish(lost)
        assert bench.fails(bench.start({"text": "end"}))
        bench.publish(lost | {"on_parsing_failure": "all"})
        bench.run({"text": "end"})
        assert len(bench.sent[-1]["tools"]) == 3


class TestDynamicPrompt:
    LINES: dict[str, Any] = {
        "use": "dynamic_prompt",
        "lines": ["The customer is {customer_name}.", "Order {order_id}."],
        "for_roles": {"finance": "You speak with finance.", "support": "You speak with support."},
    }

    def systems(self, bench: Bench) -> list[str]:
        return [m["text"] for sent in bench.sent for m in sent["messages"] if m["type"] == "system"]

    def test_each_call_is_told_once_and_nothing_is_stored(self, bench: Bench):
        bench.publish(self.LINES)
        run = bench.run(LOOK, {"text": "end"}, customer_name="Li Wei")
        bench.more(run, {"text": "end"})
        systems = self.systems(bench)
        assert len(systems) == 3
        assert {text.count("The customer is Li Wei.") for text in systems} == {1}
        assert {text.count("You speak with support.") for text in systems} == {1}
        assert "You speak with finance." not in systems[0]
        assert bench.noted("dynamic_prompt") == [{"what": "prompt"}] * 3

    def test_a_line_whose_place_is_not_known_is_left_out(self, bench: Bench):
        bench.publish(self.LINES)
        bench.run({"text": "end"})
        (text,) = self.systems(bench)
        assert "The customer is" not in text
        assert "Order" not in text


class TestAutoMode:
    def judged(self, bench: Bench, verdict: str) -> Any:
        auto = {"use": "auto_mode", "tools": ["issue_refund"], "classifier": {"model": says(verdict)}}
        bench.publish(PAY, auto, tools=("issue_refund",))
        return bench.start({"calls": [refund("A-20455", 3)]}, {"text": "end"})

    def test_a_risky_call_is_blocked_even_after_an_approval(self, bench: Bench):
        run = self.judged(bench, '{"is_risky": 0.9}')
        before = len(bench.effects("A-20455"))
        bench.decide(bench.request(run), "approve")
        bench.until(run, "success")
        assert "classified as risky" in bench.told(run)[0]
        assert len(bench.effects("A-20455")) == before
        assert bench.noted("auto_mode") == [{"what": "answered"}]

    def test_a_safe_one_runs(self, bench: Bench):
        run = self.judged(bench, '{"is_risky": 0.1}')
        before = len(bench.effects("A-20455"))
        bench.decide(bench.request(run), "approve")
        bench.until(run, "success")
        assert len(bench.effects("A-20455")) == before + 1
        assert bench.noted("auto_mode") == [{"what": "passed"}]

    def test_a_judge_that_fails_lets_nothing_run(self, bench: Bench):
        run = self.judged(bench, "who knows")
        before = len(bench.effects("A-20455"))
        bench.decide(bench.request(run), "approve")
        assert "Unclear" in bench.fails(run)
        assert len(bench.effects("A-20455")) == before


class TestProviderToolSearch:
    SEARCH: dict[str, Any] = {"use": "provider_tool_search", "searchable_tools": ["read_policy"]}

    def test_the_provider_is_asked_to_search(self, bench: Bench, anthropic_server: Any):
        from tests.providers.loopback import Say

        anthropic_server.reset(lambda turn: Say("done"))
        bench.publish(
            self.SEARCH,
            model="anthropic:claude-sonnet-5-5",
            base_url=anthropic_server.base_url,
            api_key_env="LOOPBACK_KEY",
            model_options={},
        )
        bench.run({"text": "x"})
        tools = {tool["name"]: tool for tool in anthropic_server.received[-1].body["tools"]}
        assert tools["read_policy"]["defer_loading"] is True
        assert "defer_loading" not in tools["lookup_order"]
        assert tools["tool_search_tool_bm25"]["type"].startswith("tool_search_tool_bm25")
        assert bench.noted("provider_tool_search") == [{"what": "deferred"}]

    def test_with_a_model_of_another_house_the_run_fails(self, bench: Bench):
        with pytest.raises(AssertionError, match="works with anthropic / openai only"):
            bench.publish(self.SEARCH)


def test_hooks_run_as_often_and_in_the_order_that_the_page_says(bench: Bench):
    """Three model calls and two tool calls; two instances, so that the onion shows."""
    log = bench.folder / "hooks"
    outer, inner = ({"use": "six", "log": str(log), "id": name} for name in ("outer", "inner"))
    bench.publish(outer, inner)
    bench.run(LOOK, {"calls": [call("read_policy", topic="return window")]}, {"text": "end"})
    lines = log.read_text().splitlines()
    counts = {line: lines.count(line) for line in lines if line.startswith("outer")}
    assert counts == {
        "outer before_agent": 1, "outer after_agent": 1, "outer before_model": 3, "outer after_model": 3,
        "outer wrap_model_call in": 3, "outer wrap_model_call out": 3,
        "outer wrap_tool_call in": 2, "outer wrap_tool_call out": 2,
    }  # fmt: skip
    assert lines[:8] == [
        "outer before_agent", "inner before_agent", "outer before_model", "inner before_model",
        "outer wrap_model_call in", "inner wrap_model_call in", "inner wrap_model_call out", "outer wrap_model_call out",
    ]  # fmt: skip
    assert lines[8:14] == [
        "inner after_model", "outer after_model",
        "outer wrap_tool_call in", "inner wrap_tool_call in", "inner wrap_tool_call out", "outer wrap_tool_call out",
    ]  # fmt: skip
    assert lines[-2:] == ["inner after_agent", "outer after_agent"]


def test_short_circuits_leave_legal_messages(bench: Bench):
    """A refused call has its tool message; a jump to the end has its answer; both can be gone on from."""
    log = str(bench.folder / "hooks")
    bench.publish({"use": "six", "log": log, "refuse": "lookup_order", "stop_at": 2})
    run = bench.run(LOOK, LOOK, {"text": "never"})
    assert run.answer == "stopped by six"
    assert bench.told(run) == ["refused by six", "refused by six"]
    bench.more(run, {"text": "again"})
    kinds = [message["type"] for message in bench.sent[-1]["messages"]]
    assert kinds == ["system", "human", "ai", "tool", "ai", "tool", "ai", "human"]


def test_every_example_of_the_prebuilt_page_runs_on_the_scripted_model(bench: Bench):
    """Models become scripted ones, folders this test's; what needs a provider is proved in test_providers.py."""
    from pathlib import Path

    from agents.catalogue import AgentSpec
    from agents.exchange import examine
    from approvals.actors import SYSTEM
    from approvals.services import agents

    folder = Path(__file__).resolve().parents[2] / "examples" / "agents"
    alone = ("anthropic", "bedrock", "openai", "shell-docker", "summarization-fraction", "llm-tool-selector")
    runs = []
    for path in sorted(folder.glob("*.json")):
        if path.stem.startswith(alone):
            continue
        spec = _scripted(json.loads(path.read_text()), bench) | {
            "slug": f"x-{path.stem}",
            "model": "demo:scripted",
        }
        made = AgentSpec.model_validate(spec)
        assert [lint.text for lint in examine(made) if lint.level == "error"] == [], path.stem
        agents.publish(actor=SYSTEM, spec=made)
        bench.slug = made.slug
        tool = [call("lookup_order", order_id="A-20931")] if "lookup_order" in made.tools else []
        runs.append(
            (
                path.stem,
                bench.start({"calls": tool}, {"text": "end"}) if tool else bench.start({"text": "end"}),
            )
        )
    for name, run in runs:
        bench.until(run, "success", "error", "parked")
        assert (name, run.status, run.error) == (name, "success", "")


def _scripted(value: Any, bench: Bench) -> Any:
    """The same with our models and folders."""
    if isinstance(value, dict):
        return {key: _scripted(found, bench) for key, found in value.items()}
    if isinstance(value, list):
        return [_scripted(found, bench) for found in value]
    if isinstance(value, str) and value.startswith(("openai:", "anthropic:")):
        return "demo:scripted"
    return str(bench.folder) if value == "/workspace" else value

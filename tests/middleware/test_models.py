"""What stands around the model, in the whole product."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.catalogue import AgentSpec
from agents.exchange import examine
from approvals.actors import SYSTEM
from approvals.services import agents
from tests.engine.conftest import call, refund
from tests.middleware.conftest import ORDER, PAY, Bench
from tests.middleware.models import says
from tests.middleware.servers import DECISIONS
from tests.providers.brain import script
from tests.providers.loopback import Say

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


class TestOpenaiDecisions:
    """The two that can ask OpenAI's Decisions API in place of a chat model."""

    def judge(self, server: Any) -> dict[str, Any]:
        server.reset(script(Say("never asked")))
        where = {"model": "openai:gpt-6-luna", "base_url": server.base_url, "api_key_env": "LOOPBACK_KEY"}
        return {"use": "openai_decisions", "model": where}

    def test_a_risky_call_is_blocked(self, bench: Bench, openai_server: Any):
        judge = self.judge(openai_server)
        openai_server.decided = {"is_risky": {"type": "predicate", "probability": 0.9}}
        auto = {"use": "auto_mode", "tools": ["issue_refund"], "classifier": judge, "risky_when": "it pays"}
        bench.publish(PAY, auto, tools=("issue_refund",))
        run = bench.start({"calls": [refund("A-20455", 3)]}, {"text": "end"})
        before = len(bench.effects("A-20455"))
        bench.decide(bench.request(run), "approve")
        bench.until(run, "success")
        assert "classified as risky" in bench.told(run)[0]
        assert len(bench.effects("A-20455")) == before
        (asked,) = [received.body for received in openai_server.received if received.path == DECISIONS]
        assert asked["model"] == "gpt-6-luna"
        assert "Answer yes if: it pays" in asked["questions"][0]["instructions"]

    def test_a_route_is_chosen(self, bench: Bench, openai_server: Any):
        judge = self.judge(openai_server)
        chosen = {
            "choice": "large",
            "probabilities": [{"value": "large", "probability": 1.0}],
            "confidence": 1.0,
        }
        openai_server.decided = {"model_route": {"type": "choice", **chosen}}
        bench.publish(TestModelRouter().router("") | {"classifier": judge})
        assert bench.run({"text": "x"}).answer == "large"

    def test_a_service_that_fails_lets_nothing_run(self, bench: Bench, openai_server: Any):
        judge = self.judge(openai_server)
        openai_server.decided = {"is_risky": {"type": "predicate", "probability": "?"}}
        auto = {"use": "auto_mode", "tools": ["issue_refund"], "classifier": judge}
        bench.publish(PAY, auto, tools=("issue_refund",))
        run = bench.start({"calls": [refund("A-20455", 3)]}, {"text": "end"})
        before = len(bench.effects("A-20455"))
        bench.decide(bench.request(run), "approve")
        assert "Invalid response from the OpenAI Decisions API" in bench.fails(run)
        assert len(bench.effects("A-20455")) == before


class TestProviderToolSearch:
    SEARCH: dict[str, Any] = {"use": "provider_tool_search", "searchable_tools": ["read_policy"]}

    def test_the_provider_is_asked_to_search(self, bench: Bench, anthropic_server: Any):

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


EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "agents"


def test_every_example_of_the_prebuilt_page_runs_on_the_scripted_model(bench: Bench, openai_server: Any):
    """Models become scripted ones, folders this test's, containers shells of this machine (what Docker would be told is
    proved in test_files.py), and OpenAI's moderation a loopback server."""
    openai_server.reset(script(Say("never asked")))
    runs = {}
    for path in sorted(EXAMPLES.glob("*.json")):
        given = _scripted(json.loads(path.read_text()), bench, openai_server.base_url)
        spec = AgentSpec.model_validate(given | {"slug": f"x-{path.stem}", "model": "demo:scripted"})
        assert [lint.text for lint in examine(spec) if lint.level == "error"] == [], path.stem
        agents.publish(actor=SYSTEM, spec=spec)
        bench.slug = spec.slug
        look = {"calls": [call("lookup_order", order_id="A-20931")]}
        said = [look, {"text": "end"}] if "lookup_order" in spec.tools else [{"text": "end"}]
        runs[path.stem] = bench.start(*said)
    for run in runs.values():
        bench.until(run, "success", "error", "parked")
    assert {name: run.error for name, run in runs.items() if run.status != "success"} == {}
    assert len(runs) >= 44


def _scripted(value: Any, bench: Bench, moderation: str) -> Any:
    """The same with what there is here."""
    if isinstance(value, dict):
        changed = {key: _scripted(found, bench, moderation) for key, found in value.items()}
        match value:
            case {"use": "docker"}:
                return {"use": "host"}
            case {"use": "openai_moderation"}:
                return changed | {"base_url": moderation, "api_key_env": "LOOPBACK_KEY"}
            case {"use": "llm_tool_selector"}:
                return changed | {"model": says(call={"tools": ["read_policy"]})}
            case {"use": "summarization", "trigger": ["fraction", _]}:
                sized = {"profile": {"max_input_tokens": 4_000}}
                return changed | {"model": {"model": "demo:scripted", "options": sized}}
        return changed
    if isinstance(value, list):
        return [_scripted(found, bench, moderation) for found in value]
    if isinstance(value, str) and value.startswith(("openai:", "anthropic:")):
        return "demo:scripted"
    return str(bench.folder) if value == "/workspace" else value

"""What stands around tool calls, and what keeps the conversation small and clean, in the whole product."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.conftest import call, refund
from tests.middleware.conftest import ORDER, PAY, READS, Bench, FreshWorker
from tests.middleware.models import says
from tests.providers.conftest import tables_with

LOOK: dict[str, Any] = {"calls": [ORDER]}
POLICY: dict[str, Any] = {"calls": [call("read_policy", topic="return window")]}
ERRORS = {"use": "tool_error", "tools": list(READS)}


class TestToolError:
    def test_the_model_is_told_that_a_read_failed(self, bench: Bench):
        bench.publish(ERRORS)
        bench.fault("down", path="/orders")
        run = bench.run(LOOK, {"text": "it is not available"})
        assert run.answer == "it is not available"
        assert "lookup_order failed" in bench.told(run)[0]
        assert bench.noted("tool_error") == [{"what": "told"}]

    def test_without_it_the_run_fails(self, bench: Bench):
        bench.publish()
        bench.fault("down", path="/orders")
        assert bench.fails(bench.start(LOOK, {"text": "never"}))


class TestToolRetry:
    RETRY: dict[str, Any] = {
        "use": "tool_retry",
        "tools": ["lookup_order"],
        "max_retries": 2,
        "initial_delay": 0.01,
    }

    def test_a_read_that_failed_is_made_again(self, bench: Bench):
        bench.publish(ERRORS, {"use": "write_guard"}, self.RETRY, plain=True)
        bench.fault("down", path="/orders", times=2)
        assert "A-20931" in bench.told(bench.run(LOOK, {"text": "end"}))[0]
        assert bench.noted("tool_retry") == [{"what": "attempts", "n": 3, "of": 3}]

    def test_when_all_repeats_fail_the_error_is_told(self, bench: Bench):
        bench.publish(ERRORS, {"use": "write_guard"}, self.RETRY, plain=True)
        bench.fault("down", path="/orders", times=30)
        assert "lookup_order failed" in bench.told(bench.run(LOOK, {"text": "end"}))[0]


class TestWriteGuard:
    def test_a_tool_that_the_agent_does_not_have_is_refused(self, bench: Bench):
        bench.publish()
        run = bench.run({"calls": [refund("A-20455", 2)]}, {"text": "end"})
        assert "Refused: issue_refund is not a tool of this agent" in bench.told(run)[0]
        assert "2.00" not in bench.amounts("A-20455")
        assert bench.noted("write_guard") == [{"what": "answered"}]

    def test_a_known_read_runs(self, bench: Bench):
        bench.publish()
        assert "A-20931" in bench.told(bench.run(LOOK, {"text": "end"}))[0]


class TestToolEmulator:
    def test_nothing_is_asked_of_the_shop(self, bench: Bench):
        bench.publish({"use": "llm_tool_emulator", "model": says("made up")})
        bench.fault("down", path="/orders")
        assert bench.told(bench.run(LOOK, {"text": "end"})) == ["made up"]
        assert {"what": "answered"} in bench.noted("llm_tool_emulator")

    def test_a_gated_call_still_waits_for_a_person_and_then_changes_nothing(self, bench: Bench):
        bench.publish(PAY, {"use": "llm_tool_emulator", "model": says("paid")}, tools=("issue_refund",))
        run = bench.start({"calls": [refund("A-20455", 4)]}, {"text": "end"})
        bench.decide(bench.request(run), "approve")
        bench.until(run, "success")
        assert "4.00" not in bench.amounts("A-20455")

    def test_a_model_that_fails_fails_the_run(self, bench: Bench):
        bench.publish({"use": "llm_tool_emulator", "model": says(fails="no fantasy")})
        assert "no fantasy" in bench.fails(bench.start(LOOK))


class TestToolsByRole:
    ROLES: dict[str, Any] = {"use": "role_tools", "allow": {"issue_refund": ["finance"]}}

    def test_who_lacks_the_role_is_not_offered_the_tool_and_cannot_call_it(self, bench: Bench):
        bench.publish(self.ROLES, PAY, tools=("lookup_order", "issue_refund"))
        run = bench.run({"calls": [refund("A-20455", 6)]}, {"text": "end"})
        assert bench.sent[0]["tools"] == ["lookup_order"]
        assert "may not use issue_refund" in bench.told(run)[0]
        assert run.requests.count() == 0
        few = {"what": "tools", "n": 1, "of": 2}
        assert bench.noted("role_tools") == [few, {"what": "answered"}, few]

    def test_who_has_it_is_asked_about_as_ever(self, bench: Bench):
        bench.publish(self.ROLES, PAY, tools=("lookup_order", "issue_refund"))
        run = bench.start({"calls": [refund("A-20455", 6)]}, {"text": "end"}, by=bench.fay)
        bench.decide(bench.request(run), "reject", message="no")
        bench.until(run, "success")
        assert "issue_refund" in bench.sent[0]["tools"]


class TestObserver:
    def test_times_and_counts_are_in_the_log_and_nothing_else(self, bench: Bench, bench_worker: FreshWorker):
        bench.publish({"use": "observer"})
        run = bench.run(LOOK, {"text": "the secret answer"})
        log = [
            line
            for line in bench_worker.output(200_000).splitlines()
            if str(run.thread_id) in line and "observer" in line
        ]
        assert any("lookup_order done after" in line for line in log)
        assert any("run ends, model_calls 2, tool_calls 1, tool_errors 0" in line for line in log)
        assert not any("A-20931" in line or "secret" in line for line in log)

    def test_a_call_that_fails_is_noted_as_failed(self, bench: Bench, bench_worker: FreshWorker):
        bench.publish({"use": "observer"})
        bench.fault("down", path="/orders")
        run = bench.start(LOOK)
        bench.fails(run)
        assert f"case {run.thread_id}: lookup_order failed after" in bench_worker.output(200_000)


class TestSummarization:
    def summary(self, **model: Any) -> dict[str, Any]:
        return {
            "use": "summarization",
            "model": says(**model),
            "trigger": ["messages", 4],
            "keep": ["messages", 2],
        }

    def test_old_messages_become_a_summary_and_stay_on_the_timeline(self, bench: Bench):
        bench.publish(self.summary(text="THE SUMMARY"), LATER)
        run = bench.say("first")
        bench.until(run, "success")
        second = bench.more(run, {"text": "two"})
        bench.more(second, {"text": "three"})
        last = bench.sent[-1]["messages"]
        assert any("THE SUMMARY" in message["text"] for message in last)
        assert len(last) <= 4
        assert not any(message["text"] == "first" for message in last)
        assert run.steps.filter(text="first").exists()
        assert bench.noted("summarization") == [{"what": "shortened", "n": 3}]

    def test_a_summary_that_cannot_be_made_fails_the_run(self, bench: Bench):
        bench.publish(self.summary(fails="no summary today"))
        run = bench.start(LOOK, LOOK, LOOK, {"text": "never"})
        assert "no summary today" in bench.fails(run)


LATER: dict[str, Any] = {"use": "observer", "id": "later"}


class TestContextEditing:
    EDIT: dict[str, Any] = {
        "use": "context_editing",
        "edits": [{"trigger": 1, "keep": 1, "placeholder": "[cleared]"}],
    }

    def results(self, bench: Bench) -> list[str]:
        return [m["text"] for m in bench.sent[-1]["messages"] if m["type"] == "tool"]

    def test_old_results_are_left_out_of_the_request_only(self, bench: Bench):
        bench.publish(self.EDIT)
        run = bench.run(LOOK, POLICY, {"text": "end"})
        sent = self.results(bench)
        assert sent[0] == "[cleared]"
        assert sent[1] != "[cleared]"
        assert "A-20931" in bench.told(run)[0]
        assert bench.noted("context_editing") == [{"what": "cleared", "n": 1}]

    def test_a_tool_that_is_spared_is_sent_whole(self, bench: Bench):
        bench.publish(
            {
                "use": "context_editing",
                "edits": [{"trigger": 1, "keep": 0, "exclude_tools": ["lookup_order"]}],
            }
        )
        bench.run(LOOK, POLICY, {"text": "end"})
        assert "A-20931" in self.results(bench)[0]
        assert self.results(bench)[1] == "[cleared]"


class TestTodoList:
    PLAN: dict[str, Any] = {
        "calls": [call("write_todos", todos=[{"content": "look it up", "status": "in_progress"}])]
    }

    def test_the_list_is_kept_and_the_model_is_told_how(self, bench: Bench):
        bench.publish({"use": "todo_list", "system_prompt": "PLAN FIRST."})
        run = bench.run(self.PLAN, {"text": "end"})
        assert "look it up" in bench.told(run)[0]
        assert "write_todos" in bench.sent[0]["tools"]
        assert "PLAN FIRST." in bench.sent[0]["messages"][0]["text"]
        assert bench.noted("todo_list") == [{"what": "todos", "n": 0, "of": 1}]

    def test_two_lists_in_one_turn_are_refused(self, bench: Bench):
        bench.publish({"use": "todo_list"})
        run = bench.run({"calls": self.PLAN["calls"] * 2}, {"text": "end"})
        assert all("multiple" in text.lower() for text in bench.told(run))


class TestPii:
    MAIL = "write to li.wei@example.com please"

    def test_the_model_and_the_timeline_see_it_masked(self, bench: Bench):
        bench.publish({"use": "pii", "pii_type": "email", "strategy": "redact"})
        run = bench.until(bench.say(self.MAIL), "success")
        assert bench.sent[0]["messages"][-1]["text"] == "write to [REDACTED_EMAIL] please"
        assert [step.text for step in run.steps.filter(kind="message")] == [
            "write to [REDACTED_EMAIL] please"
        ]
        assert bench.noted("pii") == [{"what": "masked", "n": 1}]

    def test_answers_and_tool_results_are_masked_where_people_read_them(self, bench: Bench):
        bench.publish(
            {"use": "pii", "pii_type": "email", "apply_to_output": True},
            {"use": "pii", "pii_type": "order", "detector": "A-20931", "apply_to_tool_results": True},
        )
        run = bench.run(LOOK, {"text": "I wrote to li.wei@example.com"})
        assert run.answer == "I wrote to [REDACTED_EMAIL]"
        assert "A-20931" not in bench.told(run)[0]

    def test_a_blocked_kind_fails_the_run_and_the_model_is_never_asked(self, bench: Bench):
        bench.publish({"use": "pii", "pii_type": "ssn", "detector": {"use": "us_ssn"}, "strategy": "block"})
        assert "PIIDetectionError" in bench.fails(bench.say("my number is 123-45-6789"))
        assert bench.sent == []

    def test_a_number_that_cannot_exist_is_none(self, bench: Bench):
        bench.publish({"use": "pii", "pii_type": "ssn", "detector": {"use": "us_ssn"}, "strategy": "block"})
        bench.until(bench.say("order 000-45-6789"), "success")

    def test_what_the_notes_say_is_true_the_first_checkpoint_keeps_the_original(self, bench: Bench):
        bench.publish({"use": "pii", "pii_type": "email"})
        bench.until(bench.say("write to unmasked.name@example.com"), "success")
        assert any(table.startswith("checkpoint") for table in tables_with("unmasked.name@example.com"))


@pytest.mark.parametrize(
    ("detector", "found", "spared"),
    [
        ("us_ssn", "123-45-6789", "666-45-6789"),
        ("cn_id_card", "11010519491231002X", "110105194912310021"),
        ("iban", "DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
        ("phone", "+86 138 0013 8000", "A-2093112345"),
    ],
)
def test_detectors_know_real_ones_from_made_up_ones(detector: str, found: str, spared: str):
    from middleware.detectors import DETECTORS

    text = f"here: {found}, and {spared}."
    (match,) = DETECTORS[detector](text)
    assert match["text"] == found
    assert text[match["start"] : match["end"]] == found

"""Approvals and limits, in the whole product."""

from __future__ import annotations

from typing import Any

from tests.engine.conftest import refund
from tests.middleware.conftest import ORDER, PAY, Bench

LOOK: dict[str, Any] = {"calls": [ORDER]}
WRITES = ("lookup_order", "issue_refund")


def grant(bench: Bench, run: Any, extra: int) -> Any:
    request = bench.request(run)
    assert request.kind == "limit"
    bench.decide(request, "grant", grant=extra)
    return request


class TestHumanInTheLoop:
    def test_a_call_waits_and_runs_once_in_another_process(self, bench: Bench):
        bench.publish(PAY, tools=WRITES)
        run = bench.start({"calls": [refund("A-20455", 5)]}, {"text": "paid"})
        request = bench.request(run)
        assert "5.00" not in bench.amounts("A-20455")
        bench.decide(request, "approve")
        bench.until(run, "success")
        assert bench.amounts("A-20455").count("5.00") == 1

    def test_a_rejected_call_does_not_run(self, bench: Bench):
        bench.publish(PAY, tools=WRITES)
        run = bench.start({"calls": [refund("A-20877", 5)]}, {"text": "sorry"})
        bench.decide(bench.request(run), "reject", message="no photo")
        bench.until(run, "success")
        assert "5.00" not in bench.amounts("A-20877")
        assert "no photo" in bench.told(run)[0]


class TestModelCallLimit:
    def test_it_asks_and_a_grant_goes_on(self, bench: Bench):
        limit = {"use": "model_call_limit", "run_limit": 2, "hard_cap": 4, "on_limit": "ask"}
        bench.publish(limit, {"use": "write_guard"}, plain=True)
        run = bench.start(LOOK, LOOK, LOOK, {"text": "end"})
        assert grant(bench, run, 2).value["used"] == 2
        bench.until(run, "success")
        assert len(bench.sent) == 4
        assert run.answer == "end"

    def test_nobody_gets_over_the_hard_cap(self, bench: Bench):
        limit = {"use": "model_call_limit", "run_limit": 1, "hard_cap": 2, "on_limit": "ask"}
        bench.publish(limit, {"use": "write_guard"}, plain=True)
        run = bench.start(LOOK, LOOK, LOOK)
        grant(bench, run, 1)
        bench.until(run, "success")
        assert run.answer == "Stopped after 2 model calls: the hard limit is 2."
        assert len(bench.sent) == 2
        assert {"what": "ended"} in bench.noted("model_call_limit")

    def test_langchains_own_ends_the_run(self, bench: Bench):
        bench.publish({"use": "model_call_limit", "thread_limit": 1}, {"use": "write_guard"}, plain=True)
        run = bench.run(LOOK, {"text": "never"})
        assert "Model call limits exceeded" in run.answer


class TestToolCallLimit:
    def test_it_asks_once_for_all_calls_over_the_limit(self, bench: Bench):
        limit = {
            "use": "tool_call_limit",
            "tool_name": "lookup_order",
            "run_limit": 1,
            "hard_cap": 3,
            "on_limit": "ask",
        }
        bench.publish(limit)
        run = bench.start({"calls": [ORDER, ORDER, ORDER]}, {"text": "end"})
        request = grant(bench, run, 1)
        assert len(request.value["over"]) == 2
        bench.until(run, "success")
        told = bench.told(run)
        assert sum("Not run: the limit" in text for text in told) == 1
        assert len(told) == 3
        assert bench.noted("tool_call_limit") == [
            {"what": "refused", "n": 1},
            {"what": "limit", "n": 2, "of": 2, "tool": "lookup_order"},
        ]

    def test_langchains_own_blocks_what_is_over(self, bench: Bench):
        bench.publish({"use": "tool_call_limit", "tool_name": "lookup_order", "thread_limit": 1})
        run = bench.run({"calls": [ORDER, ORDER]}, {"text": "end"})
        assert sum("Tool call limit exceeded" in text for text in bench.told(run)) == 1


class TestSpendLimit:
    def test_it_asks_before_the_next_call_and_counts_what_was_granted(self, bench: Bench):
        bench.publish({"use": "spend_limit", "tokens": 15, "hard_cap": 100})
        run = bench.start(LOOK, LOOK, LOOK, LOOK, {"text": "never"})
        request = grant(bench, run, 15)  # each call of this model costs 10
        assert (request.value["used"], request.value["max_extra"]) == (20, 80)
        bench.decide(bench.request(run), "stop", message="enough")
        bench.until(run, "success")
        assert run.answer == "Stopped after 40 tokens: enough."
        assert {"what": "spent", "n": 20, "of": 35, "unit": "tokens"} in bench.noted("spend_limit")

    def test_money_has_a_hard_cap(self, bench: Bench):
        prices = {"input_price": 1000, "output_price": 1000, "currency": "EUR"}
        bench.publish({"use": "spend_limit", "cost": 0.01, **prices})
        assert bench.run(LOOK, LOOK).answer == "Stopped after EUR 0.01: the hard limit is EUR 0.01."


class TestRepeatGuard:
    def test_a_rejected_call_opens_no_second_card(self, bench: Bench):
        bench.publish({"use": "repeat_guard"}, PAY, tools=WRITES)
        same = {"calls": [refund("A-20877", 7)]}
        run = bench.start(same, same, {"calls": [refund("A-20877", 8)]}, {"text": "end"})
        bench.decide(bench.request(run), "reject", message="no photo")
        second = bench.request(run)
        assert second.args["amount"] == 8  # another amount is a new proposal
        bench.decide(second, "reject", message="still none")
        bench.until(run, "success")
        assert run.requests.count() == 2
        assert "that answer stands" in bench.told(run)[1]
        assert "no photo" in bench.told(run)[1]
        assert not {"7.00", "8.00"} & set(bench.amounts("A-20877"))
        assert bench.noted("repeat_guard") == [{"what": "answered"}]

"""Sub-agents under the gate of their agent, in the whole product (cases 29, 32, 33)."""

from __future__ import annotations

import json
from typing import Any

from tests.engine.conftest import call, refund
from tests.middleware.conftest import ORDER, PAY, Bench


def task(name: str, *script: dict[str, Any]) -> list[Any]:
    """The helper's own script stands in its task."""
    return call("task", description=json.dumps({"script": list(script)}), subagent_type=name)


PAYER: dict[str, Any] = {"name": "payer", "description": "pays money back", "tools": ["issue_refund"]}
READER: dict[str, Any] = {"name": "reader", "description": "looks orders up", "tools": ["lookup_order"]}
TOOLS = ("lookup_order",)
CHAIR = "A-20925"  # an order with room for many payments


def helpers(*some: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"use": "subagents", "subagents": list(some), "general_purpose": False, **more}


def pay(amount: float, order: str = "A-20877") -> list[Any]:
    return task("payer", {"calls": [refund(order, amount)]}, {"text": f"paid {amount}"})


def test_a_helper_does_its_task_and_gives_back_its_answer(bench: Bench):
    bench.publish(helpers(READER), tools=())
    run = bench.run(
        {"calls": [task("reader", {"calls": [ORDER]}, {"text": "found the lamp"})]}, {"text": "end"}
    )
    assert bench.told(run, "task") == ["found the lamp"]


def test_a_call_of_a_helper_waits_for_a_person_and_runs_once(bench: Bench):
    bench.publish(PAY, helpers(PAYER), tools=TOOLS)
    run = bench.start({"calls": [pay(11)]}, {"text": "end"})
    request = bench.request(run)
    assert (request.tool, request.args["amount"], request.path) == ("issue_refund", 11, ["payer"])
    assert "11.00" not in bench.amounts("A-20877")
    bench.decide(request, "approve")
    bench.until(run, "success")
    assert bench.amounts("A-20877").count("11.00") == 1
    assert bench.told(run, "task") == ["paid 11"]


def test_a_helpers_call_that_is_rejected_or_edited_is_told_to_the_helper(bench: Bench):
    bench.publish(PAY, helpers(PAYER), tools=TOOLS)
    run = bench.start({"calls": [pay(12)]}, {"calls": [pay(13)]}, {"text": "end"})
    bench.decide(bench.request(run), "reject", message="no photo")
    second = bench.request(run)
    bench.decide(second, "edit", args=dict(second.args) | {"amount": 14})
    bench.until(run, "success")
    assert "12.00" not in bench.amounts("A-20877")
    assert "13.00" not in bench.amounts("A-20877")
    assert bench.amounts("A-20877").count("14.00") == 1


def test_helpers_side_by_side_each_ask_and_a_sibling_of_the_agent_too(bench: Bench):
    """Three open questions of one run; answered out of order, each effect once, none repeated."""
    bench.publish(PAY, helpers(PAYER), tools=("lookup_order", "issue_refund"))
    run = bench.start({"calls": [pay(21), pay(22), refund("A-20877", 23), ORDER]}, {"text": "end"})
    requests = {request.args["amount"]: request for request in bench.requests(run, 3)}
    assert {amount: request.path for amount, request in requests.items()} == {
        21: ["payer"],
        22: ["payer"],
        23: [],
    }
    bench.decide(requests[22], "approve")
    bench.requests(run, 2)
    bench.decide(requests[23], "approve")
    bench.requests(run, 1)
    bench.decide(requests[21], "reject", message="no")
    bench.until(run, "success")
    amounts = bench.amounts("A-20877")
    assert (amounts.count("21.00"), amounts.count("22.00"), amounts.count("23.00")) == (0, 1, 1)
    assert bench.noted("subagents") == [{"what": "subagents", "name": "payer"}]


LEAD: dict[str, Any] = {
    "name": "lead",
    "description": "hands payments on",
    "tools": ["lookup_order"],
    "middleware": [helpers(PAYER)],
}


def test_a_helper_of_a_helper_asks_under_the_same_gate(bench: Bench):
    """Three cards of two depths and a sibling, answered in any order, each in a process of its own."""
    bench.publish(PAY, helpers(LEAD, PAYER), tools=("lookup_order", "issue_refund"))
    lead = task("lead", {"calls": [pay(71, CHAIR), pay(72, CHAIR)]}, {"text": "both seen to"})
    run = bench.start({"calls": [lead, pay(73, CHAIR), ORDER]}, {"text": "end"})
    requests = {request.args["amount"]: request for request in bench.requests(run, 3)}
    paths = {amount: request.path for amount, request in requests.items()}
    assert paths == {71: ["lead", "payer"], 72: ["lead", "payer"], 73: ["payer"]}
    bench.decide(requests[72], "approve")
    bench.requests(run, 2)
    bench.decide(requests[73], "reject", message="no photo")
    bench.requests(run, 1)
    assert bench.amounts(CHAIR).count("72.00") <= 1
    bench.decide(requests[71], "edit", args=dict(requests[71].args) | {"amount": 74})
    bench.until(run, "success")
    amounts = bench.amounts(CHAIR)
    assert [amounts.count(f"{n}.00") for n in (71, 72, 73, 74)] == [0, 1, 0, 1]
    assert run.requests.count() == 3, "nobody was asked twice"
    assert sorted(bench.told(run, "task")) == ["both seen to", "paid 73"]


def test_three_helpers_wait_and_each_goes_on_alone(bench: Bench):
    """Case 29."""
    bench.publish(PAY, helpers(PAYER), tools=TOOLS)
    run = bench.start({"calls": [pay(81, CHAIR), pay(82, CHAIR), pay(83, CHAIR)]}, {"text": "end"})
    first, second, third = sorted(bench.requests(run, 3), key=lambda request: request.args["amount"])
    assert [request.path for request in (first, second, third)] == [["payer"]] * 3
    for done, request in enumerate((third, first, second), start=1):
        bench.decide(request, "approve")
        bench.requests(run, 3 - done) if done < 3 else bench.until(run, "success")
    amounts = bench.amounts(CHAIR)
    assert [amounts.count(f"{n}.00") for n in (81, 82, 83)] == [1, 1, 1]
    assert run.requests.count() == 3


def test_a_lost_answer_inside_a_helper_is_asked_about_and_not_repeated(bench: Bench):
    bench.publish(PAY, helpers(PAYER), tools=TOOLS)
    run = bench.start({"calls": [pay(31)]}, {"text": "end"})
    request = bench.request(run)
    bench.fault("drop_after")
    bench.decide(request, "approve")
    unknown = bench.request(run)
    assert (unknown.kind, unknown.tool, unknown.args["amount"]) == ("unknown_outcome", "issue_refund", 31)
    bench.fault("none")
    bench.decide(unknown, "happened", reference="R-1")
    bench.until(run, "success")
    assert bench.amounts("A-20877").count("31.00") == 1


def test_a_limit_of_a_helper_asks_too(bench: Bench):
    limit = {"use": "model_call_limit", "run_limit": 1, "hard_cap": 5, "on_limit": "ask"}
    bench.publish(helpers(READER | {"middleware": [limit]}), tools=())
    look = task("reader", {"calls": [ORDER]}, {"text": "found"})
    run = bench.start({"calls": [look, look]}, {"text": "end"})
    first, second = bench.requests(run, 2)
    assert (first.kind, first.path) == ("limit", ["reader"])
    bench.decide(first, "grant", grant=2)
    bench.requests(run, 1)
    bench.decide(second, "stop", message="enough")
    bench.until(run, "success")
    assert sorted(bench.told(run, "task")) == ["Stopped after 1 model calls: enough.", "found"]


def test_a_run_with_a_waiting_helper_can_be_stopped(bench: Bench):
    from approvals.actors import Actor
    from approvals.services import runs

    bench.publish(PAY, helpers(PAYER), tools=TOOLS)
    run = bench.start({"calls": [pay(41)]}, {"text": "end"})
    bench.request(run)
    runs.cancel(actor=Actor.of(bench.sam), run_pk=run.pk, reason="wrong customer")
    bench.until(run, "cancelled")
    assert "41.00" not in bench.amounts("A-20877")
    assert run.requests.filter(status="pending").count() == 0


def test_the_general_helper_has_the_agents_tools_and_its_gate(bench: Bench):
    bench.publish(PAY, {"use": "subagents"}, tools=("lookup_order", "issue_refund"))
    do = task("general-purpose", {"calls": [refund("A-20877", 51)]}, {"text": "done"})
    run = bench.start({"calls": [do]}, {"text": "end"})
    bench.decide(bench.request(run), "approve")
    bench.until(run, "success")
    assert bench.amounts("A-20877").count("51.00") == 1


def test_a_helper_cannot_call_what_it_was_not_given(bench: Bench):
    bench.publish(PAY, helpers(READER), tools=("lookup_order", "issue_refund"))
    do = task("reader", {"calls": [refund("A-20877", 61)]}, {"text": "tried"})
    run = bench.run({"calls": [do]}, {"text": "end"})
    assert "61.00" not in bench.amounts("A-20877")
    assert run.requests.count() == 0


def test_a_compiled_graph_is_a_helper_by_name(bench: Bench):
    bench.publish(helpers({"name": "echo", "description": "repeats", "graph": "echo"}), tools=())
    run = bench.run({"calls": [call("task", description="say this", subagent_type="echo")]}, {"text": "end"})
    assert bench.told(run, "task") == ["The task was: say this"]


def test_a_graph_that_nobody_made_parks_the_run_with_the_reason(bench: Bench):
    bench.publish(helpers({"name": "lost", "description": "x", "graph": "nobody"}), tools=())
    assert "there is no graph 'nobody'" in bench.fails(bench.start({"text": "end"}))

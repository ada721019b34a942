"""Our middleware inside a real graph: what pauses, what the model reads, what runs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from middleware.effects import Unsealed, refuse_unsealed
from middleware.ports import SessionLost
from middleware.stack import build_stack
from tests.fakes import MemoryApprovals
from tests.models import ScriptedModel
from tests.unit.middleware.stacks import ERROR, GUARD, HITL, LIMIT, TOOLS


class World:
    """An agent with a sealed write, a read and a question; `ran` is what really happened."""

    def __init__(self, *stack: dict[str, Any], sealed: bool = True) -> None:
        self.ran: list[tuple[str, Any]] = []
        self.see_error: Exception | None = None
        self.approvals = MemoryApprovals()

        def pay(amount: float, note: str = "") -> str:
            self.ran.append(("pay", amount))
            return json.dumps({"paid": amount})

        def see(what: str) -> str:
            self.ran.append(("see", what))
            if self.see_error:
                raise self.see_error
            return f"saw {what}"

        @tool
        def ask(question: str) -> str:
            """Ask a person."""
            raise AssertionError("a person answers in its place")

        metadata = {"counterseal": "sealed"} if sealed else None
        self.tools = [
            StructuredTool.from_function(pay, description="pay", metadata=metadata),
            StructuredTool.from_function(see, description="see"),
            ask,
        ]
        middleware = build_stack(stack or [LIMIT, HITL, ERROR, GUARD], tools=TOOLS, approvals=self.approvals)
        self.agent = create_agent(
            ScriptedModel(), self.tools, middleware=middleware, checkpointer=InMemorySaver()
        )
        self.config = {"configurable": {"thread_id": str(uuid.uuid4())}}

    def say(self, *script: dict[str, Any]) -> list[Any]:
        """Start a run; its open interrupts."""
        return self._run({"messages": [HumanMessage(json.dumps({"script": list(script)}))]})

    def answer(self, interrupt: Any, **answer: Any) -> list[Any]:
        return self._run(Command(resume={interrupt.id: answer}))

    def _run(self, given: Any) -> list[Any]:
        self.agent.invoke(given, self.config, version="v2", durability="sync")
        return list(self.agent.get_state(self.config).interrupts)

    @property
    def messages(self) -> list[Any]:
        return self.agent.get_state(self.config).values["messages"]

    @property
    def told(self) -> list[ToolMessage]:
        return [message for message in self.messages if isinstance(message, ToolMessage)]


def pay(amount: Any) -> dict[str, Any]:
    return {"calls": [["pay", {"amount": amount}]]}


SEE = {"calls": [["see", {"what": "it"}]]}


def test_a_small_amount_runs_without_a_person():
    world = World()
    assert world.say(pay(1000)) == []
    assert world.ran == [("pay", 1000)]


def test_a_large_amount_waits_and_runs_once_when_approved():
    world = World()
    (asked,) = world.say(pay(1000.5))
    assert (asked.value["type"], asked.value["name"], asked.value["args"]) == (
        "tool_approval",
        "pay",
        {"amount": 1000.5},
    )
    assert world.ran == []
    assert world.answer(asked, type="approve") == []
    assert world.ran == [("pay", 1000.5)]


@pytest.mark.parametrize(
    "sentence",
    [
        "A reviewer rejected this call; it did not run. Reason: no photo.",
        "Nobody decided in time, so this call did not run. This is not a rejection.",
    ],
)
def test_the_model_reads_exactly_the_sentence_of_the_application(sentence):
    world = World()
    (asked,) = world.say(pay(5000))
    world.answer(asked, type="reject", message=sentence)
    (told,) = world.told
    assert told.content == sentence
    assert told.status == "error"
    assert told.additional_kwargs["lc_data"] == {"decision": "reject"}
    assert told.tool_call_id == asked.value["tool_call_id"]
    assert world.ran == []


def test_a_rejection_without_words_has_ours():
    world = World()
    (asked,) = world.say(pay(5000))
    world.answer(asked, type="reject")
    assert world.told[0].content.startswith("A reviewer rejected this call.")
    assert world.ran == []


def test_an_edit_runs_the_edited_arguments_and_says_so():
    world = World()
    (asked,) = world.say(pay(5000))
    world.answer(asked, type="edit", edited_action={"name": "pay", "args": {"amount": 20}})
    assert world.ran == [("pay", 20)]
    assert "Executed instead: pay" in world.told[0].content


def test_an_edit_cannot_switch_the_tool():
    from pydantic import ValidationError

    world = World()
    (asked,) = world.say(pay(5000))
    with pytest.raises(ValidationError):
        world.answer(asked, type="edit", edited_action={"name": "see", "args": {"what": "x"}})
    assert world.ran == []
    assert world.answer(asked, type="approve") == []


def test_a_rule_that_changes_while_somebody_decides_changes_nothing(monkeypatch):
    world = World()
    (asked,) = world.say(pay(1500))
    for call in world.approvals.verdicts:
        assert world.approvals.verdicts[call].asks
    from middleware import predicates

    always_fine = predicates.Predicate(
        "amount_over", predicates.AmountOver, lambda *_: False, lambda _: "changed"
    )
    monkeypatch.setattr(predicates, "PREDICATES", {**predicates.PREDICATES, "amount_over": always_fine})
    world.answer(asked, type="reject", message="No.")
    assert world.ran == []
    assert world.approvals.judged == 1


def test_a_question_is_answered_by_a_person():
    world = World()
    (asked,) = world.say({"calls": [["ask", {"question": "which?"}]]})
    world.answer(asked, type="respond", message="that one")
    assert (world.told[0].content, world.told[0].status) == ("that one", "success")


def test_a_question_that_nobody_answers_can_be_closed():
    world = World()
    (asked,) = world.say({"calls": [["ask", {"question": "which?"}]]})
    world.answer(asked, type="reject", message="Nobody answered in time.")
    assert world.told[0].content == "Nobody answered in time."


def test_calls_of_one_message_are_decided_one_by_one():
    world = World()
    calls = [
        ["pay", {"amount": 1500}],
        ["pay", {"amount": 2000}],
        ["pay", {"amount": 5}],
        ["see", {"what": "it"}],
    ]
    asked = world.say({"calls": calls})
    assert sorted(world.ran) == [("pay", 5), ("see", "it")]
    by_amount = {interrupt.value["args"]["amount"]: interrupt for interrupt in asked}
    left = world.answer(by_amount[2000], type="approve")
    assert [interrupt.id for interrupt in left] == [by_amount[1500].id]
    assert world.answer(by_amount[1500], type="reject", message="No.") == []
    assert sorted(world.ran) == [("pay", 5), ("pay", 2000), ("see", "it")]
    assert len({message.tool_call_id for message in world.told}) == len(world.told) == 4


# --- reads that fail


def test_a_read_that_fails_is_told_under_its_call():
    world = World()
    world.see_error = ConnectionError("the shop did not answer")
    world.say(SEE)
    (told,) = world.told
    assert told.status == "error"
    assert "the shop did not answer" in told.content
    assert isinstance(world.messages[-1], AIMessage)


def test_the_text_of_an_unexpected_exception_stays_inside():
    world = World()
    world.see_error = KeyError("secret")
    world.say(SEE)
    assert "secret" not in world.told[0].content
    assert "KeyError" in world.told[0].content


def test_a_lost_session_is_never_told_as_a_result():
    world = World()
    world.see_error = SessionLost("replaced")
    with pytest.raises(SessionLost):
        world.say(SEE)


def test_a_retried_read_runs_again_and_then_is_told():
    retry = {"use": "tool_retry", "tools": ["see"], "max_retries": 2, "initial_delay": 0, "jitter": False}
    world = World(LIMIT, HITL, ERROR, GUARD, retry)
    world.see_error = TimeoutError("slow")
    world.say(SEE)
    assert world.ran == [("see", "it")] * 3
    assert "slow" in world.told[0].content


# --- the guard


def test_a_write_without_the_seal_does_not_run():
    world = World(sealed=False)
    assert world.say(pay(5)) == []
    assert world.ran == []
    assert (
        world.told[0].content
        == "Refused: pay changes the world but does not carry the approval gate. Nothing ran."
    )
    with pytest.raises(Unsealed, match="pay"):
        refuse_unsealed(world.tools, TOOLS)


def test_sealed_tools_pass_at_start_and_unknown_ones_do_not():
    world = World()
    refuse_unsealed(world.tools, TOOLS)
    with pytest.raises(Unsealed, match="see is not a tool"):
        refuse_unsealed(world.tools, {name: facts for name, facts in TOOLS.items() if name != "see"})


def test_a_tool_that_does_not_exist_is_refused_and_the_run_goes_on():
    world = World()
    assert world.say({"calls": [["destroy", {}]]}) == []
    assert "destroy is not a tool of this agent" in world.told[0].content
    assert world.messages[-1].text == "done"


# --- limits

ASKING = {"use": "model_call_limit", "run_limit": 2, "hard_cap": 4, "on_limit": "ask"}


def test_a_model_limit_asks_and_a_grant_goes_on():
    world = World(ASKING, HITL, ERROR, GUARD)
    (asked,) = world.say(SEE, SEE, SEE, SEE)
    assert asked.value == {
        "type": "limit_grant", "resource": "model_calls", "used": 2, "limit": 2, "granted": 0, "max_extra": 2,
    }  # fmt: skip
    (again,) = world.answer(asked, type="grant", extra=1)
    assert (again.value["used"], again.value["max_extra"]) == (3, 1)
    assert world.answer(again, type="grant", extra=9) == []
    assert world.messages[-1].text == "Stopped after 4 model calls: the hard limit is 4."


def test_a_model_limit_that_is_not_raised_ends_the_run():
    world = World(ASKING, HITL, ERROR, GUARD)
    (asked,) = world.say(SEE, SEE, SEE)
    assert world.answer(asked, type="stop", note="enough") == []
    assert world.messages[-1].text == "Stopped after 2 model calls: enough."


def test_a_run_limit_counts_through_pauses_and_starts_again_with_a_new_message():
    world = World(ASKING, HITL, ERROR, GUARD)
    (approval,) = world.say(pay(5000), SEE, SEE)
    (asked,) = world.answer(approval, type="approve")
    assert asked.value["type"] == "limit_grant"
    assert world.answer(asked, type="stop") == []
    assert world.say(SEE) == []
    assert world.messages[-1].text == "done"


def test_a_tool_limit_asks_before_anybody_is_asked_to_approve():
    limit = {"use": "tool_call_limit", "tool_name": "pay", "run_limit": 1, "hard_cap": 2, "on_limit": "ask"}
    world = World(LIMIT, limit, HITL, ERROR, GUARD)
    calls = [["pay", {"amount": amount}] for amount in (1500, 1600, 1700)]
    (asked,) = world.say({"calls": calls})
    assert (asked.value["resource"], asked.value["max_extra"], len(asked.value["over"])) == (
        "tool_calls",
        1,
        2,
    )
    approvals = world.answer(asked, type="grant", extra=1)
    assert [interrupt.value["args"]["amount"] for interrupt in approvals] == [1500, 1600]
    for interrupt in approvals:
        world.answer(interrupt, type="approve")
    assert sorted(world.ran) == [("pay", 1500), ("pay", 1600)]
    assert [message.text for message in world.told if message.status == "error"] == [
        "Not run: the limit of 1 calls of pay is reached and no further call was granted."
    ]


def test_a_bad_grant_is_refused_and_the_question_stays():
    from pydantic import ValidationError

    world = World(ASKING, HITL, ERROR, GUARD)
    (asked,) = world.say(SEE, SEE, SEE)
    with pytest.raises(ValidationError):
        world.answer(asked, type="grant", extra=0)
    assert [interrupt.id for interrupt in world.agent.get_state(world.config).interrupts] == [asked.id]

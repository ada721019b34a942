"""The shipped agent whole: demo model, its stack, the sealed write, a shop and a ledger in memory."""

from __future__ import annotations

import json
import uuid
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents.catalogue import all_tools, fingerprint
from agents.gate import Gate, write_tool
from agents.refunds.demo_model import RefundsDemo
from agents.refunds.memory import MemoryShop, sample_order
from agents.refunds.spec import spec
from agents.refunds.tools import SENDERS, TOOL_BUILDERS
from middleware.effects import refuse_unsealed
from middleware.policy import judges
from middleware.ports import CallId
from middleware.stack import build_stack
from tests.fakes import MemoryApprovals, MemoryLedger


class Case:
    def __init__(self) -> None:
        self.thread = str(uuid.uuid4())
        self.shop = MemoryShop([sample_order(), sample_order("A-20877", "240.00")])
        self.approvals, self.ledger = MemoryApprovals(policy=fingerprint(spec())), MemoryLedger()
        facts = all_tools()
        gate = Gate(self.thread, fingerprint(spec()), self.approvals, self.ledger)
        send, lookup = SENDERS["issue_refund"](self.shop)
        rule = judges(spec().middleware)["issue_refund"]
        tools = [build(self.shop) for build in TOOL_BUILDERS.values()]
        tools.append(write_tool(facts["issue_refund"], send=send, lookup=lookup, judge=rule, gate=gate))
        refuse_unsealed(tools, facts)
        stack = build_stack(spec().middleware, tools=facts, approvals=self.approvals)
        self.agent = create_agent(
            RefundsDemo(),
            tools,
            system_prompt=spec().system_prompt,
            middleware=stack,
            checkpointer=InMemorySaver(),
        )
        self.config: Any = {"configurable": {"thread_id": self.thread}}

    def run(self, given: Any) -> list[Any]:
        """Drive to the next pause or the end; the open questions, each put on record as asked."""
        self.agent.invoke(given, self.config, version="v2", durability="sync")
        found = list(self.agent.get_state(self.config).interrupts)
        for interrupt in found:
            if (
                interrupt.value["type"] == "tool_approval"
                and self.call(interrupt) not in self.approvals.standings
            ):
                self.approvals.ask(self.call(interrupt), interrupt.value["args"])
        return found

    def say(self, text: str) -> list[Any]:
        return self.run({"messages": [HumanMessage(text)]})

    def call(self, interrupt: Any) -> CallId:
        messages = self.agent.get_state(self.config).values["messages"]
        wanted = interrupt.value["tool_call_id"]
        owner = next(m for m in messages if any(c["id"] == wanted for c in getattr(m, "tool_calls", ())))
        return CallId(self.thread, owner.id, wanted)

    def answer(self, interrupt: Any, **answer: Any) -> list[Any]:
        return self.run(Command(resume={interrupt.id: answer}))

    @property
    def said(self) -> str:
        return str(self.agent.get_state(self.config).values["messages"][-1].text)


def test_a_small_refund_runs_by_itself():
    case = Case()
    assert case.say("Please refund order A-20877, it arrived broken.") == []
    assert [row["amount"] for row in case.shop.made] == ["240.00"]
    assert "CNY 240.00 was refunded" in case.said


def test_a_large_refund_waits_and_runs_once():
    case = Case()
    (asked,) = case.say("请为订单 A-20931 全额退款，台灯破损。")
    assert case.shop.made == []
    case.approvals.decide(case.call(asked), "issue_refund", asked.value["args"])
    assert case.answer(asked, type="approve") == []
    assert [row["amount"] for row in case.shop.made] == ["1280.00"]
    assert "已将 CNY 1,280.00 退回" in case.said


def test_an_answer_without_a_decision_on_record_runs_nothing():
    case = Case()
    (asked,) = case.say("Please refund order A-20931, it arrived broken.")
    assert case.answer(asked, type="approve") == []
    assert case.shop.made == []
    assert "was not refunded" in case.said
    assert len(case.approvals.refusals) == 1


def test_an_edit_runs_what_was_edited_and_is_told_so():
    case = Case()
    (asked,) = case.say("Please refund order A-20931, it arrived broken.")
    edited = asked.value["args"] | {"amount": 1000.5}
    case.approvals.decide(case.call(asked), "issue_refund", edited, edited=True)
    case.answer(asked, type="edit", edited_action={"name": "issue_refund", "args": edited})
    assert [row["amount"] for row in case.shop.made] == ["1000.50"]
    assert "CNY 1,000.50 was refunded" in case.said
    assert "A reviewer changed the amount" in case.said


def test_a_lost_answer_asks_a_person_and_is_not_sent_again():
    case = Case()
    case.shop.fault = "lost"
    (asked,) = case.say("Please refund order A-20877, it arrived broken.")
    assert asked.value["type"] == "unknown_outcome"
    case.shop.fault = None
    assert case.ledger.resolve(case.call(asked), asked.value["attempt"], happened=True, reference="BANK-7")
    assert case.answer(asked, type="happened") == []
    assert len(case.shop.made) == 1
    assert "BANK-7" in case.said


def test_a_shop_that_cannot_be_read_ends_with_the_truth():
    case = Case()
    case.shop.fault = "down"
    assert case.say("Please refund order A-20877, it arrived broken.") == []
    assert "did not answer" in case.said
    told = [m for m in case.agent.get_state(case.config).values["messages"] if isinstance(m, ToolMessage)]
    assert {message.status for message in told} == {"error"}


def test_results_of_the_write_are_json():
    case = Case()
    case.say("Please refund order A-20877, it arrived broken.")
    messages = case.agent.get_state(case.config).values["messages"]
    told = next(m for m in messages if isinstance(m, ToolMessage) and m.name == "issue_refund")
    assert json.loads(str(told.text))["refund_id"] == case.shop.made[0]["refund_id"]

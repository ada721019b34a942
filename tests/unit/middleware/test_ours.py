"""Our own middleware alone: a made-up request or state, and a handler that counts."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware import ModelRequest
from langchain_core.decisions import Choice, Noul
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.errors import GraphInterrupt

from middleware.decisions import ChatDecisions, Unclear
from middleware.factories.failures import judge_of
from middleware.observer import Observer, counted
from middleware.options.people import SpendLimitOptions
from middleware.prompts import CasePrompt, filled
from middleware.repeats import refused_before
from middleware.roles import RoleTools
from middleware.spending import SpendLimit
from tests.middleware.models import Says


def ai(*calls: tuple[str, dict[str, Any], str], **more: Any) -> AIMessage:
    made = [{"name": name, "args": args, "id": id, "type": "tool_call"} for name, args, id in calls]
    return AIMessage("", tool_calls=made, **more)


def rejected(id: str, text: str = "no photo") -> ToolMessage:
    return ToolMessage(
        text, tool_call_id=id, status="error", additional_kwargs={"lc_data": {"decision": "reject"}}
    )


def model_request(**more: Any) -> ModelRequest[Any]:
    return ModelRequest(model=Says(), messages=[HumanMessage("x")], **more)


class TestRepeats:
    def test_the_same_call_finds_what_people_answered(self):
        messages = [
            HumanMessage("x"),
            ai(("pay", {"a": 1}, "c1")),
            rejected("c1"),
            ai(("pay", {"a": 1}, "c2")),
        ]
        assert refused_before(messages, "pay", {"a": 1}, "c2") == "no photo"

    @pytest.mark.parametrize("args", [{"a": 2}, {"a": "1"}, {"a": 1.0}, {"a": True}, {}])
    def test_any_other_arguments_are_a_new_proposal(self, args):
        messages = [HumanMessage("x"), ai(("pay", {"a": 1}, "c1")), rejected("c1")]
        assert refused_before(messages, "pay", args, "c2") is None

    def test_a_failure_is_no_answer_of_people_and_a_new_message_begins_anew(self):
        failed = ToolMessage("boom", tool_call_id="c1", status="error")
        assert refused_before([HumanMessage("x"), ai(("pay", {}, "c1")), failed], "pay", {}, "c2") is None
        old = [HumanMessage("x"), ai(("pay", {}, "c1")), rejected("c1"), HumanMessage("do it after all")]
        assert refused_before(old, "pay", {}, "c2") is None


class TestRoles:
    def test_the_handler_is_not_called_for_a_denied_tool(self):
        calls: list[Any] = []
        roles = RoleTools({"pay": ["finance"]}, ["support"])
        request = SimpleNamespace(tool_call={"name": "pay", "args": {}, "id": "c1"})
        answer = roles.wrap_tool_call(request, calls.append)
        assert calls == []
        assert (answer.tool_call_id, answer.status) == ("c1", "error")

    def test_only_the_request_is_changed(self):
        tools = [{"name": "pay"}, {"name": "see"}]
        request, seen = model_request(tools=tools), []
        RoleTools({"pay": ["finance"]}, []).wrap_model_call(request, seen.append)
        assert [tool["name"] for tool in seen[0].tools] == ["see"]
        assert len(request.tools) == 2


class TestPrompt:
    def test_it_is_added_behind_and_the_request_stays_as_it_was(self):
        request, seen = model_request(system_message=SystemMessage("Base.")), []
        CasePrompt(
            ["For {requester}."], {"vip": "Be quick."}, {"requester": "sam", "roles": ["vip"]}
        ).wrap_model_call(request, seen.append)
        assert seen[0].system_message.text == "Base.For sam.\nBe quick."
        assert request.system_message.text == "Base."

    def test_a_brace_in_a_value_is_no_place(self):
        assert filled("Hello {name}", {"name": "{secret}", "secret": "x"}) == "Hello {secret}"
        assert filled("Hello {name}", {"name": ""}) is None


class TestSpending:
    def test_a_call_is_counted_once(self):
        limit = SpendLimit(SpendLimitOptions(tokens=100))
        usage = {"input_tokens": 30, "output_tokens": 10, "total_tokens": 40}
        state: dict[str, Any] = {"messages": [ai(id="m1", usage_metadata=usage)]}
        state |= limit.after_model(state, None) or {}
        assert (state["spend_used"], limit.after_model(state, None)) == (40, None)

    def test_prices_are_for_a_million(self):
        limit = SpendLimit(SpendLimitOptions(cost=1, input_price=2, output_price=10))
        usage = {"input_tokens": 500_000, "output_tokens": 100_000, "total_tokens": 600_000}
        assert limit.after_model({"messages": [ai(id="m1", usage_metadata=usage)]}, None)["spend_used"] == 2.0

    def test_under_the_limit_nothing_is_asked(self):
        assert (
            SpendLimit(SpendLimitOptions(tokens=100)).before_model({"messages": [], "spend_used": 99}, None)
            is None
        )


class TestObserver:
    def test_a_pause_is_no_failure_and_the_exception_goes_on(self):
        observer = Observer(10)

        def pauses(_: Any) -> Any:
            raise GraphInterrupt(())

        with pytest.raises(GraphInterrupt):
            observer.wrap_tool_call(SimpleNamespace(tool_call={"name": "pay"}), pauses)
        with pytest.raises(ValueError, match="boom"):
            observer.wrap_model_call(model_request(), lambda _: (_ for _ in ()).throw(ValueError("boom")))
        assert [entry[:2] for entry in observer.times] == [("pay", "paused"), ("model", "failed")]

    def test_tools_side_by_side_are_all_noted(self):
        observer = Observer(10)
        request = SimpleNamespace(tool_call={"name": "see"})
        threads = [threading.Thread(target=observer.wrap_tool_call, args=(request, str)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(observer.times) == 20

    def test_counts_are_of_the_newest_message_only(self):
        old = [HumanMessage("x"), ai(("pay", {}, "c0")), rejected("c0")]
        new = [HumanMessage("y"), ai(("pay", {}, "c1")), rejected("c1"), ai()]
        assert counted([*old, *new]) == {
            "model_calls": 2,
            "tool_calls": 1,
            "tool_errors": 1,
            "by_people": 1,
            "tokens": 0,
        }


class TestJudge:
    def ask(self, text: str, question: Any) -> Any:
        judge = ChatDecisions(chat=Says(text=text), model="demo:says")
        return judge.invoke({"state": "a refund", "questions": {"q": question}})

    def test_a_probability_and_a_label_are_read(self):
        assert self.ask('```json\n{"q": 0.7}\n```', Noul(instructions="risky?")).nouls["q"].noul == 0.7
        assert (
            self.ask('{"q": "b"}', Choice(instructions="which?", criteria={"a": "x", "b": "y"}))
            .choices["q"]
            .choice
            == "b"
        )

    @pytest.mark.parametrize("text", ["", "no", '{"x": 1}', '{"q": "z"}', '{"q": 7}', "[]", "null"])
    def test_anything_else_is_no_answer(self, text):
        for question in (Noul(instructions="risky?"), Choice(instructions="which?", criteria={"a": "x"})):
            with pytest.raises((Unclear, ValueError)):
                self.ask(text, question)


@pytest.mark.parametrize(
    ("names", "error", "repeats"),
    [
        (["any"], KeyError("x"), True),
        (["connection"], ConnectionResetError(), True),
        (["connection"], TimeoutError(), False),
        (["rate_limit"], SimpleError := type("E", (Exception,), {"status_code": 429})(), True),
        (["server_error"], SimpleError, False),
        (["retryable"], SimpleError, True),
        (["retryable"], type("E", (Exception,), {"status_code": 401})(), False),
        (["retryable"], KeyError("a fault in our own code"), False),
        (["timeout", "os"], FileNotFoundError(), True),
    ],
)
def test_named_errors_are_what_they_say(names, error, repeats):
    assert judge_of(names)(error) is repeats

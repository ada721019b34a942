"""`langchain-openai` on Chat Completions and on Responses, through the whole product."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.brain import refund, script
from tests.providers.conftest import Office
from tests.providers.loopback import Received, Say
from tests.providers.openai_server import CHAT, RESPONSES, OpenAIServer
from tests.providers.story import Story, Trouble


class TestChatCompletions(Trouble):
    cut_off = "length"
    default_key_env = "OPENAI_API_KEY"

    @pytest.fixture
    def office(self, make_office: Any, openai_server: OpenAIServer) -> Office:
        return make_office(openai_server, "openai:gpt-5.4")

    def tools(self, request: Received) -> dict[str, tuple[str, dict[str, Any]]]:
        functions = [tool["function"] for tool in request.body["tools"]]
        return {tool["name"]: (tool["description"], tool["parameters"]) for tool in functions}

    def system(self, request: Received) -> str:
        assert request.body["messages"][0]["role"] == "system"
        return str(request.body["messages"][0]["content"])

    def test_the_request_is_what_the_documentation_says(self, office: Office) -> None:
        office.paused()
        assert {received.path for received in office.server.received} == {CHAT}
        assert office.last.body["model"] == "gpt-5.4"
        assert office.last.body["stream_options"] == {"include_usage": True}
        roles = [message["role"] for message in office.last.body["messages"]]
        assert roles == ["system", "user", *["assistant", "tool"] * 3]

    def test_a_server_that_knows_no_stream_options_can_be_told_so(self, office: Office) -> None:
        office.publish(model_options={"stream_usage": False})
        office.paused()
        assert "stream_options" not in office.last.body

    # --- careless servers of the same interface -------------------------------------------------------------------------
    def test_call_ids_that_repeat_in_later_messages_stay_apart(self, office: Office) -> None:
        office.server.new_id = lambda: "0"
        run, request = office.paused()
        office.decide(request, "approve")
        assert office.drive(run) == "finished"
        assert (run.status, office.amounts("A-20931"), office.server.refused) == ("success", ["1280.00"], [])

    def test_call_ids_that_repeat_in_one_message_run_nothing(self, office: Office) -> None:
        office.server.new_id = lambda: "0"
        run = office.ask(brain=script(Say("", (refund("A-20931", 1280), refund("A-20877", 100)))))
        office.fails(run, "two calls the same id")
        assert (run.requests.count(), office.effects("A-20931"), office.effects("A-20877")) == (0, [], [])

    @pytest.mark.parametrize("number", ["1e400", "NaN", "-Infinity", "-5", "0", '"1280"', "null", "[1280]"])
    def test_amounts_that_are_no_amounts_run_nothing(self, office: Office, number: str) -> None:
        args = f'{{"order_id": "A-20931", "currency": "CNY", "amount": {number}}}'
        run = office.ask(brain=script(Say("", (("issue_refund", args),)), Say("fine")))
        office.drive(run)
        for request in office.pending(run):
            office.decide(request, "approve")
        office.drive(run)
        assert (run.status, office.effects("A-20931")) in (("success", []), ("parked", []))


class TestResponses(Story):
    """The client chooses this interface by itself for the newer models when there are tools."""

    cut_off = "max_output_tokens"

    @pytest.fixture
    def office(self, make_office: Any, openai_server: OpenAIServer) -> Office:
        return make_office(openai_server, "openai:gpt-6-sol")

    def tools(self, request: Received) -> dict[str, tuple[str, dict[str, Any]]]:
        return {tool["name"]: (tool["description"], tool["parameters"]) for tool in request.body["tools"]}

    def system(self, request: Received) -> str:
        assert request.body["input"][0]["role"] == "system"
        return str(request.body["input"][0]["content"])

    def test_the_request_is_what_the_documentation_says(self, office: Office) -> None:
        office.paused()
        assert {received.path for received in office.server.received} == {RESPONSES}
        kinds = [item.get("type", "message") for item in office.last.body["input"]]
        turn = ["reasoning", "message", "function_call", "function_call_output"]
        assert kinds == ["message", "message", *turn * 3]

    def test_a_compatible_server_without_it_can_be_spoken_to_the_older_way(self, office: Office) -> None:
        office.publish(model_options={"use_responses_api": False})
        office.paused()
        assert {received.path for received in office.server.received} == {CHAT}

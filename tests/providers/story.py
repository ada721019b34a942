"""What must hold with every provider, through the whole product. Each provider's test module subclasses it."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from approvals.actors import Actor
from approvals.models import ApprovalRequest, AuditEvent
from approvals.services import requests, runs, wording
from tests.engine.conftest import person
from tests.providers.brain import refund, refund_agent, script
from tests.providers.conftest import KEY_ENV, Office, tables_with
from tests.providers.loopback import Received, Say, Turn

# The providers send both; their clients go by the finer one.
SOON = {"retry-after": "1", "retry-after-ms": "5"}


def results(office: Office) -> Turn:
    """What the newest request told the model."""
    return office.server.read(office.last)


class Story:
    """`office` is the fixture of the subclass."""

    # --- the story ------------------------------------------------------------------------------------------------------
    def test_looks_up_computes_asks_and_pays_once_after_the_approval(self, office: Office) -> None:
        run, request = office.paused()
        assert request.title == "Refund CN¥1,280.00"
        assert request.args == {
            "order_id": "A-20931",
            "amount": 1280,
            "currency": "CNY",
            "reason": request.args["reason"],
            "customer_note": "The money is on its way.",
        }
        assert office.effects("A-20931") == []
        office.decide(request, "approve")
        assert office.drive(run) == "finished"
        assert (run.status, office.amounts("A-20931"), office.server.refused) == ("success", ["1280.00"], [])
        (paid,) = results(office).of("issue_refund")
        assert json.loads(paid.text)["amount"] == "1280.00"
        assert run.answer == f"This is what happened: {paid.text}"
        assert [step.kind for step in run.steps.all()] == ["message", *["model", "tool"] * 4, "model"]
        assert office.drive(run) == "nothing to do"
        assert office.amounts("A-20931") == ["1280.00"]

    def test_an_edit_pays_the_edited_amount_and_the_model_is_told_both(self, office: Office) -> None:
        run, request = office.paused()
        office.decide(request, "edit", args={**request.args, "amount": 1200})
        assert office.drive(run) == "finished"
        assert (run.status, office.amounts("A-20931"), office.server.refused) == ("success", ["1200.00"], [])
        (paid,) = results(office).of("issue_refund")
        assert paid.call.values["amount"] == 1280  # history stays what the model said
        assert "a human reviewer replaced this tool call" in paid.text
        assert '"amount": "1200.00"' in paid.text
        assert "1200.00" in run.answer

    def test_a_rejection_and_its_reason_reach_the_model(self, office: Office) -> None:
        run, request = office.paused()
        office.decide(request, "reject", message="The photo shows another lamp")
        assert office.drive(run) == "finished"
        assert (run.status, office.effects("A-20931"), office.server.refused) == ("success", [], [])
        (refused,) = results(office).of("issue_refund")
        assert refused.text == wording.rejected("The photo shows another lamp")
        assert "The photo shows another lamp" in run.answer

    def test_expiry_is_not_told_as_a_rejection(self, office: Office) -> None:
        run, request = office.paused()
        ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=Now() - timedelta(seconds=1))
        assert requests.expire_due() == 1
        assert office.drive(run) == "finished"
        (closed,) = results(office).of("issue_refund")
        assert closed.text == wording.expired()
        assert (run.status, office.effects("A-20931"), office.server.refused) == ("success", [], [])

    def test_a_withdrawal_is_told_in_its_own_words(self, office: Office) -> None:
        run, request = office.paused()
        requests.withdraw(actor=Actor.of(office.sam), request_pk=request.pk, reason="solved on the phone")
        assert office.drive(run) == "finished"
        (closed,) = results(office).of("issue_refund")
        assert closed.text == wording.withdrawn("solved on the phone")
        assert (run.status, office.effects("A-20931"), office.server.refused) == ("success", [], [])

    def test_the_answer_of_a_colleague_is_the_result_of_the_question(self, office: Office) -> None:
        run, request = office.paused("The lamp arrived broken, please refund it.")
        assert (request.kind, request.args) == ("question", {"question": "Which order is it?"})
        office.decide(request, "respond", message="A-20931, he says.", by=office.sam)
        assert office.drive(run) == "finished"
        (answer,) = results(office).of("ask_staff")
        assert answer.text == "A-20931, he says."
        assert (run.answer, office.server.refused) == ("A colleague said: A-20931, he says.", [])

    def test_an_amount_under_the_limit_is_paid_without_asking(self, office: Office) -> None:
        run = office.ask("Please refund 100.5 of order A-20931, arrived broken.")
        assert office.drive(run) == "finished"
        assert (run.status, run.requests.count(), office.amounts("A-20931")) == ("success", 0, ["100.50"])

    # --- several calls, several turns -----------------------------------------------------------------------------------
    def test_parallel_calls_are_decided_one_by_one_and_answered_together(self, office: Office) -> None:
        run = office.ask("Please refund orders A-20931 and A-20925, both arrived broken.")
        assert office.drive(run) == "interrupted"
        asked = {request.args["order_id"]: request for request in office.pending(run)}
        assert set(asked) == {"A-20931", "A-20925"}
        office.decide(asked["A-20931"], "reject", message="a duplicate")
        assert office.drive(run) == "interrupted"
        before = len(office.server.received)
        office.decide(asked["A-20925"], "approve")
        assert office.drive(run) == "finished"
        assert len(office.server.received) == before + 1
        told = {result.call.values["order_id"]: result.text for result in results(office).of("issue_refund")}
        assert told["A-20931"] == wording.rejected("a duplicate")
        assert json.loads(told["A-20925"])["amount"] == "3460.00"
        assert (office.effects("A-20931"), office.amounts("A-20925")) == ([], ["3460.00"])
        assert (run.status, office.server.refused) == ("success", [])

    def test_a_second_message_goes_on_with_a_history_the_provider_accepts(self, office: Office) -> None:
        run, request = office.paused()
        office.decide(request, "approve")
        office.drive(run)
        more = office.say(run, "Thank you. And refund 50 of order A-20877, arrived broken.")
        assert office.drive(more) == "finished"
        assert (more.status, office.amounts("A-20877"), office.server.refused) == ("success", ["50.00"], [])

    @pytest.mark.parametrize("how", ["withdraw", "cancel"])
    def test_a_message_after_a_closed_request_is_accepted_too(self, office: Office, how: str) -> None:
        run, request = office.paused()
        if how == "cancel":
            runs.cancel(actor=Actor.of(office.sam), run_pk=run.pk, reason="wrong customer")
            office.drive(run)
        more = office.say(
            run, "Please refund 50 of order A-20877 instead, arrived broken.", while_pending="withdraw"
        )
        office.drive(more)
        more.refresh_from_db()
        assert (more.status, office.amounts("A-20877"), office.effects("A-20931")) == (
            "success",
            ["50.00"],
            [],
        )
        assert office.server.refused == []

    def test_a_run_stopped_beside_a_finished_call_leaves_a_whole_history(self, office: Office) -> None:
        both = script(
            Say("Two.", (("lookup_order", {"order_id": "A-20931"}), refund("A-20931", 1280))), Say("fine")
        )
        run, _ = office.paused(brain=both)
        runs.cancel(actor=Actor.of(office.sam), run_pk=run.pk, reason="no longer needed")
        office.drive(run)
        assert run.status == "cancelled"
        office.server.brain = script(Say("fine"))
        more = office.say(run, "Hello?")
        office.drive(more)
        assert (more.status, more.answer, office.server.refused) == ("success", "fine", [])

    # --- the wire -------------------------------------------------------------------------------------------------------
    def test_every_answer_is_streamed_and_shown_as_it_comes(self, office: Office, deltas: list[Any]) -> None:
        run, request = office.paused()
        assert len(office.server.received) == 4
        assert all(request.body["stream"] is True for request in office.server.received)
        steps = list(run.steps.filter(kind="model"))
        assert [topic for topic, *_ in deltas] == [run.topic] * len(deltas)
        blocks = list(dict.fromkeys(block for _, block, *_ in deltas))
        assert len(blocks) == len(steps)
        for step, mark in zip(steps, blocks, strict=True):
            assert mark == step.message_id
            shown = [(at, text) for _, block, at, text in deltas if block == mark]
            assert "".join(text for _, text in shown) == step.text
            assert len(shown) > 1
            assert [at for at, _ in shown] == [sum(len(t) for _, t in shown[:n]) for n in range(len(shown))]
        office.decide(request, "reject", message="no")
        office.drive(run)
        assert run.usage["model_calls"] == 5
        assert run.usage["input_tokens"] > 100
        assert run.usage["output_tokens"] > 20

    def test_the_model_sees_its_instructions_and_exactly_the_arguments_of_its_tools(
        self, office: Office
    ) -> None:
        office.paused("Refund order A-20931, arrived broken. My card is 4111 1111 1111 1111.")
        assert self.system(office.last).startswith("You are the refund agent of a support team.")
        tools = self.tools(office.last)
        assert list(tools) == ["lookup_order", "read_policy", "compute_refund", "issue_refund", "ask_staff"]
        description, schema = tools["issue_refund"]
        assert description.startswith("Pay money back to the customer. A person may have to approve it")
        assert list(schema["properties"]) == ["order_id", "amount", "currency", "reason", "customer_note"]
        assert schema["required"] == ["order_id", "amount", "currency"]
        amount = schema["properties"]["amount"]
        assert amount["type"] == "number"
        assert amount["description"] == "In the order's currency, at most what is left to refund."
        assert "runtime" not in json.dumps(tools)
        sent = json.dumps([request.body for request in office.server.received])
        assert "4111 1111 1111 1111" not in sent  # masked before it leaves the house

    def test_the_key_is_in_the_header_and_nowhere_else(
        self, office: Office, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        run, request = office.paused()
        office.decide(request, "approve")
        office.drive(run)
        key = office.server.key
        assert all(office.server.key_of(received.headers) == key for received in office.server.received)
        assert key not in json.dumps([received.body for received in office.server.received])
        assert tables_with(key) == []
        assert key not in caplog.text
        assert "approvals_agentversion" in tables_with(KEY_ENV)  # the search finds what is there

    # --- half answers --------------------------------------------------------------------------------------------------
    @pytest.mark.parametrize("how", ["reason", "silent"])
    def test_half_a_call_is_never_run(self, office: Office, how: str) -> None:
        """1280 cut off after "12" is a valid amount, under the limit."""
        half = '{"order_id": "A-20931", "currency": "CNY", "amount": 12'
        stop = self.cut_off if how == "reason" else "none"
        run = office.ask(brain=lambda turn: Say("I refund 1280.", (("issue_refund", half),), stop=stop))
        office.fails(run, "cut off")
        assert office.effects("A-20931") == []
        assert (run.status, run.requests.count()) == ("running", 0)
        office.server.brain = refund_agent
        assert office.drive(run) == "interrupted"
        assert [request.args["amount"] for request in office.pending(run)] == [1280]

    def test_arguments_that_are_no_json_do_not_end_the_run_in_silence(self, office: Office) -> None:
        broken = '{"order_id": "A-20931", "amount": 1280,, "currency" "CNY"}'
        run = office.ask(brain=lambda turn: Say("", (("issue_refund", broken),)))
        office.fails(run, "no JSON")
        assert (run.status, office.effects("A-20931")) == ("running", [])
        office.server.brain = refund_agent
        assert office.drive(run) == "interrupted"
        assert office.server.refused == []

    # --- what the provider's module says --------------------------------------------------------------------------------
    cut_off: str

    def tools(self, request: Received) -> dict[str, tuple[str, dict[str, Any]]]:
        raise NotImplementedError

    def system(self, request: Received) -> str:
        raise NotImplementedError


class Trouble(Story):
    """What goes wrong between us and a provider, on top of the story."""

    default_key_env: str

    def test_without_streaming_the_story_is_the_same(self, office: Office) -> None:
        office.publish(model_options={"disable_streaming": True})
        run, request = office.paused()
        office.decide(request, "approve")
        assert office.drive(run) == "finished"
        assert not any(received.body.get("stream") for received in office.server.received)
        assert (run.status, office.amounts("A-20931"), office.server.refused) == ("success", ["1280.00"], [])
        assert run.usage["input_tokens"] > 0

    def test_options_of_the_version_reach_the_client(self, office: Office) -> None:
        office.publish(model_options={"default_headers": {"X-Team": "support"}, "timeout": 30})
        office.paused()
        assert office.last.headers["x-team"] == "support"

    @pytest.mark.parametrize("named", [True, False])
    def test_without_its_key_the_run_is_parked_and_the_variable_named(
        self, office: Office, named: bool
    ) -> None:
        office.publish(api_key_env="NOT_SET_HERE" if named else None)
        run = office.ask()
        office.drive(run)
        assert run.status == "parked"
        assert ("NOT_SET_HERE" if named else self.default_key_env) in run.error
        assert office.server.received == []
        assert AuditEvent.objects.filter(run_id=run.pk, action="run.parked").count() == 1

    def test_a_parked_run_goes_on_once_the_key_is_there(self, office: Office) -> None:
        office.publish(api_key_env="SET_LATER")
        run = office.ask()
        office.drive(run)
        assert run.status == "parked"
        office.monkeypatch.setenv("SET_LATER", office.server.key)
        runs.retry(actor=Actor.of(person("ada", "administrators")), run_pk=run.pk)
        assert office.drive(run) == "interrupted"

    @pytest.mark.parametrize("status", [429, 500])
    def test_a_busy_provider_is_asked_again_by_the_client(self, office: Office, status: int) -> None:
        office.server.fail(status, "try later", headers=SOON)
        run, _ = office.paused()
        assert office.server.refused == ["try later"]
        assert (run.attempts, run.last_error) == (0, "")
        first, second = office.server.received[:2]
        assert first.body == second.body

    def test_a_refused_key_ends_the_run_with_words_for_people(
        self, office: Office, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        settings.MAX_ATTEMPTS = 1
        office.monkeypatch.setenv("WRONG_KEY", "sk-wrong-0123456789")
        office.publish(api_key_env="WRONG_KEY")
        run = office.ask()
        office.fails(run, "the provider refused the key in WRONG_KEY")
        assert run.status == "running"
        assert office.drive(run) == "finished"
        assert run.status == "error"
        assert "WRONG_KEY" in run.error
        assert "401" in run.error
        assert len(office.server.received) == 1  # asking again with the same key is pointless
        assert AuditEvent.objects.filter(run_id=run.pk, action="run.failed").count() == 1
        assert tables_with("sk-wrong-0123456789") == []
        assert "sk-wrong-0123456789" not in caplog.text

    def test_a_gateway_that_repeats_the_key_does_not_get_it_on_record(
        self, office: Office, settings: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        office.server.fail(401, f"Invalid key {office.server.key} received")
        run = office.ask()
        office.fails(run, "401")
        assert "[the key]" in run.last_error
        assert tables_with(office.server.key) == []
        assert office.server.key not in caplog.text

    def test_a_stream_that_breaks_off_is_begun_again_and_pays_once(self, office: Office) -> None:
        cut = [True]

        def brain(turn: Turn) -> Say:
            say = refund_agent(turn)
            if turn.of("compute_refund") and cut:
                cut.clear()
                return Say(say.text, say.calls, cut=True)
            return say

        run = office.ask(brain=brain)
        office.fails(run, ".+")
        assert run.requests.count() == 0
        assert office.drive(run) == "interrupted"
        (request,) = office.pending(run)
        office.decide(request, "approve")
        assert office.drive(run) == "finished"
        assert (run.status, office.amounts("A-20931"), office.server.refused) == ("success", ["1280.00"], [])

    def test_a_failure_after_the_refund_does_not_repeat_it(self, office: Office) -> None:
        run, request = office.paused()
        office.decide(request, "approve")
        office.server.fail(500, "out of order", times=3, headers=SOON)  # the client gives up after three
        office.fails(run, "out of order")
        assert office.amounts("A-20931") == ["1280.00"]
        assert office.drive(run) == "finished"
        assert (run.status, office.amounts("A-20931")) == ("success", ["1280.00"])
        assert "1280.00" in run.answer

    def test_an_answer_that_is_cut_off_without_a_call_is_an_answer(self, office: Office) -> None:
        run = office.ask(brain=lambda turn: Say("Once upon a", stop=self.cut_off))
        assert office.drive(run) == "finished"
        assert (run.status, run.answer) == ("success", "Once upon a")

    def test_a_tool_that_does_not_exist_is_answered_not_run(self, office: Office) -> None:
        made_up = script(Say("", (("delete_customer", {"id": 1}),)), Say("Sorry."))
        office.server.lenient = True
        run = office.ask(brain=made_up)
        assert office.drive(run) == "finished"
        assert (run.status, run.answer) == ("success", "Sorry.")
        (answer,) = results(office).results
        assert "delete_customer" in answer.text

"""Attacks on the gate and the drive, each with the exact number of refunds that may exist afterwards."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace

import psycopg
import pytest
from django.db import DatabaseError, connection, connections
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage
from langgraph.types import Command

from agents import gate, registry
from agents.contracts import RunOrder
from agents.outcomes import Refused
from agents.refunds import tools
from approvals import wiring
from approvals.actors import SYSTEM
from approvals.adapters.desk import DjangoDesk
from approvals.adapters.ledger import DjangoApprovals, DjangoLedger
from approvals.adapters.session import locked
from approvals.models import AgentVersion, AuditEvent, Run, ToolExecution
from approvals.services import agents, cases, executions
from middleware.ports import CallId, SessionLost
from tests.engine.conftest import refund, scripted_spec

DONE = {"text": "done"}
CNY = {"currency": "CNY"}


def engine_behind_the_drive(session, run):
    """The graph of a run, as a bug or an attacker would reach it: without the desk deciding anything."""
    desk = DjangoDesk(session, str(run.thread_id))
    order = desk.next_run()
    assert isinstance(order, RunOrder)
    return registry.build_engine(
        order,
        desk=desk,
        saver=session.saver,
        approvals=DjangoApprovals(session, desk.claimed, desk.actor),
        ledger=DjangoLedger(session, desk.claimed, desk.fence, desk.actor),
        shop_url=wiring.settings.SHOP_URL,
    )


def paused(desk, *script):
    run = desk.open(*(script or ({"calls": [refund("A-20931", 1280)]}, DONE)))
    desk.drive(run)
    (request,) = desk.pending(run)
    return run, request


def test_an_unkeyed_answer_behind_our_back_runs_nothing(desk):
    run, _ = paused(desk)
    with locked(str(run.thread_id)) as session:
        engine = engine_behind_the_drive(session, run)
        engine.graph.invoke(Command(resume={"type": "approve"}), engine.config, durability="sync")
    assert desk.effects("A-20931") == []
    assert AuditEvent.objects.filter(action="gate.refused", run_id=run.pk).count() == 1


def test_a_rule_that_flips_while_a_person_decides_changes_nothing(desk, monkeypatch):
    """Case 9: the policy goes from 1000 to 5000 while 1280 waits; the reviewer rejects."""
    run, request = paused(desk)
    AgentVersion.objects.update(spec={**run.version.spec, "middleware": _with_limit(run.version.spec, 5000)})
    monkeypatch.setattr(registry, "fingerprint", lambda spec: run.version.fingerprint)
    desk.decide(request, "reject", message="no")
    assert desk.drive(run) == "finished"
    assert (run.status, desk.effects("A-20931")) == ("success", [])


def _with_limit(spec, value):
    stack = [dict(entry) for entry in spec["middleware"]]
    for entry in stack:
        if entry["use"] == "human_in_the_loop":
            gates = {name: dict(options) for name, options in entry["interrupt_on"].items()}
            gates["issue_refund"]["when"] = {**gates["issue_refund"]["when"], "value": value}
            entry["interrupt_on"] = gates
    return stack


class Jump(AgentMiddleware):
    @hook_config(can_jump_to=["tools"])
    def after_model(self, state, runtime):
        return {"jump_to": "tools"} if state["messages"][-1].tool_calls else None


@pytest.mark.parametrize("place", ["first", "last"])
def test_another_middleware_that_jumps_to_tools_runs_nothing(desk, monkeypatch, place):
    build = registry.build_stack_around

    def with_jump(*args, **kwargs):
        stack = build(*args, **kwargs)
        return [Jump(), *stack] if place == "first" else [*stack, Jump()]

    monkeypatch.setattr(registry, "build_stack_around", with_jump)
    run, request = paused(desk)
    desk.decide(request, "reject", message="no")
    assert desk.drive(run) == "finished"
    assert (run.status, desk.effects("A-20931")) == ("success", [])


def test_without_the_approval_middleware_the_tool_itself_refuses(desk, monkeypatch):
    run, _ = paused(desk)
    build = registry.build_stack_around

    def without(*args, **kwargs):
        return [m for m in build(*args, **kwargs) if type(m).__name__ != "HumanInTheLoop"]

    monkeypatch.setattr(registry, "build_stack_around", without)
    with locked(str(run.thread_id)) as session:
        engine = engine_behind_the_drive(session, run)
        engine.graph.invoke(None, engine.config, durability="sync")
    assert desk.effects("A-20931") == []


@pytest.mark.parametrize(
    "args", [{"order_id": "A-20925", "amount": 1280, **CNY}, {"order_id": "A-20931", "amount": 1280.0, **CNY}]
)
def test_arguments_changed_after_the_click_run_nothing(desk, args):
    run, request = paused(desk)
    desk.decide(request, "approve")
    with locked(str(run.thread_id)) as session:
        engine = engine_behind_the_drive(session, run)
        message = engine.graph.get_state(engine.config).values["messages"][-1]
        swapped = AIMessage("", id=message.id, tool_calls=[{**message.tool_calls[0], "args": args}])
        engine.graph.update_state(engine.config, {"messages": [swapped]}, as_node="model")
        engine.graph.invoke(None, engine.config, durability="sync")  # asks again, about the new arguments
        engine.graph.invoke(Command(resume={"type": "approve"}), engine.config, durability="sync")
    assert desk.effects("A-20931") == desk.effects("A-20925") == []


def test_a_changed_definition_parks_the_run(desk, monkeypatch):
    run, request = paused(desk)
    desk.decide(request, "approve")
    monkeypatch.setattr(registry, "fingerprint", lambda spec: "another")
    desk.drive(run)
    assert (run.status, desk.effects("A-20931")) == ("parked", [])
    assert "takes other arguments now" in run.error


def test_a_new_version_does_not_touch_runs_of_the_old_one(desk):
    run, request = paused(desk)
    agents.publish(actor=SYSTEM, spec=scripted_spec(system_prompt="Another prompt."))
    desk.decide(request, "approve")
    desk.drive(run)
    assert (run.status, run.version.number, desk.amounts("A-20931")) == ("success", 1, ["1280.00"])


@pytest.mark.parametrize("amount", ["１５００", "1500", True, -5, "1_000", 0])
def test_amounts_that_are_not_plain_numbers_never_run(desk, amount):
    run = desk.open({"calls": [["issue_refund", {"order_id": "A-20931", "amount": amount, **CNY}]]}, DONE)
    desk.drive(run)
    for request in desk.pending(run):
        desk.decide(request, "approve")
    desk.drive(run)
    assert (run.status, desk.effects("A-20931")) == ("success", [])


def test_arguments_too_large_to_show_park_the_run(desk, monkeypatch):
    monkeypatch.setattr(cases, "MAX_MESSAGE", 100_000)  # here the message carries the script
    run = desk.open({"calls": [refund("A-20931", 1280, reason="x" * 70_000)]}, DONE)
    desk.drive(run)
    assert (run.status, desk.effects("A-20931")) == ("parked", [])
    assert "cannot be shown safely" in run.error


def test_a_nul_character_is_kept_in_the_bytes_and_does_not_stop_the_request(desk):
    run = desk.open({"calls": [refund("A-20931", 1280, reason="a\x00b")]}, DONE)
    assert desk.drive(run) == "interrupted"
    (request,) = desk.pending(run)
    assert rb'"reason":"a\u0000b"' in bytes(request.canonical)


def test_one_drive_at_a_time(desk):
    run, _ = paused(desk)
    with locked(str(run.thread_id)) as session:
        assert session is not None
        said = []
        other = threading.Thread(target=lambda: said.append(wiring.drive_thread(str(run.thread_id))))
        other.start()
        other.join()
    assert said == ["busy"]


def test_a_drive_whose_session_is_ended_writes_nothing_more(desk):
    run, _ = paused(desk)
    with pytest.raises((SessionLost, DatabaseError, psycopg.Error)), locked(str(run.thread_id)) as session:
        _end_session_of(run)
        engine_behind_the_drive(session, run)
    before = Run.objects.get(pk=run.pk)
    assert before.status == "interrupted"


def _end_session_of(run):
    ended = threading.Thread(target=_terminate, args=(f"run:{run.thread_id}",))
    ended.start()
    ended.join()


def _terminate(name):
    with connection.cursor() as cursor:
        cursor.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s", [name]
        )
    connections.close_all()


def test_a_silently_reopened_session_is_refused(desk):
    run, _ = paused(desk)
    with locked(str(run.thread_id)) as session:
        session.wrapper.close()
        with pytest.raises(SessionLost), session.use():
            Run.objects.get(pk=run.pk)


def test_an_older_owner_may_not_touch_the_ledger(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    call = CallId(str(run.thread_id), "ai", "call")
    row = executions.plan(run=run, actor=SYSTEM, fence=2, call=call, tool="issue_refund", digest="d")
    assert executions.start(row=row, actor=SYSTEM, fence=1, idempotent=False) is None
    row = executions.start(row=row, actor=SYSTEM, fence=2, idempotent=False)
    assert row.attempt == 1
    with pytest.raises(SessionLost):
        executions.succeed(row=row, actor=SYSTEM, fence=1, result={})
    with pytest.raises(SessionLost):
        executions.adopt(row=row, fence=1)


def test_a_key_older_than_the_provider_remembers_is_not_sent_again(desk):
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    row = executions.plan(
        run=run,
        actor=SYSTEM,
        fence=1,
        call=CallId(str(run.thread_id), "ai", "c"),
        tool="issue_refund",
        digest="d",
    )
    row = executions.start(row=row, actor=SYSTEM, fence=1, idempotent=True)
    assert executions.start(row=row, actor=SYSTEM, fence=1, idempotent=True).attempt == 2
    ToolExecution.objects.filter(pk=row.pk).update(retry_until=row.started_at - timedelta(hours=1))
    assert executions.start(row=row, actor=SYSTEM, fence=1, idempotent=True) is None


def test_frozen_between_claim_and_send_is_taken_back(desk, monkeypatch):
    clock = iter([0.0, 100.0])
    monkeypatch.setattr(gate, "time", SimpleNamespace(monotonic=lambda: next(clock, 100.0)))
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    assert desk.drive(run) == "finished"
    execution = desk.execution(run)
    assert (execution.status, execution.attempt, desk.amounts("A-20877")) == ("succeeded", 2, ["100.00"])


def test_the_refusal_of_a_resend_is_no_answer(desk, monkeypatch):
    """Sent, then the worker died; the second attempt is refused (say, rotated credentials): that proves nothing."""
    run = desk.open({"calls": [refund("A-20877", 100)]}, DONE)
    real = tools.SENDERS["issue_refund"]
    sent = []

    def senders(shop):
        send, _ = real(shop)

        def first_dies_then_refused(args, key, timeout):
            sent.append(key)
            if len(sent) == 1:
                send(args, key, timeout)
                raise KeyboardInterrupt  # the process ends here
            raise Refused("401 credentials were rotated")

        return first_dies_then_refused, lambda key: None

    monkeypatch.setitem(tools.SENDERS, "issue_refund", senders)
    with pytest.raises(KeyboardInterrupt):
        desk.drive(run)
    assert desk.drive(run) == "interrupted"
    (request,) = desk.pending(run)
    assert request.kind == "unknown_outcome"
    assert (len(sent), len(set(sent)), len(desk.effects("A-20877"))) == (2, 1, 1)


def test_poison_is_parked_and_others_go_on(desk, settings, monkeypatch, hints):
    settings.MAX_ATTEMPTS = 2
    run = desk.open(DONE)

    def broken(*_, **__):
        raise ZeroDivisionError("a bug in a tool")

    with monkeypatch.context() as patched:
        patched.setattr(wiring, "build_engine", broken)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                desk.drive(run)
    desk.drive(run)
    assert run.status == "error"
    assert "a bug in a tool" in run.error
    other = desk.open(DONE)
    desk.drive(other)
    assert other.status == "success"

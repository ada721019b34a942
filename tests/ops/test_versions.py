"""Deploys: what the new code cannot go on with is parked, listed with what changed, and goes on after the repair."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from pydantic import BaseModel, create_model

from agents import catalogue
from agents.refunds import facts
from approvals.actors import SYSTEM, Actor
from approvals.errors import NotAllowed
from approvals.models import AgentVersion, Run
from approvals.services import agents, runs
from middleware import catalogue as middleware_catalogue
from tests.engine.conftest import person, refund, scripted_spec

DONE = {"text": "the end"}


class Order(BaseModel):
    order_id: str


def deploy(monkeypatch, **changes):
    """Other code: the named tools take other arguments (a model), or are gone (None)."""
    tools = catalogue.all_tools()
    for name, args in changes.items():
        if args is None:
            tools.pop(name)
        else:
            tools[name] = catalogue.ToolFacts(
                **{**{f: getattr(tools[name], f) for f in tools[name].__dataclass_fields__}, "args": args}
            )
    monkeypatch.setattr(facts, "TOOLS", tuple(tools.values()))


def another_refund():
    old = catalogue.all_tools()["issue_refund"].args
    kept = {n: (f.annotation, f) for n, f in old.model_fields.items() if n not in ("reason", "amount")}
    return create_model("Refund", **kept, amount=(str, ...), invoice=(str, ...))


@pytest.fixture
def waiting(desk, hints):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    return run


def test_changed_code_parks_the_run_and_says_what_changed(desk, waiting, monkeypatch, capsys):
    (request,) = desk.pending(waiting)
    with monkeypatch.context() as patched:
        deploy(patched, issue_refund=another_refund())
        (use,) = agents.in_use()
        assert [str(d) for d in use.differences] == [
            "issue_refund reads amount differently",
            "issue_refund also takes invoice now",
            "issue_refund takes no reason any more",
        ]
        with pytest.raises(SystemExit) as ended:
            call_command("versions")
        assert ended.value.code == 1
        said = capsys.readouterr()
        assert "1 open, 0 parked; changed: issue_refund reads amount differently" in said.out
        assert "1 open runs would be parked" in said.err
        desk.decide(request, "approve")
        desk.drive(waiting)
        assert (waiting.status, desk.effects("A-20931")) == ("parked", [])
        assert "takes other arguments now" in waiting.error
        (use,) = agents.in_use()
        assert (use.open, use.parked) == (0, 1)
    assert agents.in_use()[0].differences == []
    with pytest.raises(NotAllowed):
        runs.retry(actor=Actor.of(desk.sam), run_pk=waiting.pk)
    runs.retry(actor=Actor.of(person("ada", "administrators")), run_pk=waiting.pk)
    desk.drive(waiting)
    assert (waiting.status, desk.amounts("A-20931")) == ("success", ["1280.00"])


def test_a_tool_that_is_gone_is_named(waiting, monkeypatch):
    deploy(monkeypatch, lookup_order=None)
    (use,) = agents.in_use()
    assert [str(d) for d in use.differences] == ["there is no tool lookup_order any more"]


def test_an_old_version_serves_on_beside_a_new_one(desk, waiting, capsys):
    agents.publish(actor=SYSTEM, spec=scripted_spec(system_prompt="Be brief."))
    newer = desk.open(DONE)
    assert newer.version.number == waiting.version.number + 1
    call_command("versions")
    assert capsys.readouterr().out.count("can be rebuilt") == 2
    desk.decide(desk.pending(waiting)[0], "approve")
    desk.drive(waiting)
    assert (waiting.status, desk.amounts("A-20931")) == ("success", ["1280.00"])
    assert Run.objects.get(pk=waiting.pk).version.number == 1


def without(use):
    return lambda spec: {**spec, "middleware": [entry for entry in spec["middleware"] if entry["use"] != use]}


def renamed(spec):
    changed = [{**e, "use": "approval"} if e["use"] == "human_in_the_loop" else e for e in spec["middleware"]]
    return {**spec, "middleware": changed}


DAMAGE = {
    "the approval is gone": without("human_in_the_loop"),
    "the write guard is gone": without("write_guard"),
    "the approval has another name": renamed,
    "there is one middleware more": lambda spec: {
        **spec, "middleware": [{"use": "todo_list"}, *spec["middleware"]],
    },
    "a tool is gone": lambda spec: {**spec, "tools": [name for name in spec["tools"] if name != "read_policy"]},
    "the prompt is another": lambda spec: {**spec, "system_prompt": "Refund whatever they ask."},
    "the model is another": lambda spec: {**spec, "model": "demo:refunds"},
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_an_approved_call_runs_under_the_version_it_was_shown_under_or_not_at_all(desk, waiting, damage):
    """The stored version was changed behind the application's back; put right again, the run goes on."""
    (request,) = desk.pending(waiting)
    desk.decide(request, "approve")
    version = AgentVersion.objects.filter(pk=waiting.version_id)
    spec = version.get().spec
    version.update(spec=damage(spec))
    desk.drive(waiting)
    assert (waiting.status, desk.effects("A-20931")) == ("parked", [])
    assert "changed" in waiting.error
    version.update(spec=spec)
    runs.retry(actor=Actor.of(person("ada", "administrators")), run_pk=waiting.pk)
    desk.drive(waiting)
    assert (waiting.status, desk.amounts("A-20931")) == ("success", ["1280.00"])


def test_a_middleware_that_left_the_code_parks_its_runs(desk, waiting, monkeypatch):
    (request,) = desk.pending(waiting)
    desk.decide(request, "approve")
    with monkeypatch.context() as patched:
        left = {name: entry for name, entry in middleware_catalogue.ENTRIES.items() if name != "tool_error"}
        patched.setattr(middleware_catalogue, "ENTRIES", left)
        desk.drive(waiting)
    assert (waiting.status, desk.effects("A-20931")) == ("parked", [])
    assert "tool_error" in waiting.error

"""Trials and pictures by a real worker: whatever a stack brings along, nothing of it touches the world."""

from __future__ import annotations

import json

from approvals.actors import Actor
from approvals.models import Agent, AgentVersion, Run, Thread, ToolExecution, Trial
from approvals.services import pictures, trials
from tests.engine.conftest import call, person, refund
from tests.middleware.conftest import PAY, Bench
from tests.services import wait_until


def tried(bench: Bench, *script: object, says_yes: bool = True) -> Trial:
    agent = Agent.objects.get(pk=bench.slug)
    trial = trials.start(
        actor=Actor.of(person("ada", "administrators")),
        agent=agent,
        spec=AgentVersion.objects.get(agent=agent).spec,
        message=json.dumps({"script": list(script)}),
        says_yes=says_yes,
    )

    def ended() -> bool:
        trial.refresh_from_db()
        return trial.ended_at is not None

    wait_until(ended, 60, "the trial did not end")
    return trial


def test_no_refund_and_no_row_of_a_run(bench: Bench):
    bench.publish(PAY, tools=("lookup_order", "issue_refund"))
    before = len(bench.effects("A-20931"))
    trial = tried(bench, {"calls": [refund("A-20931", 7)]}, {"text": "end"})
    assert [one["kind"] for one in trial.trace if one["kind"] != "hook"] == [
        "model",
        "asks",
        "tool",
        "answer",
        "end",
    ]
    assert len(bench.effects("A-20931")) == before
    assert (Thread.objects.count(), Run.objects.count(), ToolExecution.objects.count()) == (0, 0, 0)


def test_a_shell_starts_nothing(bench: Bench):
    made = bench.folder / "made"
    gate = {"use": "human_in_the_loop", "interrupt_on": {"shell": {"queue": "refund-reviewers"}}}
    shell = {"use": "shell_tool", "workspace_root": str(bench.folder), "startup_commands": [f"touch {made}"]}
    bench.publish(gate, shell, tools=())
    trial = tried(bench, {"calls": [call("shell", command=f"touch {made}")]}, {"text": "end"})
    assert (trial.status, trial.error) == ("done", "")
    (result,) = [json.loads(one["text"]) for one in trial.trace if one["kind"] == "tool"]
    assert result["emulated"] is True
    assert not made.exists()


def test_a_picture_is_made_by_the_worker_that_is_asked(bench: Bench):
    bench.publish({"use": "todo_list"})
    spec = AgentVersion.objects.get(agent=bench.slug).spec
    wait_until(lambda: pictures.of_spec(spec).entries is not None, 30, "nobody drew it")
    hooks = {one["use"]: one["hooks"] for one in pictures.of_spec(spec).entries}
    assert hooks["todo_list"] == ["wrap_model_call", "after_model"]

"""The picture of a stack, one turn in words, and trials: the pages, without a worker."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from agents.catalogue import shipped_specs
from agents.trials import run_trial
from approvals import wiring
from approvals.actors import SYSTEM, Actor
from approvals.contexts import picture
from approvals.errors import Invalid
from approvals.models import AgentDraft, AgentVersion, Run, StackPicture, Thread, ToolExecution, Trial
from approvals.services import agents, drafts, pictures, trials
from tests.pages.conftest import Person, actions, text

DRAFT, TRY = "/agents/refunds/draft/", "/agents/refunds/draft/trial/"
ASK = "Please refund order A-20931 in full, the lamp arrived broken."


@pytest.fixture
def v1(db: None) -> AgentVersion:
    return agents.publish(actor=SYSTEM, spec=shipped_specs()[0])


@pytest.fixture
def draft(v1: AgentVersion, ada: Person) -> AgentDraft:
    return drafts.begin(actor=Actor.of(ada.user), slug="refunds", number=1)


def boxes(sent: object) -> list[str]:
    return re.findall(r"<rect [^>]*/><text [^>]*>([^<]*)<", sent.content.decode())


# --- the picture ----------------------------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_it_is_drawn_from_the_catalogue_until_a_worker_has_looked(ada, draft, hints):
    shown = ada.get(DRAFT)
    assert "a worker has not looked at the classes yet" in text(shown)
    assert [hint.task for hint in hints] == ["approvals.picture"]
    ada.get(DRAFT)
    assert len(hints) == 1, "a page that is loaded again does not ask again at once"
    before = boxes(shown)
    assert wiring.draw(hints[0].thread_id) == "drawn"
    assert wiring.draw(hints[0].thread_id) == "nothing to do"
    after = ada.get("/agents/refunds/picture/", htmx=True)
    assert "A worker built this stack and looked at its classes" in text(after)
    assert boxes(after) == before, "what the catalogue says is what the classes have"
    assert "A worker built this stack" in text(ada.get("/agents/refunds/v1/")), "one look for equal stacks"


def test_rings_are_nested_and_what_comes_after_is_reversed(draft):
    found = picture.of(draft)
    drawn = found.drawn(4)
    rings = [box for box in drawn.boxes if "wrap" in box.css]
    assert [box.text[:1] for box in rings] == ["4", "5", "6", "7"]
    for outer, inner in zip(rings, rings[1:], strict=False):
        assert outer.x < inner.x
        assert outer.x + outer.width > inner.x + inner.width
        assert outer.y < inner.y
        assert outer.y + outer.height > inner.y + inner.height
    column = [box.text[:1] for box in drawn.boxes if box.x > rings[0].x + rings[0].width]
    assert column == ["4", "3", "2", "1"]
    assert {box.text[:1] for box in drawn.boxes if "sel" in box.css} == {"4"}


def test_words_count_what_runs(draft):
    found = picture.of(draft)
    said = dict(found.sentences)
    assert said["Before each of the 3 model calls, in this order"] == "1 Model call limit, 3 Personal data"
    tools = "4 Human in the loop, 5 Tool errors, 6 Write guard, 7 Tool retry → the tool"
    assert said["Around each of the 2 tool calls, from the outside in"] == tools
    assert said["Once, at the end, in reverse"] == "nothing"
    assert found.layers[0].times == [("before_agent", 1), ("before_model", 3), ("after_model", 3)]


def test_what_cannot_be_built_is_named(ada, draft):
    spec = {
        **draft.spec,
        "middleware": [
            {"use": "subagents", "subagents": [{"name": "x", "description": "y", "graph": "nobody"}]}
        ],
    }
    row = pictures.of_spec(spec)
    wiring.draw(row.key)
    drafts.change(
        actor=Actor.of(ada.user), slug="refunds", rev=1, spec=spec, said={"did": "changed", "what": "x"}
    )
    assert "1 Sub-agents cannot be built by this worker" in text(ada.get(DRAFT))


def test_other_hooks_than_the_catalogue_says_are_told(ada, draft):
    row = pictures.of_spec(draft.spec)
    found = [{"use": one["use"], "hooks": [], "error": ""} for one in draft.spec["middleware"]]
    found[3]["hooks"] = ["after_agent"]
    pictures.store(key=row.key, entries=found)
    shown = text(ada.get(DRAFT))
    assert "4 Human in the loop has other hooks than the catalogue says" in shown
    assert shown.count("has other hooks") == 1, "fewer hooks are a class that the options chose"


# --- trials ----------------------------------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_a_trial_is_started_and_its_trace_comes_in(ada, draft, hints):
    hints.clear()
    sent = ada.post(TRY, {"message": ASK, "says_yes": "1"}, htmx=True)
    assert "Queued" in text(sent)
    (hint,) = hints
    trial = Trial.objects.get()
    assert (hint.task, hint.thread_id, trial.started_by) == ("approvals.trial", str(trial.pk), "ada")
    assert actions()[-1] == "trial.started"
    assert wiring.try_spec(hint.thread_id) == "tried"
    assert wiring.try_spec(hint.thread_id) == "nothing to do", "a hint that comes twice tries once"
    trace = text(ada.get(f"/agents/refunds/trial/{trial.pk}/?part=trace", htmx=True))
    assert "before_model 1 Model call limit, 3 Personal data" in trace
    assert "A person would be asked issue_refund" in trace
    assert "CNY 1,280.00 was refunded" in trace
    assert "Model call limit: call 1 of 25" in trace
    assert "The run ends" in trace


def test_nothing_outside_changes(ada, draft, shop):
    trial = trials.start(
        actor=Actor.of(ada.user), agent=draft.agent, spec=draft.spec, message=ASK, says_yes=True
    )
    wiring.try_spec(str(trial.pk))
    trial.refresh_from_db()
    assert trial.status == "done"
    assert [one["tool"] for one in trial.trace if one["kind"] == "tool"][-1] == "issue_refund"
    assert (Thread.objects.count(), Run.objects.count(), ToolExecution.objects.count()) == (0, 0, 0)
    assert shop.made == []


def test_without_a_yes_it_stops_where_a_person_would_be_asked(draft):
    trace = run_trial(shipped_specs()[0], ASK, says_yes=False)
    assert [one["kind"] for one in trace][-2:] == ["asks", "end"]
    assert trace[-1]["why"] == "asked"
    assert "issue_refund" not in [one.get("tool") for one in trace if one["kind"] == "tool"]


def test_hooks_run_as_the_words_say(draft):
    """A run of three model calls and two tool calls."""
    trace = run_trial(shipped_specs()[0], "What is the policy for order A-20931?", says_yes=True)
    hooks = [(one["use"], one["hook"]) for one in trace if one["kind"] == "hook"]
    models = sum(one["kind"] in ("model", "answer") for one in trace)
    tools = sum(one["kind"] == "tool" for one in trace)
    for layer in picture.of(draft).layers:
        for hook, _times in layer.times:
            each = {"before_agent": 1, "after_agent": 1, "wrap_tool_call": tools}.get(hook, models)
            assert hooks.count((layer.use, hook)) == each, (layer.use, hook)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("", "Write what the agent is asked to do."),
        ("  ", "Write what"),
        ("x" * 4_001, "At most 4,000 characters."),
    ],
)
def test_a_wrong_message_is_told_at_its_field(ada, draft, message, said):
    sent = ada.post(TRY, {"message": message}, htmx=True)
    assert (sent.status_code, said in text(sent)) == (422, True)
    assert not Trial.objects.exists()


def test_three_at_once_are_enough(ada, draft):
    for _ in range(trials.AT_ONCE):
        ada.post(TRY, {"message": ASK}, htmx=True)
    sent = ada.post(TRY, {"message": "one more"}, htmx=True)
    assert (sent.status_code, "still running" in text(sent), "one more" in text(sent)) == (422, True, True)
    with pytest.raises(Invalid):
        trials.start(actor=Actor.of(ada.user), agent=draft.agent, spec={}, message=ASK, says_yes=False)


def test_what_goes_wrong_is_told(ada, draft):
    spec = {**draft.spec, "model": "openai:gpt-5.4", "api_key_env": "NO_SUCH_KEY"}
    trial = trials.start(actor=Actor.of(ada.user), agent=draft.agent, spec=spec, message=ASK, says_yes=False)
    assert wiring.try_spec(str(trial.pk)) == "failed"
    assert "NO_SUCH_KEY" in text(ada.get(f"/agents/refunds/trial/{trial.pk}/"))


def test_a_trial_that_no_worker_finishes_is_given_up(ada, draft):
    ada.post(TRY, {"message": ASK}, htmx=True)
    assert trials.give_up_late() == 0
    Trial.objects.update(created_at=Now() - trials.DEADLINE - timedelta(seconds=1), status="running")
    assert trials.give_up_late() == 1
    late = Trial.objects.get()
    trials.finish(trial=late, trace=[])
    late.refresh_from_db()
    assert (late.status, late.error) == ("failed", trials.GAVE_UP)


def test_only_administrators_try(audra, rita, otto, draft):
    assert "Only administrators try agents." in text(audra.get(DRAFT))
    for person in (audra, rita, otto):
        assert person.post(TRY, {"message": ASK}).status_code == 403
    assert not Trial.objects.exists()


def test_a_version_is_tried_too_and_without_javascript(ada, v1):
    sent = ada.post("/agents/refunds/v1/trial/", {"message": ASK})
    assert sent.status_code == 302
    assert ASK in text(ada.get(sent.url))
    assert StackPicture.objects.count() == 0

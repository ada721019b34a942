"""What is advised helps: after the press the finding is gone, and no other has come."""

from __future__ import annotations

import pytest

from agents.catalogue import shipped_specs
from approvals import advice, specdiff
from middleware.lints.words import WORDS

READS = ["lookup_order", "read_policy", "compute_refund"]
GATE = next(one for one in shipped_specs()[0].middleware if one["use"] == "human_in_the_loop")
LIMIT = {"use": "model_call_limit", "run_limit": 25, "on_limit": "ask"}
FALLBACK = {"use": "model_fallback", "models": ["demo:refunds"]}
GUARD = {"use": "write_guard"}
CACHING = {"use": "anthropic_prompt_caching"}
SUMMARY = {"use": "summarization"}


def spec(*middleware, **more):
    return {**shipped_specs()[0].model_dump(mode="json"), "middleware": list(middleware), **more}


WRONG = {
    "outside-approval": (LIMIT, {"use": "tool_error", "tools": READS}, GATE, GUARD),
    "inside-guard": (LIMIT, GUARD, GATE),
    "asked-in-vain": (LIMIT, GATE, {"use": "repeat_guard"}, GUARD),
    "retry-outside-error": (
        LIMIT, GATE, {"use": "tool_retry", "tools": READS}, {"use": "tool_error", "tools": READS}, GUARD,
    ),
    "caching-outside-fallback": (LIMIT, CACHING, FALLBACK, GATE, GUARD),
    "refusal-outside-fallback": (LIMIT, {"use": "model_refusal"}, FALLBACK, GATE, GUARD),
    "retry-outside-fallback": (LIMIT, {"use": "model_retry"}, FALLBACK, GATE, GUARD),
    "caching-too-early": (LIMIT, CACHING, {"use": "todo_list"}, GATE, GUARD),
    "pii-late": (LIMIT, SUMMARY, {"use": "pii", "pii_type": "email"}, GATE, GUARD),
    "pii-after-moderation": (LIMIT, {"use": "openai_moderation"}, {"use": "pii", "pii_type": "email"}, GATE, GUARD),
}  # fmt: skip


def marks(found):
    return {(lint.level, lint.code, str(sorted(lint.params.items()))) for lint in found}


@pytest.mark.parametrize("code", sorted(advice.ORDER))
def test_a_wrong_order_is_put_right_by_the_press_that_is_offered(code):
    wrong = spec(*WRONG[code])
    before = advice.advise(wrong)
    found = next(one for one in before if one.lint.code == code)
    assert (found.step.did, found.remedy) == ("move", advice.REMEDIES[code])
    assert wrong["middleware"][found.step.start - 1]["use"] == found.step.use
    moved = advice.moved(wrong["middleware"], found.step.start, found.step.to)
    after = advice.findings({**wrong, "middleware": moved})
    assert code not in {lint.code for lint in after}
    assert marks(after) < marks(one.lint for one in before)


@pytest.mark.parametrize(("code", "without"), [
    ("no-guard", "write_guard"), ("no-limit", "model_call_limit"), ("ungated-write", "human_in_the_loop"),
])  # fmt: skip
def test_what_is_missing_is_put_where_it_belongs(code, without):
    shipped = shipped_specs()[0].model_dump(mode="json")
    wrong = {**shipped, "middleware": [one for one in shipped["middleware"] if one["use"] != without]}
    found = next(one for one in advice.advise(wrong) if one.lint.code == code)
    assert (found.step.did, found.step.use) == ("add", without)
    entry = advice.starter(without, wrong)
    fixed = [*wrong["middleware"][: found.step.to - 1], entry, *wrong["middleware"][found.step.to - 1 :]]
    assert advice.findings({**wrong, "middleware": fixed}) == []
    assert [one["use"] for one in fixed] == [one["use"] for one in shipped["middleware"]]


def test_every_finding_that_has_a_place_in_the_list_says_what_helps():
    below = {"subagent-gate", "nested-subagents", "graph-with-options"}  # their sentence says it
    assert set(WORDS) - set(advice.REMEDIES) == below | {"jump-undeclared"}
    assert set(advice.REMEDIES) <= set(WORDS)


def test_one_that_cannot_be_read_is_found_among_its_like():
    good, bad = {"use": "pii", "pii_type": "email"}, {"use": "pii", "pii_type": "own"}
    (found,) = advice.advise(spec(LIMIT, good, bad, GATE, GUARD))
    assert (found.lint.code, found.at, found.step) == ("unreadable", 3, None)
    assert advice.advise(spec(LIMIT, title=None)) is None


def test_differences_follow_entries_through_moves():
    old = spec(LIMIT, {"use": "pii", "pii_type": "email"}, {"use": "pii", "pii_type": "url"}, GATE, GUARD)
    new = spec({"use": "pii", "pii_type": "url", "strategy": "mask"}, LIMIT, GATE, GUARD, {"use": "observer"})
    told = [
        (pair.use, pair.before, pair.after, pair.state, pair.is_moved) for pair in specdiff.pairs(old, new)
    ]
    assert told == [
        ("pii", 3, 1, "changed", True), ("model_call_limit", 1, 2, "same", False), ("pii", 2, None, "removed", False),
        ("human_in_the_loop", 4, 3, "same", False), ("write_guard", 5, 4, "same", False),
        ("observer", None, 5, "added", False),
    ]  # fmt: skip
    assert [(row["field"], row["old"], row["new"]) for row in specdiff.listed(old, new)] == [
        ("/middleware/pii/position", 3, 1), ("/middleware/pii/strategy", None, "mask"),
        ("/middleware/pii", {"use": "pii", "pii_type": "email"}, None),
        ("/middleware/observer", None, {"use": "observer"}),
    ]  # fmt: skip
    assert not specdiff.differ(old, {**old, "tools": tuple(old["tools"])})
    assert specdiff.differ(old, {**old, "model_options": {"temperature": 0}})

"""Arguments no person could judge: shown as they are or the run is parked with the reason, and nothing runs or loops."""

from __future__ import annotations

import json

import pytest

from agents.model_guard import ModelFailed
from approvals.actors import Actor
from approvals.models import ApprovalRequest, AuditEvent
from approvals.services import cases
from tests.engine.conftest import refund

DEEP = "[" * 500 + "]" * 500

PARKED = {
    "a number that is none": ("NaN", "not finite"),
    "a number without end": ("1e400", "not finite"),
    "a number below all": ("-Infinity", "not finite"),
    "more than 64 bits": (str(2**70), "beyond 64 bits"),
    "half a character": (r'"\ud800"', "lone surrogate"),
    "depth 500": (DEEP, "nested deeper"),
    "a megabyte": (json.dumps("x" * 1_000_000), "limit 65536"),
}
SHOWN = {
    "nul": (r'"a\u0000b"', rb"a\u0000b"),
    "reversed text": (r'"a\u202eb"', "a\u202eb".encode()),
    "an object in place of a text": ('{"__proto__": {"x": 1}}', b'{"__proto__":{"x":1}}'),
    "the larger of two keys of one name": (
        '{"a": 1, "a": 2}',
        b'{"a":2}',
    ),  # what is read is what is shown and run
}


def propose(desk, reason: str):
    """A case whose model proposes a refund with this JSON text as its reason."""
    script = json.dumps({"script": [{"calls": [refund("A-20931", 1280, reason="HERE")]}, {"text": "done"}]})
    new = cases.NewCase(agent="refunds", message=script.replace('"HERE"', reason))
    return cases.open_case(actor=Actor.of(desk.sam), case=new).run


@pytest.mark.parametrize(("reason", "why"), PARKED.values(), ids=PARKED.keys())
def test_what_cannot_be_shown_safely_parks_the_run(desk, monkeypatch, hints, reason, why):
    monkeypatch.setattr(cases, "MAX_MESSAGE", 2_000_000)  # here the message carries the script
    run = propose(desk, reason)
    desk.drive(run)
    assert run.status == "parked"
    assert "cannot be shown safely" in run.error
    assert why in run.error
    assert len(run.error) < 2_000
    before = AuditEvent.objects.count()
    assert desk.drive(run) == "nothing to do"
    assert (ApprovalRequest.objects.count(), AuditEvent.objects.count()) == (0, before)
    assert desk.effects("A-20931") == []


@pytest.mark.parametrize(("reason", "seen"), SHOWN.values(), ids=SHOWN.keys())
def test_what_can_be_shown_is_shown_as_it_is(desk, hints, reason, seen):
    run = propose(desk, reason)
    assert desk.drive(run) == "interrupted"
    (request,) = desk.pending(run)
    assert seen in bytes(request.canonical)
    desk.decide(request, "reject", message="no")
    assert (desk.drive(run), run.status, desk.effects("A-20931")) == ("finished", "success", [])


def test_text_with_half_a_character_fails_the_run_with_the_reason(desk, hints, settings):
    settings.MAX_ATTEMPTS = 2
    message = json.dumps({"script": [{"text": "HERE"}]}).replace("HERE", r"a\ud800b")
    new = cases.NewCase(agent="refunds", message=message)
    run = cases.open_case(actor=Actor.of(desk.sam), case=new).run
    for _ in range(2):
        with pytest.raises(ModelFailed, match="half a character"):
            desk.drive(run)
    desk.drive(run)
    assert run.status == "error"
    assert "half a character" in run.error


def test_text_with_a_nul_shows_where_it_was(desk, hints):
    run = desk.open({"text": "a\x00b"})
    assert (desk.drive(run), run.status, run.answer) == ("finished", "success", "a⟨U+0000⟩b")

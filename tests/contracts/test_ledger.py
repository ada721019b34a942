"""The contract of `middleware.ports.EffectLedger`, over memory and over Django rows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from middleware.ports import Conflict, SessionLost

QUIET = timedelta(seconds=15)


def planned(world):
    return world.ledger().plan(world.call, "issue_refund", "digest")


def started(world, *, idempotent=False):
    return world.ledger().start(planned(world), idempotent=idempotent)


def unknown(world):
    return world.ledger().mark_unknown(started(world), quiet=QUIET, why="no answer")


def test_a_call_is_planned_once_and_keeps_its_key(world):
    first, again = planned(world), planned(world)
    assert (first.status, first.attempt) == ("planned", 0)
    assert (again.id, again.provider_key) == (first.id, first.provider_key)


def test_the_same_call_with_other_arguments_is_a_conflict(world):
    planned(world)
    with pytest.raises(Conflict):
        world.ledger().plan(world.call, "issue_refund", "another digest")


def test_a_start_counts_the_attempt(world):
    assert (started(world).status, started(world)) == ("started", None)


def test_a_started_call_is_sent_again_only_with_a_living_key_and_not_for_ever(world):
    row = started(world, idempotent=True)
    row = world.ledger().start(row, idempotent=True)
    row = world.ledger().start(row, idempotent=True)
    assert row.attempt == 3
    assert world.ledger().start(row, idempotent=True) is None


def test_a_key_the_provider_has_forgotten_is_not_sent_again(world):
    row = started(world, idempotent=True)
    world.pass_time(hours=24)
    assert world.ledger().start(row, idempotent=True) is None


def test_success_and_refusal_end_it(world):
    row = world.ledger().succeed(started(world), {"refund_id": "rf_1"})
    assert (row.status, dict(row.result)) == ("succeeded", {"refund_id": "rf_1"})
    with pytest.raises(SessionLost):
        world.ledger().refuse(row, "too late")
    assert world.ledger().reload(row).status == "succeeded"


def test_a_refusal_keeps_its_words(world):
    row = world.ledger().refuse(started(world), "422 too much")
    assert (row.status, row.error) == ("failed", "422 too much")


def test_what_was_not_sent_is_planned_again_and_counts_on(world):
    row = world.ledger().not_sent(started(world))
    assert row.status == "planned"
    assert world.ledger().start(row, idempotent=False).attempt == 2


def test_a_replaced_owner_can_do_nothing(world):
    row = started(world)
    world.successor().adopt(row)
    for act in (
        lambda ledger: ledger.succeed(row, {}),
        lambda ledger: ledger.refuse(row, "no"),
        lambda ledger: ledger.not_sent(row),
        lambda ledger: ledger.adopt(row),
    ):
        with pytest.raises(SessionLost):
            act(world.ledger())
    assert world.ledger().start(row, idempotent=True) is None
    assert world.successor().reload(row).status == "started"


def test_unknown_can_be_told_as_happened_at_once(world):
    row = unknown(world)
    assert (row.status, row.error) == ("unknown", "no answer")
    assert world.resolve(1, happened=True)
    told = world.ledger().reload(row)
    assert (told.status, told.result["reference"]) == ("succeeded", "rf_1")
    assert not world.resolve(1, happened=False)


def test_unknown_can_be_told_as_not_happened_only_after_the_quiet_period(world):
    row = unknown(world)
    assert not world.resolve(1, happened=False)
    world.pass_time(seconds=16)
    assert world.resolve(1, happened=False)
    again = world.ledger().start(world.ledger().reload(row), idempotent=False)
    assert (again.attempt, again.provider_key) == (2, row.provider_key)


def test_an_answer_about_another_attempt_is_refused(world):
    unknown(world)
    assert not world.resolve(7, happened=True)


def test_marking_unknown_twice_changes_nothing(world):
    row = unknown(world)
    assert world.ledger().mark_unknown(row, quiet=QUIET, why="again").error == "no answer"

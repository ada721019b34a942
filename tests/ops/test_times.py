"""What time does to a request: a reminder, another group, an end with words of its own. The database's clock decides."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import ValidationError

from approvals import access
from approvals.actors import Actor
from approvals.errors import AlreadyClosed, NotAllowed
from approvals.models import ApprovalRequest, AuditEvent, Event
from approvals.services import requests
from approvals.tasks import sweep
from middleware.options import Gate
from tests import factories
from tests.engine.conftest import call, scripted_spec

LATE = timedelta(minutes=31)
DONE = {"text": "done"}


def age(request, by=LATE):
    """Let time pass for one request."""
    moved = {
        name: getattr(request, name) - by
        for name in ("created_at", "expires_at", "remind_at")
        if getattr(request, name)
    }
    ApprovalRequest.objects.filter(pk=request.pk).update(**moved)


def fresh(request):
    return ApprovalRequest.objects.get(pk=request.pk)


def trail(request):
    found = AuditEvent.objects.filter(object_id=str(request.pk)).order_by("pk")
    return [(entry.action, entry.actor_name) for entry in found]


@pytest.fixture
def escalating(transactional_db, hints):
    return factories.make_request(escalate_to="finance")


def test_a_request_nobody_decided_goes_to_the_next_group_with_the_same_time_again(escalating):
    fay = factories.make_user("fay", "finance")
    rita = factories.make_user("rita", "refund-reviewers")
    with pytest.raises(NotAllowed):
        access.request_for(fay, escalating.pk)
    age(escalating)
    assert requests.expire_due() == 1
    row = fresh(escalating)
    assert (row.status, row.queue, row.escalated_from) == ("pending", "finance", "refund-reviewers")
    assert row.rev == escalating.rev + 1
    assert requests.expire_due() == 0
    left = row.expires_at - AuditEvent.objects.filter(action="request.escalated").get().at
    assert timedelta(minutes=29) < left <= timedelta(minutes=30)
    assert trail(row)[-1] == ("request.escalated", "Time to decide")
    assert access.why_not_decide(rita, access.request_for(rita, row.pk)) == "queue", "may read, not decide"
    with pytest.raises(AlreadyClosed):
        factories.decide(escalating, "approve", by=fay)  # from a form shown before it was passed on
    factories.decide(row, "approve", by=fay)
    assert fresh(row).status == "approved"


def test_the_second_group_lets_it_lie_too(escalating):
    age(escalating)
    requests.expire_due()
    age(fresh(escalating))
    assert requests.expire_due() == 1
    row = fresh(escalating)
    assert row.status == "expired"
    assert "no person has looked at it" in row.message
    assert [action for action, _ in trail(row)][-2:] == ["request.escalated", "request.expired"]


def test_a_reminder_is_given_once_and_open_forms_stay_valid(transactional_db, hints):
    request = factories.make_request(remind_in=timedelta(minutes=15))
    assert requests.remind_due() == 0
    age(request, timedelta(minutes=16))
    assert (requests.remind_due(), requests.remind_due()) == (1, 0)
    assert trail(request)[-1] == ("request.reminded", "Time to decide")
    assert Event.objects.filter(kind="reminded", topic="inbox").count() == 1
    factories.decide(request, "approve")  # with the revision from before the reminder
    assert fresh(request).status == "approved"


def test_what_was_decided_is_neither_reminded_nor_passed_on(transactional_db, hints):
    request = factories.make_request(remind_in=timedelta(minutes=15), escalate_to="finance")
    factories.decide(request, "reject", message="no")
    age(request)
    assert (requests.remind_due(), requests.expire_due()) == (0, 0)
    assert fresh(request).queue == "refund-reviewers"


def test_many_sweeps_at_once_do_everything_once(transactional_db, hints):
    """As two beats and several workers would."""
    made = [factories.make_request(escalate_to="finance" if i % 2 else "") for i in range(10)]
    for request in made:
        age(request)
    together = threading.Barrier(6)
    done = []

    def one():
        try:
            together.wait(10)
            done.append(requests.expire_due())
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(done) == 10
    actions = list(AuditEvent.objects.values_list("action", flat=True))
    assert (actions.count("request.expired"), actions.count("request.escalated")) == (5, 5)


@pytest.fixture
def bad_row(transactional_db, hints):
    """The first of three overdue requests cannot be changed, whatever is tried."""
    made = [factories.make_request(remind_in=timedelta(minutes=15)) for _ in range(3)]
    for number, request in enumerate(made):
        age(request, LATE + timedelta(minutes=3 - number))
    with connection.cursor() as cursor:
        cursor.execute(
            f"""CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                  IF OLD.id = '{made[0].pk}' THEN RAISE integrity_constraint_violation; END IF; RETURN NEW;
                END $$;
                CREATE TRIGGER refuse BEFORE UPDATE ON approvals_approvalrequest
                  FOR EACH ROW EXECUTE FUNCTION refuse()"""
        )
    yield made
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refuse() CASCADE")


def test_one_bad_row_is_logged_and_holds_up_nobody(bad_row, caplog):
    logging.getLogger("counterseal").propagate = True
    assert requests.expire_due(limit=2) == 2
    assert [fresh(row).status for row in bad_row] == ["pending", "expired", "expired"]
    assert str(bad_row[0].pk) in caplog.text


def test_the_sweep_goes_on_after_a_bad_row(bad_row):
    assert "expired 2" in sweep()
    assert AuditEvent.objects.filter(action="request.expired").count() == 2


def test_a_question_nobody_answered_has_a_default_answer(desk, hints):
    from approvals.actors import SYSTEM
    from approvals.services import agents

    spec = scripted_spec()
    ask = {
        "allowed_decisions": ["respond"],
        "queue": "support",
        "default_answer": "Say that we will call back.",
    }
    gates = {"use": "human_in_the_loop", "interrupt_on": {"ask_staff": ask}}
    others = [
        {**entry, "interrupt_on": {**entry["interrupt_on"], **gates["interrupt_on"]}}
        if entry["use"] == "human_in_the_loop"
        else entry
        for entry in spec.middleware
    ]
    agents.publish(actor=SYSTEM, spec=spec.model_copy(update={"middleware": tuple(others)}))
    run = desk.open({"calls": [call("ask_staff", question="Which item?")]}, DONE)
    desk.drive(run)
    (asked,) = desk.pending(run)
    ApprovalRequest.objects.filter(pk=asked.pk).update(expires_at=Now() - timedelta(seconds=1))
    assert requests.expire_due() == 1
    desk.drive(run)
    assert run.status == "success"
    (said,) = desk.tool_texts(run)[asked.tool_call_id]
    assert "Nobody answered in time" in said
    assert "Say that we will call back." in said
    assert AuditEvent.objects.get(action="request.expired").data["default_answer"] == ask["default_answer"]


@pytest.mark.parametrize("status", ["rejected", "expired", "withdrawn"])
def test_every_ending_has_words_of_its_own(transactional_db, hints, status):
    from approvals import phrases
    from approvals.services import audit

    rows = {name: factories.make_request(status=name) for name in ("rejected", "expired", "withdrawn")}
    mine = rows[status]
    for told in (
        lambda row: row.message,
        phrases.ending,
        lambda row: audit.label(AuditEvent.objects.filter(object_id=str(row.pk)).latest("pk").action),
    ):
        assert told(mine)
        assert told(mine) not in [told(row) for name, row in rows.items() if name != status]


@pytest.mark.parametrize(
    "wrong",
    [
        {"on_expiry": "escalate"},
        {"on_expiry": "escalate", "escalate_to": "reviewers"},
        {"remind_after": 1800, "expires_in": 1800},
        {"default_answer": "yes"},
    ],
)
def test_times_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        Gate.model_validate(wrong)


def test_staff_of_the_case_see_who_is_asked_now(escalating):
    age(escalating)
    requests.expire_due()
    requests.withdraw(
        actor=Actor.of(escalating.run.requested_by), request_pk=escalating.pk, reason="customer called back"
    )
    assert fresh(escalating).status == "withdrawn"


@pytest.mark.parametrize("hours", [1, -1])
def test_the_clock_of_the_application_decides_nothing(transactional_db, hints, monkeypatch, hours):
    """The web process is an hour ahead or behind: what counts is the time of the database."""
    alive, over = factories.make_request(), factories.make_request()
    age(over)
    wrong = timezone.now() + timedelta(hours=hours)
    monkeypatch.setattr(timezone, "now", lambda: wrong)
    with pytest.raises(AlreadyClosed):
        factories.decide(over, "approve")
    assert factories.decide(alive, "approve").type == "approve"
    assert requests.expire_due() == 1
    assert (fresh(alive).status, fresh(over).status) == ("approved", "expired")

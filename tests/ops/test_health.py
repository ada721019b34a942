"""What administrators and monitoring see: true numbers, proofs of work instead of living processes, and repairs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import translation
from prometheus_client.parser import text_string_to_metric_families

from approvals import health, notify
from approvals.actors import SYSTEM
from approvals.contexts.health import health_of
from approvals.models import ApprovalRequest, AuditEvent, Decision, Pulse, Run, ToolExecution
from approvals.services import pulses, work
from approvals.tasks import sweep
from tests import factories
from tests.engine.conftest import refund
from tests.pages.conftest import Person, text
from tests.services import wait_until

AGO = timedelta(minutes=10)
DONE = {"text": "done"}


@pytest.fixture
def ada(transactional_db, hints):
    return Person("ada", "administrators")


def card(title):
    with translation.override("en"):
        return next(card for card in health_of(None).cards if card.title == title)


def all_well(settings):
    sweep()
    for queue in settings.QUEUES:
        pulses.beat(pulses.CANARY + queue)


def test_a_canary_goes_from_the_broker_through_a_worker_into_a_row(office, settings):
    from config.celery import app

    office.hire()
    entries = {name: entry for name, entry in app.conf.beat_schedule.items() if name.startswith("canary")}
    assert {entry["options"]["queue"] for entry in entries.values()} == set(settings.QUEUES)
    assert card("Workers").state.text == "No sign of life yet"
    sweep()
    assert card("Workers").state.text == "Starting", "somebody sweeps: no alarm before the first round"
    for entry in entries.values():  # as beat sends them
        app.send_task(entry["task"], args=entry["args"], **entry["options"])
    wait_until(lambda: not health.vitals().silent_queues, 60, "the canaries did not become rows")
    assert card("Workers").state.text == "Working"
    assert Pulse.objects.get(name="canary:start").data["worker"].startswith("test")
    Pulse.objects.filter(name="canary:start").update(at=Now() - AGO)
    assert health.vitals().silent_queues == ["start"]
    assert card("Workers").state.text == "Nobody works"


def test_numbers_of_what_waits(transactional_db, hints):
    waiting = factories.make_request()
    late = factories.make_request()
    decided = factories.make_request(status="rejected")
    ApprovalRequest.objects.filter(pk=late.pk).update(created_at=Now() - AGO, expires_at=Now() - AGO / 2)
    Decision.objects.filter(request=decided).update(send_at=Now() - AGO)
    parked = factories.make_case()
    Run.objects.filter(pk=parked.pk).update(status="parked", finished_at=Now())
    found = health.vitals()
    assert (found.asked.count, round(found.asked.oldest)) == (2, 600)
    assert (found.overdue.count, round(found.overdue.oldest)) == (1, 300)
    assert (found.due.count, round(found.due.oldest)) == (1, 600)
    assert (found.queued.count, found.unknown) == (0, health.Waiting(0))
    assert found.runs == {"pending": 0, "running": 0, "interrupted": 3, "parked": 1}
    assert found.latency is None
    assert found.sweep is None
    assert waiting.is_pending


def test_a_decision_that_can_still_be_undone_or_whose_run_was_stopped_is_not_late(transactional_db, hints):
    young, stopped = factories.make_request(), factories.make_request()
    factories.decide(young, "reject", undo_for=AGO)
    factories.decide(stopped, "reject")
    Run.objects.filter(pk=stopped.run_id).update(status="cancelled")
    assert health.vitals().due.count == 0


def test_how_long_a_decision_takes_to_reach_a_worker(desk, hints):
    run = desk.open({"calls": [refund("A-20931", 1280)]}, DONE)
    desk.drive(run)
    desk.decide(desk.pending(run)[0], "reject", message="no")
    desk.drive(run)
    Decision.objects.update(send_at=Now() - AGO, sent_at=Now() - AGO + timedelta(seconds=2))
    latency = health.vitals().latency
    assert (latency.count, latency.median, latency.p95) == (1, 2.0, 2.0)


def test_an_outcome_that_nobody_knows_is_counted_from_the_call_on(desk, hints):
    run = desk.open({"calls": [refund("A-20877", 240)]}, DONE)
    desk.drive(run)
    ToolExecution.objects.filter(run=run).update(status="unknown", started_at=Now() - AGO)
    found = health.vitals().unknown
    assert (found.count, round(found.oldest)) == (1, 600)
    assert card("Effects").state.tone == "unk"


def test_a_nudge_goes_there_and_back(transactional_db):
    assert 0 < notify.ask_lag(5)() < 5
    layer = notify.get_channel_layer()._layers[notify._loop()]
    wait_until(lambda: not [name for name in layer.channels if "probe" in name], 10, "probes are left behind")


def test_a_dead_broker_is_said_and_the_page_still_comes(ada, settings, monkeypatch):
    all_well(settings)
    settings.REDIS_URL = "redis://127.0.0.1:1"
    monkeypatch.setattr(notify, "get_channel_layer", lambda: None)
    said = text(ada.get("/health/"))
    assert "Does not answer" in said
    assert "Nothing is lost: start Redis or Valkey again." in said
    assert "1 part needs a look" in said


class TestPage:
    def test_only_administrators(self, ada, settings):
        for person in (
            Person("rita", "refund-reviewers"),
            Person("sam", "support"),
            Person("audra", "auditors"),
        ):
            assert person.get("/health/").status_code == 403
            assert person.post("/health/drain/").status_code == 403
            assert "/health/" not in person.get("/runs/").content.decode()
        assert AuditEvent.objects.filter(action="access.refused").count() == 6
        assert ada.get("/health/").status_code == 200

    def test_all_is_well(self, ada, settings):
        all_well(settings)
        said = text(ada.get("/health/"))
        assert "All is well" in said
        assert "Nobody works" not in said

    def test_it_refreshes_only_what_has_no_buttons(self, ada, settings):
        part = ada.get("/health/", htmx=True).content.decode()
        assert part.startswith('<div id="vitals"')
        assert "<button" not in part

    def test_chinese(self, ada, settings):
        ada.user.language = "zh-hans"
        ada.user.save()
        said = text(ada.get("/health/"))
        assert "运行状况" in said
        assert "Workers" not in said

    def test_a_parked_run_is_listed_with_its_reason_and_put_back_to_work(self, ada, hints):
        run = factories.make_case()
        Run.objects.filter(pk=run.pk).update(status="parked", error="5 attempts ended.", finished_at=Now())
        assert "5 attempts ended." in text(ada.get("/health/"))
        hints.clear()
        assert ada.post(f"/health/run/{run.pk}/retry/").status_code == 302
        run.refresh_from_db()
        assert (run.status, run.error, run.attempts) == ("pending", "", 0)
        assert [hint.thread_id for hint in hints] == [str(run.thread_id)]
        again = ada.post(f"/health/run/{run.pk}/retry/")
        assert (again.status_code, "Only a parked run" in text(again)) == (409, True)

    def test_what_changed_stands_beside_a_run_that_cannot_be_rebuilt(self, ada, monkeypatch):
        run = factories.make_case()
        other = factories.make_case()
        Run.objects.filter(pk=run.pk).update(status="parked", error="It changed.", finished_at=Now())
        run.version.__class__.objects.filter(pk=run.version_id).update(fingerprint="older")
        said = text(ada.get("/health/"))
        assert "Changed since: the code of its tools changed" in said
        assert "1 open run of refunds v1 cannot go on with the installed code." in said
        assert other.is_open

    def test_a_run_that_keeps_failing_is_listed(self, ada):
        run = factories.make_case()
        Run.objects.filter(pk=run.pk).update(last_error="ScriptedFailure: no", attempts=2)
        said = text(ada.get("/health/"))
        assert "2 attempts ScriptedFailure: no" in said

    def test_work_is_stopped_and_goes_on(self, ada, settings):
        all_well(settings)
        assert ada.post("/health/drain/").status_code == 302
        said = text(ada.get("/health/"))
        assert "All work has been stopped since" in said
        assert "Stopped by a person" in said
        assert ada.post("/health/drain/", {"to": "go-on"}).status_code == 302
        assert "All is well" in text(ada.get("/health/"))
        assert list(
            AuditEvent.objects.filter(action__startswith="work.").values_list("actor_name", flat=True)
        ) == [
            "ada",
            "ada",
        ]


class TestMetrics:
    def read(self, client, **headers):
        sent = client.get("/metrics", headers=headers)
        assert sent.status_code == 200
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(sent.content.decode())
            for sample in family.samples
        }

    def test_numbers(self, client, transactional_db, hints, settings):
        factories.make_request()
        all_well(settings)
        found = self.read(client)
        assert found["counterseal_asked",] == 1
        assert found["counterseal_runs", "interrupted"] == 1
        assert found["counterseal_pulse_age_seconds", "sweep"] < 60
        assert set(settings.QUEUES) <= {name[1] for name in found if name[0] == "counterseal_queue_depth"}
        assert found["counterseal_broker_up",] == 1
        assert found["counterseal_drained",] == 0
        work.drain(actor=SYSTEM)
        assert self.read(client)["counterseal_drained",] == 1

    def test_without_a_token_only_this_machine(self, client, db):
        self.read(client)
        assert client.get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == 403
        assert (
            client.get("/metrics", headers={"X-Forwarded-Proto": "https"}).status_code == 403
        )  # a proxy asks

    def test_with_a_token_whoever_has_it(self, client, db, settings):
        settings.METRICS_TOKEN = "s3cret"
        assert client.get("/metrics").status_code == 403
        assert client.get("/metrics", headers={"Authorization": "Bearer s3cre"}).status_code == 403
        self.read(client, Authorization="Bearer s3cret")

    @pytest.mark.parametrize(
        ("path", "asked_for"), [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/login/", 400)]
    )
    def test_probes_come_by_address_and_without_tls(self, client, db, settings, path, asked_for):
        settings.ALLOWED_HOSTS = ["desk.example.com"]
        settings.SECURE_SSL_REDIRECT = path != "/login/"
        sent = client.get(path, headers={"Host": "10.0.0.7:8000"})
        assert sent.status_code == asked_for
        if asked_for == 200:
            assert {"X-Frame-Options", "X-Content-Type-Options", "Content-Security-Policy"} <= set(
                sent.headers
            )

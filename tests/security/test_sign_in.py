"""Guessing passwords gets slow, for the guesser only; everything about it is on the trail."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from approvals.models import AuditEvent, SignIn
from approvals.services import sessions
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rita():
    return factories.make_user("rita", "refund-reviewers")


def attempt(username="rita", password="wrong", address="192.0.2.1"):
    sent = {"username": username, "password": password}
    return Client(REMOTE_ADDR=address).post("/login/", sent)


def earlier(**span):
    SignIn.objects.update(at=F("at") - timedelta(**span))


def actions():
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def locked_out(username="rita", address="192.0.2.1"):
    for _ in range(sessions.PER_ACCOUNT_AND_ADDRESS):
        assert attempt(username, address=address).status_code == 422


@pytest.mark.parametrize("username", ["rita", "nobody", "RITA"])
def test_after_five_failures_even_the_right_password_waits(username, monkeypatch):
    locked_out(username)
    hashed = []
    monkeypatch.setattr("django.contrib.auth.authenticate", lambda **given: hashed.append(given))
    answer = attempt(username, factories.PASSWORD)
    assert (answer.status_code, answer["Retry-After"], hashed) == (429, "15", [])
    assert "Try again in 15 seconds." in answer.content.decode()
    assert actions() == ["session.failed"] * 5 + ["session.throttled"]
    entry = AuditEvent.objects.get(action="session.throttled")
    assert entry.data == {"username": username, "address": "192.0.2.1", "seconds": 15}


def test_waiting_is_enough_and_success_forgives():
    locked_out()
    earlier(seconds=16)
    assert attempt(password=factories.PASSWORD).status_code == 302
    assert attempt().status_code == 422


def test_each_further_failure_doubles_the_wait_up_to_a_quarter_of_an_hour():
    locked_out()
    waits = []
    for _ in range(4):
        waits.append(sessions.seconds_to_wait(username="rita", address="192.0.2.1"))
        earlier(seconds=waits[-1])
        attempt()
    assert waits == [15, 30, 60, 120]
    SignIn.objects.bulk_create(
        SignIn(account="rita", address="192.0.2.1", succeeded=False) for _ in range(50)
    )
    assert sessions.seconds_to_wait(username="rita", address="192.0.2.1") == 900
    earlier(minutes=15)
    assert sessions.seconds_to_wait(username="rita", address="192.0.2.1") == 0


def test_nobody_can_lock_a_colleague_out():
    assert attempt(password=factories.PASSWORD, address="198.51.100.7").status_code == 302
    for n in range(60):
        attempt(address=f"192.0.2.{n}")
    assert attempt(address="192.0.2.99").status_code == 429
    assert attempt(password=factories.PASSWORD, address="198.51.100.7").status_code == 302


def test_one_address_that_tries_many_accounts_waits():
    for n in range(sessions.PER_ADDRESS):
        attempt(f"user{n}")
    assert attempt("rita", factories.PASSWORD).status_code == 429
    assert attempt("rita", factories.PASSWORD, address="198.51.100.7").status_code == 302


def test_attempts_are_kept_for_a_day():
    attempt()
    earlier(hours=25)
    attempt()
    assert SignIn.objects.count() == 1


def test_the_admin_has_no_door_of_its_own():
    answer = Client().get("/admin/login/?next=/admin/auth/group/")
    assert (answer.status_code, answer["Location"]) == (302, "/login/?next=/admin/auth/group/")
    answer = Client().post("/admin/login/", {"username": "rita", "password": factories.PASSWORD})
    assert (answer.status_code, actions()) == (302, [])


def test_unknown_tokens_fill_no_trail_and_a_good_one_never_waits(rita):
    good = factories.make_token(rita, "read")
    revoked = f"cseal_{good.split('_')[1]}_wrong"

    def call(token):
        return Client().get("/api/v1/me", HTTP_AUTHORIZATION=f"Bearer {token}")

    for n in range(sessions.PER_ADDRESS):
        assert call(revoked if n else "my-password").status_code == 401
    before = AuditEvent.objects.count()
    refused = list(
        AuditEvent.objects.filter(action="token.refused").order_by("pk").values_list("data", flat=True)
    )
    assert len(refused) == sessions.PER_ADDRESS
    assert refused[0] == {"prefix": "", "address": "127.0.0.1"}
    assert refused[1]["prefix"] == good.split("_")[1]
    answer = call(revoked)
    assert (answer.status_code, answer["Retry-After"], answer.json()["title"]) == (
        429,
        "15",
        "Too many attempts",
    )
    assert call(good).status_code == 200
    assert attempt(address="127.0.0.1").status_code == 422
    assert AuditEvent.objects.count() == before + 1

"""Signing in and out, languages, the person's own page."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from approvals.models import AuditEvent
from tests import factories
from tests.pages.conftest import actions, text


def sign_in(client, username, password, **more):
    return client.post("/login/", {"username": username, "password": password, **more})


@pytest.mark.parametrize(
    ("username", "password"), [("rita", "wrong"), ("nobody", "counterseal"), ("gone", "counterseal")]
)
def test_one_message_for_every_failure(rita, username, password):
    factories.make_user("gone", is_active=False)
    client = Client()
    sent = sign_in(client, username, password, next="/runs/")
    assert sent.status_code == 422
    assert "The name or the password is not right." in text(sent)
    assert b'name="next" value="/runs/"' in sent.content
    entry = AuditEvent.objects.get(action="session.failed")
    assert entry.data["username"] == username
    assert password not in str(entry.data)


def test_signing_in_and_out_is_on_the_trail_and_next_is_kept(rita):
    client = Client()
    sent = sign_in(client, "rita", factories.PASSWORD, next="/runs/?status=open")
    assert (sent.status_code, sent["Location"]) == (302, "/runs/?status=open")
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/inbox/").status_code == 302
    assert actions()[-2:] == ["session.signed_in", "session.signed_out"]


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_next_never_leaves_the_site(rita, target):
    assert sign_in(Client(), "rita", factories.PASSWORD, next=target)["Location"] == "/"


def test_signing_out_by_a_link_is_not_possible(rita):
    assert rita.get("/logout/").status_code == 405


def test_the_browser_chooses_the_language_until_the_person_does(rita):
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9"}
    sent = rita.client.get("/inbox/", headers=chinese)
    assert 'lang="zh-hans"' in sent.content.decode()
    assert "收件箱" in text(sent)
    rita.post("/me/", {"language": "en", "time_zone": "Asia/Shanghai", "theme": "dark", "undo_seconds": "10"})
    sent = rita.client.get("/inbox/", headers=chinese)
    assert "收件箱" not in text(sent)
    assert re.search(r'<html lang="en" data-theme="dark" data-keys="off">', sent.content.decode())


def test_the_language_can_be_chosen_before_signing_in(db):
    client = Client()
    client.post("/language/", {"language": "zh-hans", "next": "/login/"})
    assert "登录" in text(client.get("/login/"))


def test_settings_are_checked_and_recorded(rita):
    good = {
        "language": "",
        "time_zone": "Europe/Berlin",
        "theme": "light",
        "undo_seconds": "30",
        "single_keys": "on",
    }
    assert rita.post("/me/", good).status_code == 302
    rita.user.refresh_from_db()
    assert (rita.user.time_zone, rita.user.theme, rita.user.undo_seconds) == ("Europe/Berlin", "light", 30)
    entry = AuditEvent.objects.get(action="settings.changed")
    assert entry.data["to"] == {"time_zone": "Europe/Berlin", "theme": "light", "undo_seconds": 30}
    for wrong in ({"theme": "pink"}, {"undo_seconds": "7"}, {"time_zone": "Mars/Base"}, {"language": "xx"}):
        assert rita.post("/me/", {**good, **wrong}).status_code == 422


def test_a_token_is_shown_once_and_can_be_revoked(rita):
    sent = rita.post("/me/tokens/", {"name": "erp", "scopes": ["read", "decide"], "days": "30"})
    (secret,) = re.findall(r"cseal_[0-9a-f]{8}_[\w-]{20,}", sent.content.decode())
    again = rita.get("/me/")
    assert secret not in again.content.decode()
    assert "erp" in text(again)
    token = rita.user.tokens.get()
    assert token.scopes == ["decide", "read"]
    assert rita.post(f"/me/tokens/{token.pk}/revoke/").status_code == 302
    assert "erp" not in text(rita.get("/me/"))
    assert actions()[-2:] == ["token.created", "token.revoked"]


@pytest.mark.parametrize(
    "wrong", [{"scopes": ["admin"]}, {"scopes": []}, {"days": "0"}, {"days": "366"}, {"days": "x"}]
)
def test_a_token_is_never_wider_than_its_person(rita, wrong):
    assert rita.post("/me/tokens/", {"scopes": ["read"], "days": "30", **wrong}).status_code == 422
    assert not rita.user.tokens.exists()


def test_nobody_revokes_the_token_of_somebody_else(rita, chen):
    factories.make_token(rita.user, "read")
    chen.post(f"/me/tokens/{rita.user.tokens.get().pk}/revoke/")
    assert rita.user.tokens.get().revoked_at is None


def test_times_are_those_of_the_person(rita):
    request = factories.make_request()
    type(request).objects.filter(pk=request.pk).update(created_at="2026-01-05T23:30:00Z")
    type(rita.user).objects.update(time_zone="Asia/Shanghai")
    sent = rita.get(f"/inbox/{request.pk}/")
    assert "6 Jan" in text(sent)
    assert "07:30" in text(sent)

"""Who sees what, and what everybody else is told. Every refusal is on the audit trail."""

from __future__ import annotations

import pytest
from django.test import Client

from approvals.models import AuditEvent
from tests import factories
from tests.pages.conftest import HTMX, actions, text

PAGES = ["/", "/inbox/", "/support/", "/support/new/", "/runs/", "/audit/", "/agents/", "/me/"]
MAY = {
    "rita": {"/inbox/", "/support/", "/support/new/", "/runs/", "/me/"},
    "sam": {"/inbox/", "/support/", "/support/new/", "/runs/", "/me/"},
    "ada": {"/inbox/", "/support/", "/support/new/", "/runs/", "/audit/", "/agents/", "/me/"},
    "audra": {"/inbox/", "/support/", "/runs/", "/audit/", "/agents/", "/me/"},
    "otto": {"/me/"},
}


@pytest.mark.parametrize(("name", "start"), [
    ("rita", "/inbox/"), ("sam", "/support/"), ("ada", "/audit/"), ("audra", "/audit/"), ("otto", None),
])  # fmt: skip
def test_everybody_starts_where_their_work_is(request, name, start):
    sent = request.getfixturevalue(name).get("/")
    assert (sent.status_code, sent.headers.get("Location")) == ((302, start) if start else (200, None))
    if start is None:
        assert "You have no role yet" in text(sent)


@pytest.mark.parametrize("name", MAY)
@pytest.mark.parametrize("path", PAGES[1:])
def test_pages_open_for_who_may_use_them_and_only_those_are_in_the_navigation(request, name, path):
    sent = request.getfixturevalue(name).get(path)
    assert sent.status_code == (200 if path in MAY[name] else 403)
    shown = sent.content.decode().partition('<nav class="nav"')[2].partition("</nav>")[0]
    assert {
        p for p in ("/inbox/", "/support/", "/runs/", "/audit/", "/agents/") if f'href="{p}"' in shown
    } == (MAY[name] & {"/inbox/", "/support/", "/runs/", "/audit/", "/agents/"})
    if sent.status_code == 403:
        assert "Your account may not" in text(sent)
        assert "access.refused" in actions()


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_is_asked_to(db, path):
    sent = Client().get(path)
    assert (sent.status_code, sent["Location"]) == (302, f"/login/?next={path}")
    fetched = Client().get(path, headers=HTMX)
    assert (fetched.status_code, fetched.content) == (401, b"")


def test_otto_sees_nothing_of_a_case(otto):
    request = factories.make_request()
    for path in (f"/inbox/{request.pk}/", f"/support/{request.thread_id}/", f"/runs/{request.run_id}/"):
        sent = otto.get(path)
        assert sent.status_code == 404
        assert "1,280" not in text(sent)
    assert otto.decide(request, "approve").status_code == 404
    refused = AuditEvent.objects.filter(action="access.refused", actor=otto.user)
    assert refused.count() == 4
    assert set(refused.values_list("thread_id", flat=True)) == {request.thread_id}


def test_sam_reads_the_request_and_cannot_decide(sam):
    request = factories.make_request()
    sent = sam.get(f"/inbox/{request.pk}/")
    assert "Only Refund reviewers can decide this" in text(sent)
    assert b"data-decide" not in sent.content
    refused = sam.decide(request, "approve")
    assert refused.status_code == 403
    request.refresh_from_db()
    assert request.is_pending
    assert AuditEvent.objects.get(action="access.refused").data["right"] == "decide"


def test_rita_cannot_decide_her_own_case(rita):
    request = factories.make_request(factories.make_case(rita.user))
    sent = rita.get(f"/inbox/{request.pk}/")
    assert "somebody else must decide it" in text(sent)
    assert b"data-decide" not in sent.content
    refused = rita.decide(request, "approve")
    assert refused.status_code == 403
    assert "somebody else must decide it" in text(refused)
    assert "Nothing is waiting" in text(rita.get("/inbox/?queue=mine"))
    assert "Your own case" in text(rita.get("/inbox/?queue=team"))


def test_audit_entries_are_hidden_from_others(rita):
    factories.make_request()
    entry = AuditEvent.objects.first()
    assert rita.get(f"/audit/{entry.pk}/").status_code == 404


def test_nothing_signed_in_is_kept_anywhere(rita):
    sent = rita.get("/inbox/")
    assert sent["Cache-Control"] == "no-store"
    assert "HX-Request" in sent["Vary"]
    assert "'unsafe-inline'" not in sent["Content-Security-Policy"]


def test_reading_never_decides(rita):
    request = factories.make_request()
    for path in (f"/inbox/{request.pk}/decide/", f"/inbox/{request.pk}/draft/"):
        assert rita.get(path).status_code == 405
    for mode in ("read", "edit", "reject", "zzz"):
        assert rita.get(f"/inbox/{request.pk}/?mode={mode}").status_code == 200
    request.refresh_from_db()
    assert (request.rev, request.is_pending) == (1, True)


def test_unknown_addresses_and_ids(rita):
    for path in ("/nope/", "/inbox/00000000-0000-0000-0000-000000000000/", "/runs/x/", "/inbox/1/"):
        sent = rita.get(path)
        assert sent.status_code == 404
        assert "There is nothing at this address" in text(sent)


def test_a_broken_page_says_so_without_the_database(rita):
    from django.template.loader import render_to_string

    assert "nothing was decided now" in render_to_string("500.html")

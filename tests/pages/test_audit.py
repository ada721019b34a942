"""The audit trail: filters in the URL, pages that can be cited, every entry with its own page."""

from __future__ import annotations

import pytest
from django.db import transaction

from approvals.actors import SYSTEM
from approvals.models import AuditEvent
from approvals.services import audit
from tests import factories
from tests.pages.conftest import fields, text


def rows(sent) -> int:
    return sent.content.decode().count('class="when"')


def test_filters(ada, rita):
    request = factories.make_request()
    factories.make_case(message="Something else entirely")
    rita.decide(request, "reject", message="no")
    everything = AuditEvent.objects.count()
    number = request.thread.number
    for query, there in (
        ("", everything), ("q=A-20931", 3), (f"q={request.run_id}", 3), ("what=request.rejected", 1), ("what=decisions", 2), ("who=people", 3),
        ("who=Rita Gupta", 1), (f"case={number}", 3), (f"run={request.run_id}", 3), ("from=2099-01-01", 0),
        ("to=2001-01-01", 0), ("q=zzz", 0), ("what=zzz", 0), ("case=x&run=x&from=x&to=2026-13-40&before=x", everything),
    ):  # fmt: skip
        assert rows(ada.get(f"/audit/?{query}")) == there, query
    assert "No entry matches" in text(ada.get("/audit/?q=zzz"))


def test_pages_of_fifty(ada):
    with transaction.atomic():
        for number in range(120):
            audit.record("session.failed", actor=SYSTEM, subject=None, data={"username": f"u{number}"})
    first = ada.get("/audit/")
    assert (rows(first), "Older" in text(first), "Newer" in text(first)) == (50, True, False)
    pks = list(AuditEvent.objects.order_by("-pk").values_list("pk", flat=True))
    second = ada.get(f"/audit/?before={pks[49]}")
    assert (rows(second), f"{pks[50]:,}" in text(second), "Newer" in text(second)) == (50, True, True)
    last = ada.get(f"/audit/?before={pks[99]}")
    assert (rows(last), "Older" in text(last)) == (20, False)
    back = ada.get(f"/audit/?after={pks[100]}")
    assert (rows(back), f"{pks[50]:,}" in text(back)) == (50, True)


def test_an_entry_shows_what_was_stored_what_changed_and_links_on(ada, rita):
    request = factories.make_request()
    rita.decide(request, "edit", **fields(request, amount="98"), message="scratch only")
    entry = AuditEvent.objects.get(action="request.edited")
    sent = ada.get(f"/audit/{entry.pk}/")
    shown, source = text(sent), sent.content.decode()
    for part in (
        "Approved with an edit",
        "Rita Gupta",
        "scratch only",
        request.digest,
        "Asked for a decision",
    ):
        assert part in shown
    assert "<del>CN¥1,280.00</del> <ins>CN¥98.00</ins>" in source
    for path in (f"/inbox/{request.pk}/", f"/support/{request.thread_id}/", f"/runs/{request.run_id}/"):
        assert f'href="{path}"' in source
    fragment = ada.get(f"/audit/{entry.pk}/", htmx=True).content.decode()
    assert "<html" not in fragment
    assert "data-shows" in fragment


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nobody_writes_to_it(ada, method):
    factories.make_request()
    pk = AuditEvent.objects.first().pk
    for path in ("/audit/", f"/audit/{pk}/"):
        assert getattr(ada.client, method)(path).status_code == 405

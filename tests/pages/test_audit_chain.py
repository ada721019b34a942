"""The trail's page says whether the chain is whole, looks again, and gives it out."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.db import connection, transaction

from approvals.actors import SYSTEM
from approvals.models import AuditEvent, AuditSeal
from approvals.services import audit, chain, downloads
from approvals.tasks import check_trail
from tests import factories
from tests.pages.conftest import actions, text

pytestmark = pytest.mark.django_db(transaction=True)
CHECK, JSONL, CSV = "/audit/check/", "/audit/export.jsonl", "/audit/export.csv"


@pytest.fixture
def trail(ada):
    factories.make_request(status="approved")
    with transaction.atomic():
        audit.record("settings.changed", actor=SYSTEM, subject=None, data={"reason": "=HYPERLINK(1)"})


def test_the_chip_says_what_the_last_look_found(ada, trail):
    assert "Chain not checked yet" in text(ada.get("/audit/"))
    assert ada.post(CHECK).url == "/audit/"
    assert "Chain whole, checked" in text(ada.get("/audit/"))
    assert check_trail() == "whole"
    seal = AuditSeal.objects.get(seq=3)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE approvals_auditevent SET actor_name = 'x' WHERE id = %s", [seal.event_id])
    assert check_trail() == chain.CHANGED
    page = ada.get("/audit/")
    assert f"Broken at {seal.event_id}: its content or its seal was changed" in text(page)
    assert f'href="/audit/{seal.event_id}/"' in page.content.decode()


def test_an_entry_has_its_place(ada, trail):
    seal = AuditSeal.objects.order_by("-seq").first()
    shown = text(ada.get(f"/audit/{seal.event_id}/"))
    assert f"Number {seal.seq} Seal {seal.digest}" in shown


def test_the_whole_trail_goes_out_with_its_own_entry(audra, trail):
    sent = audra.post(JSONL)
    lines = [json.loads(line) for line in sent.content.decode().splitlines()]
    assert sent["Content-Disposition"].startswith('attachment; filename="audit-')
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[-1]["action"], lines[-1]["actor_name"]) == ("audit.exported", "audra")
    assert len(lines) == AuditEvent.objects.count()


def test_a_table_has_what_the_filter_shows_and_no_formula(ada, trail):
    sent = ada.post(f"{CSV}?what=settings.changed")
    rows = list(csv.DictReader(io.StringIO(sent.content.decode("utf-8-sig"))))
    assert [row["action"] for row in rows] == ["settings.changed"]
    assert actions()[-1] == "audit.exported"
    assert AuditEvent.objects.latest("pk").data == {"filter": {"what": "settings.changed"}, "as": "csv"}


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_a_cell_is_inert(cell):
    assert downloads.inert(cell) == f"'{cell}"


@pytest.mark.parametrize("path", [CHECK, JSONL, CSV])
def test_only_who_sees_the_trail_checks_or_takes_it(rita, sam, otto, ada, trail, path):
    for person in (rita, sam, otto):
        assert person.post(path).status_code == 403
    assert ada.get(path).status_code == 405, "a link takes nothing out"
    assert "audit.exported" not in actions()

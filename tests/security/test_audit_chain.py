"""The sealed trail: whoever changes it is found out, by the application and by anybody with an export and an anchor."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from approvals.actors import SYSTEM
from approvals.models import AuditEvent, AuditSeal
from approvals.services import audit, chain
from tests import factories

TOOL = Path(__file__).resolve().parents[2] / "tools" / "verify_audit.py"
PRIVATE, PUBLIC = chain.new_key()


@pytest.fixture
def trail(transactional_db, hints, monkeypatch):
    """A real one: cases, requests, decisions, text of every kind."""
    monkeypatch.setenv("COUNTERSEAL_ANCHOR_KEY", PRIVATE)
    factories.make_request(status="approved")
    factories.make_request(status="rejected")
    factories.make_request()
    with transaction.atomic():
        audit.record(
            "settings.changed",
            actor=SYSTEM,
            subject=None,
            data={"n": 1.5, "text": '退款 👩‍👩‍👧 \\ " \u202e', "none": None},
        )
    assert AuditEvent.objects.count() >= 9


@pytest.fixture
def hints(monkeypatch):
    from approvals import dispatch

    monkeypatch.setattr(dispatch, "_put", lambda hint: None)


def behind_its_back(*statements):
    """As the owner of the database may: no trigger fires."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            cursor.execute(statement)


def exported(tmp_path):
    file = tmp_path / "trail.jsonl"
    call_command("audit", "export", str(file))
    return file


def tool(*args):
    """The verifier, without the application: (exit status, what it says)."""
    done = subprocess.run(
        [sys.executable, "-I", TOOL, *map(str, args)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.strip() or done.stderr


# --- sealing ------------------------------------------------------------------------------------------------------------
def test_every_entry_is_sealed_in_the_order_of_commits(trail):
    seals = list(AuditSeal.objects.order_by("seq").values_list("seq", flat=True))
    assert seals == list(range(1, AuditEvent.objects.count() + 1))
    assert chain.head()[0] == seals[-1]
    assert chain.first_wrong() is None


def test_an_act_that_is_rolled_back_leaves_no_place_in_the_chain(trail):
    before = chain.head()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit.record("settings.changed", actor=SYSTEM, subject=None)
        raise ZeroDivisionError
    assert chain.head() == before


def test_an_entry_that_cannot_be_sealed_stops_its_act(trail):
    before = AuditEvent.objects.count()
    behind_its_back("ALTER FUNCTION audit_canonical RENAME TO audit_canonical_gone")
    with pytest.raises(DatabaseError), transaction.atomic():
        audit.record("settings.changed", actor=SYSTEM, subject=None)
    behind_its_back("ALTER FUNCTION audit_canonical_gone RENAME TO audit_canonical")
    assert AuditEvent.objects.count() == before


def test_many_at_once_make_one_chain(trail):
    start = threading.Barrier(8)

    def act():
        start.wait()
        for _ in range(10):
            with transaction.atomic():
                audit.record("settings.changed", actor=SYSTEM, subject=None)
                audit.record("settings.changed", actor=SYSTEM, subject=None)
        connection.close()

    before = chain.head()[0]
    threads = [threading.Thread(target=act) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert chain.head()[0] == before + 160
    assert chain.first_wrong() is None


@pytest.mark.parametrize("statement", [
    "UPDATE approvals_auditevent SET actor_name = 'x'", "DELETE FROM approvals_auditevent", "TRUNCATE approvals_auditevent CASCADE",
    "UPDATE approvals_auditseal SET seq = seq + 100", "DELETE FROM approvals_auditseal", "TRUNCATE approvals_auditseal",
    "INSERT INTO approvals_auditseal VALUES (9999, 'x', 'x', 1)", "UPDATE approvals_audithead SET seq = 1", "DELETE FROM approvals_audithead",
])  # fmt: skip
def test_nobody_changes_it_by_the_way(trail, statement):
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert chain.first_wrong() is None


def test_an_entry_without_an_actor_or_an_unknown_action_is_refused(trail):
    with pytest.raises(KeyError), transaction.atomic():
        audit.record("no.such.action", actor=SYSTEM, subject=None)
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEvent.objects.create(action="settings.changed", actor_kind="system", actor_name="")


def test_a_trail_from_before_the_chain_is_sealed_as_it_stands(trail):
    before = AuditEvent.objects.count()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
    MigrationExecutor(connection).migrate([("approvals", "0013_pictures_of_stacks")])
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    with connection.cursor() as cursor:
        cursor.execute("RESET session_replication_role")
    assert (chain.head()[0], chain.first_wrong()) == (before, None)
    with transaction.atomic():
        audit.record("settings.changed", actor=SYSTEM, subject=None)
    assert (chain.head()[0], chain.first_wrong()) == (before + 1, None)


# --- tampering ------------------------------------------------------------------------------------------------------------
SWAP = """
    UPDATE approvals_auditseal SET event_id = CASE seq WHEN 4 THEN (SELECT event_id FROM approvals_auditseal WHERE seq = 5)
    ELSE (SELECT event_id FROM approvals_auditseal WHERE seq = 4) END WHERE seq IN (4, 5)
"""
TAMPERED = {
    "a changed byte": (["UPDATE approvals_auditevent SET actor_name = actor_name || ' ' WHERE id = (SELECT event_id FROM approvals_auditseal WHERE seq = 4)"], (4, chain.CHANGED)),
    "an entry removed": (["DELETE FROM approvals_auditseal WHERE seq = 4"], (5, chain.MISSING)),
    "an entry whose seal stays": (["DELETE FROM approvals_auditevent WHERE id = (SELECT event_id FROM approvals_auditseal WHERE seq = 4)"], (4, chain.GONE)),
    "an entry put in": (["INSERT INTO approvals_auditevent (at, act, action, actor_kind, actor_name, object_kind, object_id, object_name, data) SELECT at, act, action, actor_kind, 'nobody', '', '', '', '{}' FROM approvals_auditevent LIMIT 1"], (0, chain.UNSEALED)),
    "the end cut off": (["DELETE FROM approvals_auditseal WHERE seq = (SELECT max(seq) FROM approvals_auditseal)",
                         "DELETE FROM approvals_auditevent e WHERE NOT EXISTS (SELECT FROM approvals_auditseal s WHERE s.event_id = e.id)"], (-1, chain.CUT)),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAMPERED)
def test_the_application_finds_it(trail, kind, monkeypatch):
    statements, (seq, what) = TAMPERED[kind]
    last = chain.head()[0]
    behind_its_back(*statements)
    wrong = chain.first_wrong()
    assert (wrong.seq, wrong.what) == (last - 1 if seq < 0 else seq, what)
    with pytest.raises(CommandError, match="entry|place|chain"):
        call_command("audit", "verify")


def reseal(from_seq: int) -> str:
    """What the owner of the database would run to hide a change: everything behind it gets new seals."""
    return f"""
        DO $$ DECLARE s approvals_auditseal; e approvals_auditevent; last bytea; BEGIN
          SELECT hash INTO last FROM approvals_auditseal WHERE seq = {from_seq} - 1;
          FOR s IN SELECT * FROM approvals_auditseal WHERE seq >= {from_seq} ORDER BY seq LOOP
            SELECT * INTO e FROM approvals_auditevent WHERE id = s.event_id;
            UPDATE approvals_auditseal SET prev = last,
              hash = sha256(last || convert_to(audit_canonical(s.seq, e), 'UTF8')) WHERE seq = s.seq RETURNING hash INTO last;
          END LOOP;
          UPDATE approvals_audithead SET hash = last;
        END $$"""


def test_a_full_rewrite_is_found_by_the_anchor(trail, tmp_path):
    anchors = tmp_path / "anchors.jsonl"
    call_command("audit", "anchor", str(anchors))
    said = StringIO()
    call_command("audit", "verify", "--anchors", str(anchors), stdout=said)
    assert "1 anchors agree" in said.getvalue()
    behind_its_back(
        "UPDATE approvals_auditevent SET actor_name = 'Somebody else' WHERE id = (SELECT event_id FROM approvals_auditseal WHERE seq = 3)",
        reseal(3),
    )
    assert chain.first_wrong() is None, "without the anchor it looks whole"
    with pytest.raises(CommandError, match="rewritten after it was anchored"):
        call_command("audit", "verify", "--anchors", str(anchors))
    file = exported(tmp_path)
    assert tool(file)[0] == 0
    assert "rewritten after it was anchored" in tool(file, anchors, PUBLIC)[1]


def test_a_forged_anchor_is_found(trail, tmp_path):
    made = chain.anchor(PRIVATE)
    forged = tmp_path / "anchors.jsonl"
    forged.write_text(json.dumps({**made, "hash": "00" * 32}) + "\n")
    with pytest.raises(CommandError, match="wrong signature"):
        call_command("audit", "verify", "--anchors", str(forged))
    assert tool(exported(tmp_path), forged, PUBLIC)[0] == 1
    stranger = chain.anchor(chain.new_key()[0])
    forged.write_text(json.dumps(stranger) + "\n")
    assert "wrong signature" in tool(exported(tmp_path), forged, PUBLIC)[1]


# --- the export, and the verifier without the application ----------------------------------------------------------------
def test_an_untouched_export_passes_and_is_on_the_trail(trail, tmp_path):
    anchors = tmp_path / "anchors.jsonl"
    call_command("audit", "anchor", str(anchors))
    file = exported(tmp_path)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[-1]["action"] == "audit.exported"
    assert len(lines) == AuditEvent.objects.count()
    assert tool(file) == (0, "whole; 0 anchors agree")
    assert tool(file, anchors, PUBLIC) == (0, "whole; 1 anchors agree")


def change(lines):
    row = json.loads(lines[4])
    return [*lines[:4], json.dumps({**row, "actor_name": row["actor_name"] + "x"}), *lines[5:]]


def change_both(lines):
    row = json.loads(lines[4])
    canonical = row["canonical"].replace(
        row["action"], "request.approved" if row["action"] != "request.approved" else "request.rejected"
    )
    return [
        *lines[:4],
        json.dumps({**row, "action": json.loads(canonical)[4], "canonical": canonical}),
        *lines[5:],
    ]


EXPORTS = {
    "what is shown was changed": (change, "line 5"),
    "the canonical text was changed too": (change_both, "line 5"),
    "a line was removed": (lambda lines: [*lines[:4], *lines[5:]], "line 5"),
    "a line was put in": (lambda lines: [*lines[:4], lines[2], *lines[4:]], "line 5"),
    "two lines changed places": (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], "line 5"),
    "a line is no entry": (lambda lines: [*lines[:4], "{}", *lines[5:]], "line 5"),
    "the end was cut off": (lambda lines: lines[:-3], "the end is missing"),
}  # fmt: skip


@pytest.mark.parametrize("kind", EXPORTS)
def test_the_verifier_finds_it_and_says_where(trail, tmp_path, kind):
    tamper, where = EXPORTS[kind]
    anchors = tmp_path / "anchors.jsonl"
    call_command("audit", "anchor", str(anchors))
    file = exported(tmp_path)
    file.write_text("\n".join(tamper(file.read_text().splitlines())) + "\n")
    status, said = tool(file, anchors, PUBLIC)
    assert (status, said.startswith(where)) == (1, True), said


def test_it_is_written_for_any_python_3():
    import ast

    tree = ast.parse(TOOL.read_text(), feature_version=(3, 8))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported <= {"hashlib", "json", "sys"}


def test_a_key_is_made_and_a_missing_one_is_said(trail, monkeypatch):
    said = StringIO()
    call_command("audit", "key", stdout=said)
    private, public = [
        line.partition("=")[2] or line.rpartition(" ")[2] for line in said.getvalue().split("\n")[:2]
    ]
    assert chain.public_of(private) == public
    monkeypatch.delenv("COUNTERSEAL_ANCHOR_KEY")
    with pytest.raises(CommandError, match="is not set"):
        call_command("audit", "anchor", "-")

"""The sealed trail: is it whole, and what of it goes outside. Sealing itself is the database's (migration 0014).

An entry's canonical text is what `audit_canonical()` makes of its columns; seal number n is
sha256(seal n-1 || canonical text). Whoever owns the database can rewrite all of it, and only an anchor kept outside
shows that: the end of the chain, signed with Ed25519.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.db import connection, transaction

from agents.words import gettext_noop
from approvals import access
from approvals.actors import Actor
from approvals.models import AuditHead
from approvals.services import audit, pulses

CHAIN = "main"
CHANGED = gettext_noop("its content or its seal was changed")
MISSING = gettext_noop("an entry is missing before it")
GONE = gettext_noop("its entry is gone")
UNSEALED = gettext_noop("an entry was put in behind the chain")
CUT = gettext_noop("the end of the chain is missing")
REWRITTEN = gettext_noop("the chain was rewritten after it was anchored")
FORGED = gettext_noop("an anchor has a wrong signature")

FIRST_WRONG = """
    WITH chained AS (
        SELECT s.seq, s.event_id, s.prev, s.hash, e.id AS there,
               lag(s.hash, 1, sha256('counterseal')) OVER (ORDER BY s.seq) AS before,
               lag(s.seq, 1, 0::bigint) OVER (ORDER BY s.seq) AS number_before,
               sha256(s.prev || convert_to(audit_canonical(s.seq, e), 'UTF8')) AS again
        FROM approvals_auditseal s LEFT JOIN approvals_auditevent e ON e.id = s.event_id
    )
    SELECT seq, event_id, CASE WHEN seq <> number_before + 1 THEN 'missing' WHEN there IS NULL THEN 'gone'
                               WHEN prev <> before OR hash <> again THEN 'changed' END AS what
    FROM chained
    WHERE seq <> number_before + 1 OR there IS NULL OR prev <> before OR hash <> again
    ORDER BY seq LIMIT 1
"""
UNSEALED_ROW = """
    SELECT e.id FROM approvals_auditevent e
    WHERE NOT EXISTS (SELECT FROM approvals_auditseal s WHERE s.event_id = e.id) ORDER BY e.id LIMIT 1
"""
LAST = "SELECT seq, hash FROM approvals_auditseal ORDER BY seq DESC LIMIT 1"
EXPORT = """
    SELECT s.seq, s.event_id, audit_canonical(s.seq, e), encode(s.prev, 'hex'), encode(s.hash, 'hex')
    FROM approvals_auditseal s JOIN approvals_auditevent e ON e.id = s.event_id ORDER BY s.seq
"""
COLUMNS = (
    "seq", "id", "at", "act", "action", "actor_kind", "actor_id", "actor_name", "object_kind", "object_id",
    "object_name", "thread_id", "run_id", "data",
)  # fmt: skip

type Anchor = Mapping[str, Any]
"""{"chain", "seq", "hash": hex, "signature": hex}"""


@dataclass(frozen=True)
class Wrong:
    """The first thing that is wrong."""

    seq: int  # place in the chain; 0: outside of it
    entry: int | None  # number of the entry
    what: str  # message id


def first_wrong(anchors: Iterable[Anchor] = (), public_key: str = "") -> Wrong | None:
    """None if the chain is whole and every anchor agrees. Reads one snapshot."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(FIRST_WRONG)
        if found := cursor.fetchone():
            return Wrong(found[0], found[1], {"missing": MISSING, "gone": GONE, "changed": CHANGED}[found[2]])
        cursor.execute(UNSEALED_ROW)
        if found := cursor.fetchone():
            return Wrong(0, found[0], UNSEALED)
        cursor.execute(LAST)
        seq, last = cursor.fetchone() or (0, None)
        head = AuditHead.objects.filter(chain=CHAIN).first()
        if (head.seq if head else 0) != seq or (
            head and last is not None and bytes(head.hash) != bytes(last)
        ):
            return Wrong(seq, None, CUT)
        return _against_anchors(cursor, anchors, public_key, seq)


def _against_anchors(cursor: Any, anchors: Iterable[Anchor], public_key: str, end: int) -> Wrong | None:
    for anchor in anchors:
        seq = int(anchor["seq"])
        if not _is_signed(anchor, public_key):
            return Wrong(seq, None, FORGED)
        if seq > end:
            return Wrong(end, None, CUT)
        cursor.execute("SELECT encode(hash, 'hex') FROM approvals_auditseal WHERE seq = %s", [seq])
        if seq and cursor.fetchone() != (anchor["hash"],):
            return Wrong(seq, None, REWRITTEN)
    return None


def check() -> Wrong | None:
    """Look at the whole chain and keep what was found, for the page."""
    wrong = first_wrong()
    found: dict[str, Any] = {"entries": head()[0]}
    if wrong is not None:
        found |= {"seq": wrong.seq, "entry": wrong.entry, "what": wrong.what}
    pulses.beat(pulses.TRAIL, **found)
    return wrong


def check_now(*, actor: Actor) -> Wrong | None:
    """Because somebody wants to know now."""
    access.require(actor.person, access.may_see_audit(actor.person), "audit")
    return check()


def head() -> tuple[int, str]:
    """(number, hash in hex) of the last entry."""
    row = AuditHead.objects.filter(chain=CHAIN).first()
    return (row.seq, bytes(row.hash).hex()) if row else (0, "")


def anchor(private_key: str) -> dict[str, Any]:
    """The end of the chain, signed. Keep it where nobody who can write the database can write."""
    seq, digest = head()
    made: dict[str, Any] = {"chain": CHAIN, "seq": seq, "hash": digest}
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private_key))
    return {**made, "signature": key.sign(signed_part(made)).hex()}


def signed_part(made: Anchor) -> bytes:
    return json.dumps([made["chain"], made["seq"], made["hash"]]).encode()


def _is_signed(made: Anchor, public_key: str) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(made["signature"]), signed_part(made))
    except (InvalidSignature, ValueError, KeyError):
        return False
    return True


def new_key() -> tuple[str, str]:
    """(private, public), in hex."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes_raw().hex(), key.public_key().public_bytes_raw().hex()


def public_of(private_key: str) -> str:
    return (
        Ed25519PrivateKey.from_private_bytes(bytes.fromhex(private_key)).public_key().public_bytes_raw().hex()
    )


def export(*, actor: Actor) -> Iterator[str]:
    """JSON lines, oldest first, that `tools/verify_audit.py` reads. Going outside is itself on the trail, first."""
    with transaction.atomic():
        audit.record("audit.exported", actor=actor, subject=None)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(f"DECLARE trail NO SCROLL CURSOR FOR {EXPORT}")
        while True:
            cursor.execute("FETCH 1000 FROM trail")
            rows = cursor.fetchall()
            if not rows:
                return
            for _seq, _entry, canonical, prev, digest in rows:
                values = dict(zip(COLUMNS, json.loads(canonical), strict=True))
                line = {**values, "canonical": canonical, "prev": prev, "hash": digest}
                yield json.dumps(line, ensure_ascii=False)

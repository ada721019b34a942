#!/usr/bin/env python3
"""Check an exported audit trail without the application and without its database. Python 3.8+, nothing else.

    python verify_audit.py trail.jsonl
    python verify_audit.py trail.jsonl anchors.jsonl PUBLIC_KEY

`trail.jsonl` comes from `manage.py audit export`: one entry a line. Every entry is hashed onto the one before, so a
changed byte, an entry that was removed, put in or moved breaks the chain at that place. Somebody who rewrites everything
from some entry on, or cuts the end off, leaves a chain that looks whole: that is what anchors are for, the signed ends of
the chain that were kept elsewhere (`manage.py audit anchor`).

Prints what is wrong, with the first line where it shows, and ends with 1; or says that all is whole, and ends with 0.
"""

import hashlib
import json
import sys
from decimal import Decimal

GENESIS = hashlib.sha256(b"counterseal").digest()
COLUMNS = (
    "seq", "id", "at", "act", "action", "actor_kind", "actor_id", "actor_name", "object_kind", "object_id",
    "object_name", "thread_id", "run_id", "data",
)  # fmt: skip


def first_wrong(lines, anchors):
    """The first thing that is wrong, or None. `anchors`: {number: hash in hex}."""
    number, prev = 0, GENESIS
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line, parse_float=Decimal)
            hashed = json.loads(row["canonical"], parse_float=Decimal)
            shown = [row[name] for name in COLUMNS]
            said_prev, said_hash = bytes.fromhex(row["prev"]), bytes.fromhex(row["hash"])
        except (ValueError, KeyError, TypeError):
            return f"line {number} is no entry of an audit trail"
        if hashed[0] != number:
            return f"line {number}: entry {hashed[0]} of the chain stands where entry {number} belongs"
        if hashed != shown:
            return f"line {number} (entry {row['id']}): what is shown is not what was hashed"
        if said_prev != prev or hashlib.sha256(prev + row["canonical"].encode()).digest() != said_hash:
            return f"line {number} (entry {row['id']}): the hash does not follow from the entry before"
        prev = said_hash
        if anchors.get(number, prev.hex()) != prev.hex():
            return f"line {number} (entry {row['id']}): the chain was rewritten after it was anchored"
    if anchors and max(anchors) > number:
        return f"the end is missing: anchored at {max(anchors)}, the trail ends at {number}"
    return None


def read_anchors(lines, public_key):
    """{number: hash in hex}. Raises ValueError for a signature that is wrong."""
    found = {}
    for line in lines:
        anchor = json.loads(line)
        signed = json.dumps([anchor["chain"], anchor["seq"], anchor["hash"]]).encode()
        if not is_signed(bytes.fromhex(public_key), bytes.fromhex(anchor["signature"]), signed):
            raise ValueError(f"the anchor of entry {anchor['seq']} has a wrong signature")
        if anchor["seq"]:
            found[anchor["seq"]] = anchor["hash"]
    return found


# --- Ed25519 (RFC 8032, section 6), verification only -------------------------------------------------------------------
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def _add(a, b):
    x, y, z, t = a
    u, v, w, s = b
    e, f = (y - x) * (v - u) % P, (y + x) * (v + u) % P
    g, h = 2 * t * s * D % P, 2 * z * w % P
    i, j, k, m = f - e, h - g, h + g, f + e
    return i * j % P, k * m % P, j * k % P, i * m % P


def _times(n, point):
    out = (0, 1, 1, 0)
    while n:
        if n & 1:
            out = _add(out, point)
        point = _add(point, point)
        n >>= 1
    return out


def _point(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if len(data) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = _point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(public_key, signature, message):
    key, nonce = _point(public_key), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or len(signature) != 64 or scalar >= L:
        return False
    digest = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % L
    left, right = _times(scalar, BASE), _add(nonce, _times(digest, key))
    return not (
        (left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P
    )


def main(argv):
    if len(argv) not in (1, 3):
        print(__doc__)
        return 2
    anchors = {}
    try:
        if len(argv) == 3:
            with open(argv[1], encoding="utf-8") as file:
                anchors = read_anchors(file, argv[2])
        with open(argv[0], encoding="utf-8") as file:
            wrong = first_wrong(file, anchors)
    except (OSError, ValueError, KeyError) as error:
        wrong = str(error)
    print(wrong or f"whole; {len(anchors)} anchors agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

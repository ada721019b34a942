"""Ten thousand finished cases and a thousand pending requests, beside a desk with one page of each: the same acts, the
same run. What grows with the length of a list, up to a page, is the same on both sides; what grows with the tables is not.
"""

from __future__ import annotations

import time

import pytest
from django.test import Client

from approvals import dispatch
from approvals.tasks import sweep
from tests import factories
from tests.bench import volume
from tests.bench.test_bench import say

pytestmark = pytest.mark.bench

ROUNDS = 15


def best_ms(act, setup=None):
    """In milliseconds; the first rounds warm caches and plans up. The best, because others use the machine too."""
    taken = []
    for number in range(ROUNDS + 3):
        given = (setup(),) if setup else ()
        began = time.perf_counter()
        act(*given)
        if number >= 3:
            taken.append((time.perf_counter() - began) * 1000)
    return min(taken)


def figures():
    people = {name: factories.make_user(name, *groups) for name, *groups in (
        ("rita", "refund-reviewers"), ("sam", "support"), ("ada", "administrators"), ("chen", "refund-reviewers"),
    )}  # fmt: skip
    pages = {
        "inbox": ("rita", "/inbox/"),
        "inbox, done": ("rita", "/inbox/?queue=done"),
        "cases": ("sam", "/support/"),
        "runs": ("sam", "/runs/"),
        "audit trail": ("ada", "/audit/"),
    }
    found = {}
    for name, (who, path) in pages.items():
        client = Client()
        client.force_login(people[who])
        assert client.get(path).status_code == 200
        found[name] = best_ms(lambda client=client, path=path: client.get(path))
    found["decide"] = best_ms(
        lambda request: factories.decide(request, "reject", by=people["chen"], message="no"),
        factories.make_request,
    )
    found["sweep"] = best_ms(sweep)
    return found


def test_a_full_desk_beside_one_page(transactional_db, monkeypatch):
    monkeypatch.setattr(dispatch, "_put", lambda hint: None)
    volume.fill(50, 50)  # no more than a page of anything
    small = figures()
    began = time.perf_counter()
    volume.fill(10_000, 1_000, mark="more")
    say(f"filled in {time.perf_counter() - began:.1f} s: {volume.counts()}")
    full = figures()
    for name, before in small.items():
        ratio = full[name] / before
        say(
            f"{name}: {before:.1f} ms with a page, {full[name]:.1f} ms full: {ratio:.1f} x{'  TOO SLOW' if ratio > 2 else ''}"
        )

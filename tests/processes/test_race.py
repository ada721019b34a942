"""Case 2: two people, each in a browser and by a program, approve the same 200 requests at the same instant."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal

import httpx

from approvals.models import AuditEvent, Decision, Run
from approvals.tasks import sweep
from tests.processes.conftest import by_session, by_token
from tests.services import wait_until

ROUNDS = 200
AMOUNT = 1001


def refundable_orders(url):
    """(order, currency) pairs that together allow ROUNDS refunds of AMOUNT."""
    found, after = [], ""
    while len(found) < ROUNDS:
        page = httpx.get(f"{url}/orders", params={"limit": 100, "after": after}).json()
        for order in page["items"]:
            times = min(4, int(Decimal(order["refundable"]) // AMOUNT))
            found += [(order["id"], order["currency"])] * times
        after = page["next"]
        assert after or len(found) >= ROUNDS
    return found[:ROUNDS]


def test_200_racing_double_approvals_have_200_effects_and_every_loser_is_told_who_decided(
    office, web, settings
):
    settings.STALE_SECONDS = 10  # many runs at once: hints that come too often only fill the queue
    office.hire()
    office.hire()
    orders = refundable_orders(office.shop.url)
    runs = [
        office.open(
            {"calls": [["issue_refund", {"order_id": o, "amount": AMOUNT, "currency": c}]]}, {"text": "done"}
        )
        for o, c in orders
    ]
    wait_until(lambda: _swept() and _count("interrupted") == ROUNDS, 240, "not every request was asked")
    people = [
        by_session(web.url, office.rita),
        by_session(web.url, office.chen),
        by_token(web.url, office.rita),
        by_token(web.url, office.chen),
    ]
    answers = [_race(people, run) for run in runs]
    wait_until(lambda: _swept() and _count("success") == ROUNDS, 240, "not every run finished")

    assert Counter(tuple(sorted(r.status_code for r in round_)) for round_ in answers) == {
        (201, 409, 409, 409): ROUNDS
    }
    for losing in (r for round_ in answers for r in round_ if r.status_code == 409):
        problem = losing.json()
        assert problem["decided_by"] in ("rita", "chen")
        assert problem["request_status"] == "approved"
    made = httpx.get(f"{office.shop.url}/effects").json()["items"]
    wanted = Counter((order, currency) for order, currency in orders)
    ours = [e for e in made if Decimal(e["amount"]) == AMOUNT]
    assert Counter((e["order_id"], e["currency"]) for e in ours) == wanted
    assert len(ours) == ROUNDS
    assert Decision.objects.count() == ROUNDS
    assert AuditEvent.objects.filter(action="request.approved").count() == ROUNDS
    assert AuditEvent.objects.filter(action="execution.succeeded").count() == ROUNDS


def _race(people, run):
    (request,) = run.requests.all()
    body = {"type": "approve", "rev": request.rev, "digest": request.digest}
    start, answers = threading.Barrier(len(people)), []

    def press(post):
        start.wait()
        answers.append(post(f"/requests/{request.pk}/decisions", body))

    threads = [threading.Thread(target=press, args=(post,)) for post in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _count(status):
    return Run.objects.filter(status=status).count()


def _swept():
    sweep()
    return True

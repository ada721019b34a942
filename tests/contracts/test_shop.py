"""One suite for the Shop port, over both of its adapters."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Protocol

import pytest

from agents.outcomes import Ambiguous, Refused, Unavailable
from agents.refunds.http_shop import HttpShop
from agents.refunds.memory import MemoryShop, sample_order
from agents.refunds.ports import Shop
from tests.shops import ShopProcess

LAMP = "A-20931"


class Site(Protocol):
    """A shop under test: the port, and the means to break it."""

    shop: Shop
    yen: str

    def break_(self, how: str) -> None: ...
    def heal(self) -> None: ...


class Real:
    def __init__(self, process: ShopProcess) -> None:
        self.process, self.shop = process, HttpShop(process.url)
        orders = process.call("GET", "/orders?limit=500")[1]["items"]
        self.yen = next(o["id"] for o in orders if o["currency"] == "JPY" and Decimal(o["refundable"]) > 9000)

    def break_(self, how: str) -> None:
        if how == "down":
            self.process.fault("down")
        else:
            self.process.fault({"lost": "drop_after", "refuse": "error_before"}[how])

    def heal(self) -> None:
        self.process.fault("none")


class Fake:
    def __init__(self) -> None:
        self.fake = MemoryShop([sample_order(), sample_order("A-1", "9800", "JPY")])
        self.shop: Shop = self.fake
        self.yen = "A-1"

    def break_(self, how: str) -> None:
        self.fake.fault = how

    def heal(self) -> None:
        self.fake.fault = None


@pytest.fixture(params=["http", "memory"])
def site(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Site]:
    if request.param == "memory":
        yield Fake()
        return
    process = ShopProcess(tmp_path)
    yield Real(process)
    process.stop()


def body(amount: str = "1280.00", order_id: str = LAMP, currency: str = "CNY", **more: str) -> dict[str, str]:
    return {"order_id": order_id, "amount": amount, "currency": currency, "reason": "broken", **more}


def test_an_order_has_what_the_port_promises(site):
    order = site.shop.order(LAMP)
    assert (order["currency"], order["captured"], order["refunded"], order["refundable"]) == (
        "CNY", "1280.00", "0.00", "1280.00",
    )  # fmt: skip
    assert order["customer"]["name"] == "李伟"
    assert order["status"] == "delivered"
    assert order["payment"] == {"method": "card", "last4": "4417"}
    assert set(order["items"][0]) == {"sku", "title", "title_zh", "qty", "price"}


def test_what_does_not_exist_is_none(site):
    assert site.shop.order("A-0") is None
    assert site.shop.order("../effects") is None
    assert site.shop.policy("none") is None
    assert site.shop.refund_by_key("nobody") is None


def test_policies_have_numbered_clauses(site):
    policy = site.shop.policy("RP-4")
    assert policy["version"]
    assert policy in site.shop.policies()
    assert {"§3.2", "§3.3"} <= {clause["id"] for clause in policy["clauses"]}


def test_a_refund_changes_the_order_and_is_found_by_key(site):
    made = site.shop.refund(body("280.50"), "k1", 5)
    assert (made["order_id"], made["amount"], made["currency"]) == (LAMP, "280.50", "CNY")
    assert site.shop.refund_by_key("k1") == made
    assert site.shop.refunds(order_id=LAMP) == [made]
    assert made in site.shop.refunds(customer_id="C-1001")
    order = site.shop.order(LAMP)
    assert (order["refunded"], order["refundable"]) == ("280.50", "999.50")


def test_the_same_key_and_body_refunds_once(site):
    first = site.shop.refund(body("100.00"), "k1", 5)
    assert site.shop.refund(body("100.00"), "k1", 5) == first
    assert len(site.shop.refunds(order_id=LAMP)) == 1


def test_the_same_key_with_another_body_is_refused(site):
    site.shop.refund(body("100.00"), "k1", 5)
    with pytest.raises(Refused, match="409"):
        site.shop.refund(body("200.00"), "k1", 5)
    assert len(site.shop.refunds(order_id=LAMP)) == 1


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (body("0"), "422"),
        (body("-5.00"), "422"),
        (body("1280.01"), "422"),
        (body("1.005"), "422"),
        (body("NaN"), "422"),
        (body("1e3x"), "422"),
        (body(currency="USD"), "422"),
        (body(order_id="A-0"), "404"),
    ],
)
def test_what_is_out_of_bounds_is_refused_and_changes_nothing(site, wrong, status):
    with pytest.raises(Refused, match=status):
        site.shop.refund(wrong, "k1", 5)
    assert site.shop.order(LAMP)["refunded"] == "0.00"
    assert site.shop.refund_by_key("k1") is None


def test_yen_have_no_decimals(site):
    with pytest.raises(Refused, match="JPY has 0 decimals"):
        site.shop.refund(body("10.50", site.yen, "JPY"), "k1", 5)
    assert site.shop.refund(body("10", site.yen, "JPY"), "k2", 5)["amount"] == "10"


def test_a_lost_answer_is_ambiguous_and_found_by_key(site):
    site.break_("lost")
    with pytest.raises(Ambiguous):
        site.shop.refund(body(), "k1", 5)
    site.heal()
    assert site.shop.refund_by_key("k1")["amount"] == "1280.00"


def test_a_shop_that_is_down_cannot_be_read(site):
    site.break_("down")
    with pytest.raises(Unavailable):
        site.shop.order(LAMP)
    with pytest.raises(ConnectionError):  # by this name retry rules know it
        site.shop.refund_by_key("k1")


def test_refunds_at_the_same_time_never_exceed_what_was_paid(site):
    ended = []

    def one(n: int) -> None:
        try:
            site.shop.refund(body("300.00"), f"k{n}", 10)
            ended.append("made")
        except Refused:
            ended.append("refused")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["made"] * 4 + ["refused"] * 8
    assert site.shop.order(LAMP)["refunded"] == "1200.00"


def test_one_key_at_the_same_time_refunds_once(site):
    ended = []

    def one() -> None:
        try:
            ended.append(site.shop.refund(body("300.00"), "same", 10)["refund_id"])
        except Ambiguous:  # the first is still in flight
            ended.append(None)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({refund_id for refund_id in ended if refund_id}) == 1
    assert site.shop.order(LAMP)["refunded"] == "300.00"

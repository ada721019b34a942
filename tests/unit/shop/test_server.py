"""The demo shop over HTTP: what it holds, and every way it can be told to misbehave."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from decimal import Decimal

import pytest

from examples.shop import data
from tests.shops import ShopProcess


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    shop = ShopProcess(tmp_path_factory.mktemp("shop"))
    yield shop
    assert shop.stop() == 0


@pytest.fixture
def shop(running):
    running.fault("none")
    yield running
    running.fault("none")


@pytest.fixture
def order(shop):
    """A fresh order with plenty to refund, in a currency with cents."""
    items = shop.call("GET", "/orders?limit=500")[1]["items"]
    return next(
        o
        for o in items
        if o["currency"] == "EUR" and Decimal(o["refundable"]) > 1500 and o["refunded"] == "0.00"
    )


def test_it_is_alive(shop):
    assert shop.call("GET", "/healthz") == (200, {"status": "ok"})


def test_there_are_enough_orders_and_the_named_ones_are_right(shop):
    first = shop.call("GET", "/orders?limit=200")[1]
    rest = shop.call("GET", f"/orders?limit=500&after={first['next']}")[1]
    orders = {order["id"]: order for order in first["items"] + rest["items"]}
    assert rest["next"] is None
    assert len(orders) == len(data.IDS) >= 300
    rich = [order for order in orders.values() if Decimal(order["refundable"]) >= 1200]
    assert len(rich) >= 150
    assert {order["status"] for order in rich} == {"delivered"}
    assert len({order["currency"] for order in orders.values()}) >= 5
    assert len([order for order in orders.values() if order["delivered_at"] is None]) >= 20
    assert Counter(order["refunded"] != "0.00" for order in rich)[True] >= 10
    named = {
        "A-20931": ("CNY", "1280.00", "delivered", "李伟"),
        "A-20455": ("CNY", "240.00", "shipped", "王芳"),
        "A-20877": ("CNY", "240.00", "delivered", "陈静"),
        "A-20925": ("CNY", "3460.00", "delivered", "赵敏"),
    }
    for order_id, expected in named.items():
        order = orders[order_id]
        assert (order["currency"], order["captured"], order["status"], order["customer"]["name"]) == expected
        assert Decimal(order["refunded"]) + Decimal(order["refundable"]) == Decimal(order["captured"])


def test_orders_are_the_same_on_every_machine():
    assert data.orders() == data.orders()


def test_effects_do_not_count_refunds_of_before(shop):
    assert shop.call("GET", "/refunds")[1]["items"]
    assert all(row["key"] for row in shop.call("GET", "/effects")[1]["items"])


def test_the_first_answer_is_201_and_the_repeat_200(shop, order):
    first = shop.refund(order["id"], "1.00", "EUR", "repeat")
    again = shop.refund(order["id"], "1.00", "EUR", "repeat")
    assert (first[0], again[0]) == (201, 200)
    assert first[1] == again[1]


@pytest.mark.parametrize(
    ("amount", "currency", "error", "field"),
    [
        ("0.00", "EUR", "not_positive", "amount"),
        ("99999999.00", "EUR", "too_much", "amount"),
        ("1.001", "EUR", "bad_amount", "amount"),
        ("１.00", "EUR", "bad_amount", "amount"),
        (12, "EUR", "bad_amount", "amount"),
        ("1_0", "EUR", "bad_amount", "amount"),
        ("1.00", "CNY", "wrong_currency", "currency"),
    ],
)
def test_refusals_name_the_field(shop, order, amount, currency, error, field):
    status, said = shop.refund(
        order["id"], amount, currency, f"bad-{error}-{amount!r}".encode("ascii", "replace").decode()
    )
    assert (status, said["error"], said["field"]) == (422, error, field)
    assert said["message"]


def test_bad_requests_are_400(shop):
    assert shop.call("POST", "/refunds", {"order_id": "A-20931"})[1]["error"] == "no_key"
    assert shop.call("POST", "/refunds", b"{", Idempotency_Key="k")[0] == 400
    assert shop.call("POST", "/refunds", b"[1]", Idempotency_Key="k")[0] == 400
    assert shop.call("POST", "/faults", {"mode": "mad"})[0] == 422
    assert shop.call("GET", "/nothing")[0] == 404


def test_a_key_in_flight_is_a_conflict(shop, order):
    shop.fault("slow", seconds=1.0, times=1)
    first = threading.Thread(target=shop.refund, args=(order["id"], "2.00", "EUR", "flight"))
    first.start()
    time.sleep(0.3)
    assert shop.refund(order["id"], "2.00", "EUR", "flight")[1]["error"] == "in_progress"
    first.join()
    assert shop.refund(order["id"], "2.00", "EUR", "flight")[0] == 200


@pytest.mark.parametrize(
    ("mode", "status", "acts"),
    [("error_before", 500, False), ("error_after", 500, True), ("conflict", 409, False), ("none", 201, True)],
)
def test_a_fault_acts_as_it_says(shop, order, mode, status, acts):
    before = shop.effects(order["id"])
    shop.fault(mode)
    assert shop.refund(order["id"], "1.00", "EUR", f"fault-{mode}")[0] == status
    assert shop.effects(order["id"]) - before == int(acts)


@pytest.mark.parametrize(("mode", "acts"), [("drop_after", True), ("down", False)])
def test_a_dropped_answer(shop, order, mode, acts):
    before = shop.effects(order["id"])
    shop.fault(mode, times=1)
    with pytest.raises((http.client.HTTPException, OSError)):
        shop.refund(order["id"], "1.00", "EUR", f"drop-{mode}")
    assert shop.effects(order["id"]) - before == int(acts)


def test_times_count_down_and_the_header_hits_one_request(shop, order):
    shop.fault("error_before", times=2)
    codes = [shop.refund(order["id"], "1.00", "EUR", f"times-{n}")[0] for n in range(3)]
    assert codes == [500, 500, 201]
    assert shop.refund(order["id"], "1.00", "EUR", "header", X_Fault="error_after")[0] == 500
    assert shop.refund(order["id"], "1.00", "EUR", "header")[0] == 200


def test_a_fault_can_be_for_reads(shop):
    shop.fault("error_before", path="/orders", times=1)
    assert shop.call("GET", "/orders/A-20931")[0] == 500
    assert shop.call("GET", "/orders/A-20931")[0] == 200


def test_the_page_shows_the_count_and_no_markup_of_strangers(shop, order):
    body = {
        "order_id": order["id"],
        "amount": "1.00",
        "currency": "EUR",
        "reason": "<script>alert(1)</script>",
    }
    assert shop.call("POST", "/refunds", body, Idempotency_Key="<b>k")[0] == 201
    page = shop.call("GET", "/")[1]
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert f"<b>{len(shop.call('GET', '/effects')[1]['items'])}</b>refunds made through its API" in page


def test_a_killed_shop_has_forgotten_nothing(tmp_path):
    shop = ShopProcess(tmp_path)
    made = shop.refund("A-20877", "240.00", "CNY", "before")[1]
    shop.kill9()
    shop.start().wait_ready()
    assert shop.refund("A-20877", "240.00", "CNY", "before") == (200, made)
    assert shop.effects("A-20877") == 1
    shop.stop()

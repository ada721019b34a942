"""The shop's stock of orders: deterministic, with dates as distances from today, so that a demo never grows old.

Every order with 1,200 or more left to refund was delivered within the last twelve days, so that "refund it in full, it
arrived broken" is a request the policy allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

SEED = 20931
IDS = (20455, *range(20581, 20941))


@dataclass(frozen=True)
class Customer:
    id: str
    name: str
    latin_name: str
    language: str
    tier: str
    since_days: int
    email: str = ""


@dataclass(frozen=True)
class Item:
    sku: str
    title: str
    title_zh: str
    qty: int
    price: int  # minor units


@dataclass(frozen=True)
class Seed:
    """One order as it is first stored. Days are counted back from today; None: has not happened."""

    id: str
    customer_id: str
    currency: str
    status: str
    items: tuple[Item, ...]
    placed_days: int
    delivered_days: int | None
    last4: str
    refunds: tuple[tuple[int, int, str], ...] = field(default=())  # (minor units, days ago, reason)

    @property
    def captured(self) -> int:
        return sum(item.qty * item.price for item in self.items)


_PEOPLE = (
    ("李伟", "Li Wei", "zh-CN"),
    ("陈静", "Chen Jing", "zh-CN"),
    ("赵敏", "Zhao Min", "zh-CN"),
    ("王芳", "Wang Fang", "zh-CN"),
    ("刘洋", "Liu Yang", "zh-CN"),
    ("孙悦", "Sun Yue", "zh-CN"),
    ("欧阳雪", "Ouyang Xue", "zh-CN"),
    ("佐藤 花子", "Satō Hanako", "ja"),
    ("田中 健", "Tanaka Ken", "ja"),
    ("山本 美咲", "Yamamoto Misaki", "ja"),
    ("Jürgen Groß", "Jürgen Groß", "de"),
    ("Anke Müller-Lüdenscheidt", "Anke Müller-Lüdenscheidt", "de"),
    ("Björn Weiß", "Björn Weiß", "de"),
    ("فاطمة الزهراء", "Fatima al-Zahra", "ar"),
    ("عمر حداد", "Omar Haddad", "ar"),
    ("João Conceição", "João Conceição", "pt-BR"),
    ("Inês Araújo", "Inês Araújo", "pt-BR"),
    ("Amelia Clarke", "Amelia Clarke", "en-GB"),
    ("Siobhán O’Neill", "Siobhán O’Neill", "en-GB"),
    ("Marcus Johnson", "Marcus Johnson", "en-US"),
    ("Zoë Fitzgerald", "Zoë Fitzgerald", "en-US"),
    ("Nguyễn Thị Hoa", "Nguyen Thi Hoa", "en-US"),
    ("Élodie Lefèvre", "Élodie Lefèvre", "fr"),
    ("Łukasz Żółć", "Lukasz Zolc", "pl"),
)
_CURRENCY = {
    "zh-CN": "CNY", "ja": "JPY", "de": "EUR", "fr": "EUR", "pl": "EUR",
    "ar": "AED", "pt-BR": "BRL", "en-GB": "GBP", "en-US": "USD",
}  # fmt: skip

_GOODS = (
    ("LMP-01", "Standing desk lamp", "站立式台灯"),
    ("CHR-14", "Ergonomic office chair", "人体工学办公椅"),
    ("DSK-22", "Height-adjustable desk", "升降桌"),
    ("MON-27", "27-inch monitor", "27 英寸显示器"),
    ("HDP-05", "Noise-cancelling headphones", "降噪耳机"),
    ("KBD-08", "Mechanical keyboard", "机械键盘"),
    ("CAM-11", "Mirrorless camera", "微单相机"),
    ("BAG-03", "Leather travel bag", "真皮旅行包"),
    ("COF-17", "Espresso machine", "意式咖啡机"),
    ("BKE-02", "Folding bicycle", "折叠自行车"),
    ("WAT-09", "Automatic watch", "机械手表"),
    ("TEA-31", "Porcelain tea set", "瓷器茶具"),
    ("RUG-06", "Hand-woven wool rug", "手工羊毛地毯"),
    ("VAC-12", "Robot vacuum cleaner", "扫地机器人"),
)
_SMALL = (
    ("MUG-01", "Stoneware mug", "陶瓷马克杯"),
    ("NTB-04", "Dotted notebook", "点阵笔记本"),
    ("CBL-02", "Braided charging cable", "编织充电线"),
    ("TOW-07", "Linen towel", "亚麻毛巾"),
    ("PEN-03", "Fountain pen", "钢笔"),
)


def _customers() -> tuple[Customer, ...]:
    tiers = ("standard", "standard", "silver", "gold")
    return tuple(
        Customer(
            f"C-{1001 + n}",
            name,
            latin,
            language,
            tiers[n % 4],
            40 + n * 57,
            f"customer{1001 + n}@example.com",
        )
        for n, (name, latin, language) in enumerate(_PEOPLE)
    )


CUSTOMERS = _customers()


def _fixed() -> dict[str, Seed]:
    """The orders that documentation and tests name."""
    lamp = Item("LMP-01", "Standing desk lamp", "站立式台灯", 1, 128_000)
    cups = Item("MUG-04", "Stoneware mug, set of four", "陶瓷马克杯四件套", 1, 24_000)
    bottle = Item("BTL-02", "Insulated bottle", "保温杯", 2, 12_000)
    chair = Item("CHR-14", "Ergonomic office chair", "人体工学办公椅", 1, 346_000)
    seeds = (
        Seed("A-20931", "C-1001", "CNY", "delivered", (lamp,), 8, 3, "4417"),
        Seed("A-20455", "C-1004", "CNY", "shipped", (cups,), 12, None, "0093"),
        Seed("A-20877", "C-1002", "CNY", "delivered", (bottle,), 9, 4, "7720"),
        Seed("A-20925", "C-1003", "CNY", "delivered", (chair,), 7, 2, "5168"),
    )
    return {seed.id: seed for seed in seeds}


def orders(more: int = 0) -> list[Seed]:
    """All orders by id, the same on every machine; `more`: as many again, from A-30000 on."""
    random, fixed = Random(SEED), _fixed()  # noqa: S311 - sample data, not a secret
    numbers = (*IDS, *range(30_000, 30_000 + more))
    return [fixed.get(f"A-{number}") or _order(random, n, f"A-{number}") for n, number in enumerate(numbers)]


def _order(random: Random, n: int, order_id: str) -> Seed:
    customer = CUSTOMERS[random.randrange(len(CUSTOMERS))]
    currency = _CURRENCY[customer.language]
    last4 = f"{random.randrange(10_000):04d}"
    kind = n % 10
    recent = random.randint(1, 12)
    if kind < 6:
        return _seed(order_id, customer, currency, _big(random, currency), recent, last4)
    if kind == 6:
        items = _big(random, currency)
        total = sum(item.qty * item.price for item in items)
        part = total // random.choice((4, 5, 10))
        earlier = ((part, max(recent - 1, 0), "partial refund, scratched"),)
        return _seed(order_id, customer, currency, items, recent, last4, refunds=earlier)
    items = _small(random, currency)
    if kind == 7:
        placed = random.randint(2, 21)
        status = "shipped" if placed > 3 else "placed"
        return Seed(order_id, customer.id, currency, status, items, placed, None, last4)
    if kind == 8:
        return _seed(order_id, customer, currency, items, random.randint(20, 80), last4)
    if random.random() < 0.3:
        return Seed(order_id, customer.id, currency, "cancelled", items, random.randint(1, 9), None, last4)
    total = sum(item.qty * item.price for item in items)
    returned = random.random() < 0.3
    refunds = ((total, recent, "returned unopened"),) if returned else ()
    return _seed(order_id, customer, currency, items, recent, last4, refunds=refunds)


def _seed(
    order_id: str,
    customer: Customer,
    currency: str,
    items: tuple[Item, ...],
    delivered_days: int,
    last4: str,
    *,
    refunds: tuple[tuple[int, int, str], ...] = (),
) -> Seed:
    placed = delivered_days + 2 + int(last4) % 6
    return Seed(order_id, customer.id, currency, "delivered", items, placed, delivered_days, last4, refunds)


def _big(random: Random, currency: str) -> tuple[Item, ...]:
    """Worth at least 1,700 in the currency, so that a quarter may be refunded and 1,200 are left."""
    sku, title, zh = random.choice(_GOODS)
    if currency == "JPY":
        return (Item(sku, title, zh, 1, random.randrange(12_000, 290_000, 100)),)
    price = random.randrange(1_700, 9_000, 10) * 100 + random.choice((0, 0, 50, 90, 99))
    return (Item(sku, title, zh, 1, price),)


def _small(random: Random, currency: str) -> tuple[Item, ...]:
    """Worth less than 1,200 in the currency, whatever the currency is."""
    kinds = random.sample(_SMALL, random.choice((1, 1, 2)))
    unit = 1 if currency == "JPY" else 100
    return tuple(
        Item(sku, title, zh, random.choice((1, 1, 2)), random.randrange(19, 280) * unit)
        for sku, title, zh in kinds
    )

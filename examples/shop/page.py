"""One HTML page for people: what the shop knows, and what was really refunded. No scripts."""

from __future__ import annotations

from html import escape
from typing import Any

type Row = dict[str, Any]

STYLE = """
:root{color-scheme:light dark;--bg:#faf9f7;--fg:#1d1b18;--dim:#6c675f;--line:#e4e0d9;--card:#fff;--mark:#0f6e56;--warn:#9a3412}
@media(prefers-color-scheme:dark){:root{--bg:#161513;--fg:#ece8e1;--dim:#a09a90;--line:#34312c;--card:#1e1c1a;--mark:#5fd0ad;--warn:#fdba74}}
body{font:15px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--fg);margin:0 auto;max-width:70rem;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2.25rem 0 .6rem}p{margin:.3rem 0;color:var(--dim)}
.tiles{display:flex;gap:.75rem;flex-wrap:wrap;margin-top:1.25rem}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.7rem 1rem;min-width:9rem}
.tile b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums}.tile.warn b{color:var(--warn)}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:.6rem}
table{border-collapse:collapse;width:100%;font-size:.875rem}th,td{text-align:start;padding:.4rem .75rem;white-space:nowrap}
th{color:var(--dim);font-weight:500}tr+tr td,tbody tr:first-child td{border-top:1px solid var(--line)}
.n{text-align:end;font-variant-numeric:tabular-nums}code{font-size:.85em}.ok{color:var(--mark)}
"""


def render(orders: list[Row], refunds: list[Row], effects: int, fault: Row) -> str:
    """The page. `orders` and `refunds` as the API gives them, newest first."""
    mode = fault["mode"]
    tile = "tile warn" if mode != "none" else "tile"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Demo shop</title><style>{STYLE}</style></head><body>
<h1>Demo shop</h1>
<p>The system of record that the refund agent talks to. This page only shows what it knows.</p>
<div class="tiles">
<div class="tile"><b>{effects}</b>refunds made through its API</div>
<div class="tile"><b>{len(orders)}</b>orders</div>
<div class="{tile}"><b>{escape(mode)}</b>fault switched on{escape(_fault_words(fault))}</div>
</div>
<h2>Refunds</h2>
{_table(("Refund", "Order", "Amount", "Reason", "When", "Idempotency key"), [_refund(row) for row in refunds])}
<h2>Orders</h2>
{_table(("Order", "Customer", "Bought", "Captured", "Refunded", "Status", "Delivered"), [_order(row) for row in orders])}
</body></html>
"""


def _fault_words(fault: Row) -> str:
    if fault["mode"] == "none":
        return ""
    times = f", {fault['times']} more times" if fault["times"] else ""
    return f": {fault['path']}{times}"


def _table(heads: tuple[str, ...], rows: list[str]) -> str:
    if not rows:
        return "<p>None yet.</p>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _refund(row: Row) -> str:
    cells = (
        f"<td><code>{escape(row['refund_id'])}</code></td><td>{escape(row['order_id'])}</td>"
        f'<td class="n ok">{escape(row["currency"])} {escape(row["amount"])}</td>'
        f'<td><span dir="auto">{escape(row["reason"][:80])}</span></td><td>{escape(row["created_at"][:16])}</td>'
        f"<td><code>{escape(row['key'] or '-')}</code></td>"
    )
    return f"<tr>{cells}</tr>"


def _order(row: Row) -> str:
    customer = row["customer"]
    name = f'<span lang="{escape(customer["language"])}" dir="auto">{escape(customer["name"])}</span>'
    bought = ", ".join(item["title"] for item in row["items"])
    return (
        f"<tr><td>{escape(row['id'])}</td><td>{name}</td><td>{escape(bought)}</td>"
        f'<td class="n">{escape(row["currency"])} {escape(row["captured"])}</td><td class="n">{escape(row["refunded"])}</td>'
        f"<td>{escape(row['status'])}</td><td>{escape((row['delivered_at'] or '')[:10])}</td></tr>"
    )

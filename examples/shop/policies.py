"""The shop's policies: clauses with numbers and versions."""

from __future__ import annotations

from typing import Any

POLICIES: tuple[dict[str, Any], ...] = (
    {
        "id": "RP-4",
        "title": "Refunds and returns",
        "version": "4.2",
        "effective": "2026-03-01",
        "clauses": [
            {
                "id": "§2.1",
                "title": "Upper limit",
                "text": "All refunds for an order together never exceed the amount captured. Every refund is paid in the "
                "order's currency to the payment method that was charged.",
            },
            {
                "id": "§2.3",
                "title": "Cancelled orders",
                "text": "A cancelled order is refunded in full, less what has been refunded already.",
            },
            {
                "id": "§3.1",
                "title": "Wrong item",
                "text": "A wrong item reported within 14 days of delivery gets a full refund. The return is at our cost.",
            },
            {
                "id": "§3.2",
                "title": "Damaged on arrival",
                "text": "Items damaged on arrival and reported within 14 days of delivery get a full refund. A photo is "
                "asked for above 500.",
            },
            {
                "id": "§3.3",
                "title": "Changed mind",
                "text": "Unopened goods returned within 30 days of delivery are refunded minus 10 % for restocking.",
            },
            {
                "id": "§4.1",
                "title": "Partial refunds and goodwill",
                "text": "A customer who keeps the goods may get a partial refund. Without a listed reason the amount is at "
                "the reviewer's judgement, up to the amount captured.",
            },
            {
                "id": "§4.2",
                "title": "Late delivery",
                "text": "Delivery more than 10 days after dispatch earns 15 % of the amount captured as a gesture.",
            },
            {
                "id": "§5.1",
                "title": "Not delivered",
                "text": "If an order has not arrived 10 days after dispatch, open a case with the carrier first. Refund in "
                "full if the carrier confirms the loss or has not answered after 5 more days.",
            },
            {
                "id": "§5.2",
                "title": "Delivered according to the carrier",
                "text": "If the customer says that nothing came but the carrier shows a delivery, ask for the proof of "
                "delivery before any refund.",
            },
        ],
    },
    {
        "id": "CP-2",
        "title": "What we tell customers",
        "version": "2.0",
        "effective": "2026-01-15",
        "clauses": [
            {
                "id": "§1.1",
                "title": "Language",
                "text": "Answer in the language of the customer's message.",
            },
            {
                "id": "§1.2",
                "title": "Timing",
                "text": "Card refunds reach the customer within 3 to 5 working days.",
            },
        ],
    },
)

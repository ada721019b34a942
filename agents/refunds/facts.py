"""The refund agent's tools as facts: light enough for the web process."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from agents.catalogue import ToolFacts
from agents.refunds import checks
from agents.refunds.policy import Reason, number
from agents.words import gettext_noop

# The model and the reviewer's form see a JSON number; text is refused, because pydantic would read "１５００" and
# "1_000" as amounts. `extra="forbid"` must stay away: LangChain validates the injected runtime with the arguments.
Amount = Annotated[
    Decimal,
    BeforeValidator(number),
    Field(gt=0, decimal_places=2, max_digits=15),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
Percent = Annotated[
    Decimal,
    BeforeValidator(number),
    Field(gt=0, le=100, decimal_places=4),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 100}),
]
OrderId = Annotated[str, Field(min_length=1, max_length=64, description="For example A-20931.")]


class LookupOrder(BaseModel):
    order_id: OrderId


class ReadPolicy(BaseModel):
    topic: str = Field(
        default="", max_length=200, description="Words to look for, for example: damaged on arrival."
    )
    policy_id: str = Field(default="", max_length=64, description="For example RP-4; empty: search by topic.")


class ComputeRefund(BaseModel):
    order_id: OrderId
    reason: Reason = Field(default="other", description="Why the customer wants money back.")
    percent: Percent | None = Field(default=None, description="Refund only this share of the amount paid.")
    amount: Amount | None = Field(
        default=None, description="Refund only this amount, in the order's currency."
    )


class IssueRefund(BaseModel):
    order_id: OrderId
    amount: Amount = Field(description="In the order's currency, at most what is left to refund.")
    currency: str = Field(pattern=r"^[A-Z]{3}$", description="The order's currency, ISO 4217.")
    reason: str = Field(default="", max_length=2000)
    customer_note: str = Field(default="", max_length=2000, description="What the customer will be told.")


class AskStaff(BaseModel):
    question: str = Field(min_length=1, max_length=4000)


TOOLS: tuple[ToolFacts, ...] = (
    ToolFacts(
        name="lookup_order",
        title=gettext_noop("Look up order {order_id}"),
        description="Look an order up: what was bought, paid, refunded and delivered, and by whom.",
        effect="read",
        args=LookupOrder,
        timeout=5.0,
        icon="package-search",
        evidence="order",
    ),
    ToolFacts(
        name="read_policy",
        title=gettext_noop("Read the refund policy"),
        description="Read the refund policy: its clauses with their numbers and version, by topic or by policy id.",
        effect="read",
        args=ReadPolicy,
        timeout=5.0,
        icon="book-open",
        evidence="policy",
    ),
    ToolFacts(
        name="compute_refund",
        title=gettext_noop("Compute the refund for order {order_id}"),
        description="Compute what the policy allows for an order and a reason, to the cent. Call it before any refund.",
        effect="read",
        args=ComputeRefund,
        timeout=5.0,
        icon="calculator",
        evidence="computation",
    ),
    ToolFacts(
        name="issue_refund",
        title=gettext_noop("Refund {currency} {amount}"),
        description=(
            "Pay money back to the customer. A person may have to approve it, may change the amount, and may say no. "
            "Never call it twice for the same reason; if its outcome is unknown, look the order up."
        ),
        effect="write",
        args=IssueRefund,
        consequence=gettext_noop(
            "The money goes back to the customer's card. It cannot be taken back afterwards."
        ),
        idempotent=True,
        lookup=checks.refund_by_key,
        timeout=8.0,
        margin=4.0,
        locked=("/order_id", "/currency"),
        check=checks.issue_refund,
        icon="banknote",
        evidence="refund",
    ),
    ToolFacts(
        name="ask_staff",
        title=gettext_noop("Question for the support team"),
        description="Ask a colleague when something is missing or unclear. Their answer is the result.",
        effect="ask",
        args=AskStaff,
        consequence=gettext_noop("The answer goes to the agent as it is written."),
        icon="message-circle-question",
    ),
)

"""What callers send. Unknown fields are refused: a misspelt `args` must not become an approval without them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from approvals.enums import DecisionType


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("Remove the NUL character")
    return text


type Text = Annotated[str, AfterValidator(_storable)]
type Message = Annotated[str, Field(max_length=20_000), AfterValidator(_storable)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Customer(Body):
    name: Text = ""
    id: Text = ""


class CaseBody(Body):
    agent: Text = Field(description="Slug of an agent: see GET /agents.")
    message: Message = Field(description="What the agent should do.")
    customer: Customer = Customer()
    order_id: Text = ""
    language: Text = Field("", description="The customer's language, for example zh-CN.")
    title: Text = ""


class MessageBody(Body):
    message: Message
    while_pending: Literal["queue", "withdraw"] | None = Field(
        None, description="What happens to requests that wait for a decision; without it that is a 409."
    )


class DecisionBody(Body):
    type: Literal[tuple(DecisionType.values)] = Field(  # type: ignore[valid-type]
        description="One of the request's allowed_decisions."
    )
    rev: int = Field(description="`rev` of the request as it was read.")
    digest: str = Field(description="`digest` of the request as it was read.", max_length=64)
    args: Any = Field(None, description="With edit: all arguments, as they shall run.")
    message: Message = Field("", description="With reject: the reason; with respond: the answer.")
    grant: int | None = Field(None, description="With grant: how many more.")
    reference: Annotated[str, Field(max_length=200), AfterValidator(_storable)] = Field(
        "", description="With happened: the provider's reference."
    )


class ReasonBody(Body):
    reason: Annotated[str, Field(max_length=2_000), AfterValidator(_storable)] = ""

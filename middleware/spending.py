"""A limit of tokens or money that asks a person for more instead of ending the run."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from middleware.limits import GrantAnswer, place
from middleware.options.people import SpendLimitOptions

MILLION = 1_000_000


class SpendState(AgentState[Any]):
    spend_used: NotRequired[Annotated[float, PrivateStateAttr]]
    spend_granted: NotRequired[Annotated[float, PrivateStateAttr]]
    spend_seen: NotRequired[Annotated[str, PrivateStateAttr]]  # id of the last message that was counted


class SpendLimit(AgentMiddleware[SpendState, Any, Any]):
    """Counts what the model reports, and asks before the next call once the limit is reached.

    A grant is a whole number: of tokens, or of hundredths of the currency.
    """

    state_schema = SpendState

    def __init__(self, options: SpendLimitOptions, path: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.options, self.path = options, path
        self.resource = "tokens" if options.tokens is not None else f"{options.currency.lower()}_cents"
        self.unit = 1.0 if options.tokens is not None else 0.01
        self.hard_cap = options.hard_cap or options.limit

    def before_agent(self, state: SpendState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return {"spend_used": 0.0, "spend_granted": 0.0} if self.options.scope == "run" else None

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: SpendState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        used, granted = state.get("spend_used", 0.0), state.get("spend_granted", 0.0)
        if used < min(self.options.limit + granted, self.hard_cap):
            return None
        note = f"the hard limit is {self._said(self.hard_cap)}"
        most = int((self.hard_cap - used) / self.unit)
        if most > 0:
            answer: GrantAnswer = interrupt(
                {
                    "type": "limit_grant",
                    "resource": self.resource,
                    "used": int(used / self.unit),
                    "limit": int(self.options.limit / self.unit),
                    "granted": int(granted / self.unit),
                    "max_extra": most,
                    **place(self.path, state["messages"]),
                },
                response_schema=GrantAnswer,
            )
            if answer["type"] == "grant":
                extra = min(answer.get("extra", most), most) * self.unit
                return {"spend_granted": used - self.options.limit + extra}
            note = answer.get("note") or "no more was granted"
        return {"messages": [AIMessage(f"Stopped after {self._said(used)}: {note}.")], "jump_to": "end"}

    def after_model(self, state: SpendState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        last = next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None)
        if last is None or last.id == state.get("spend_seen"):
            return None  # a summary may have stood in for the call
        return {"spend_used": state.get("spend_used", 0.0) + self._price(last), "spend_seen": last.id}

    def _price(self, message: AIMessage) -> float:
        usage = message.usage_metadata
        if usage is None:
            return 0.0
        if self.options.tokens is not None:
            return float(usage["total_tokens"])
        paid = usage["input_tokens"] * self.options.input_price
        return (paid + usage["output_tokens"] * self.options.output_price) / MILLION

    def _said(self, amount: float) -> str:
        if self.options.tokens is not None:
            return f"{int(amount):,} tokens"
        return f"{self.options.currency} {amount:,.2f}"

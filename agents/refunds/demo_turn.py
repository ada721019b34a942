"""What the demo model has in front of it: the newest message and everything that has happened since. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from agents.refunds import demo_reading as reading
from agents.refunds import policy
from agents.refunds.demo_reading import Language, Outcome, Request, Wanted
from agents.words import CASE

MAX_ORDERS = 20

type Record = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One tool call of the conversation with its result; None: there is none yet."""

    name: str
    args: Record
    result: str | None
    is_error: bool

    @property
    def data(self) -> Record | None:
        return None if self.is_error else reading.read_json(self.result)

    @property
    def order_id(self) -> str:
        return str(self.args.get("order_id", "")).upper()

    @property
    def outcome(self) -> Outcome:
        try:
            proposed = policy.number(self.args.get("amount"))
        except policy.BadAmount:
            proposed = None
        return reading.read_outcome(self.result, is_error=self.is_error, proposed=proposed)


@dataclass(frozen=True)
class Turn:
    """The newest message with everything that happened since, and the refunds of the turns before."""

    text: str
    request: Request
    calls: tuple[Call, ...]
    earlier: tuple[Call, ...]
    tools: frozenset[str] | None  # bound to the model; None: not said

    @property
    def language(self) -> Language:
        return self.request.language

    def has(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def of(self, tool: str, order_id: str | None = None) -> list[Call]:
        return [call for call in self.calls if call.name == tool and order_id in (None, call.order_id)]

    def data(self, tool: str, order_id: str) -> Record | None:
        return next((call.data for call in reversed(self.of(tool, order_id)) if call.data), None)

    @cached_property
    def answer(self) -> str | None:
        """What the newest question was answered with; None if nobody answered."""
        asked = self.of("ask_staff")
        return asked[-1].result if asked and not asked[-1].is_error else None

    @property
    def asked_about_doubts(self) -> bool:
        """A question counts once the computations are known: an earlier one was about something else."""
        names = [call.name for call in self.calls]
        return "compute_refund" in names and "ask_staff" in names[names.index("compute_refund") :]

    @cached_property
    def reason(self) -> policy.Reason:
        """The customer's, else the one that a colleague gave."""
        given = self.request.reason
        return policy.classify(self.answer or "") if given == "other" else given

    @cached_property
    def orders(self) -> tuple[Wanted, ...]:
        """Those of the message, else those that a colleague named."""
        if self.request.orders or not self.answer:
            return self.request.orders[:MAX_ORDERS]
        found = reading.read_request(self.answer).orders
        amount = reading.amount_in(self.text)
        return tuple(Wanted(w.order_id, w.amount or amount, w.percent) for w in found)[:MAX_ORDERS]


def read_turn(messages: Sequence[BaseMessage], tools: frozenset[str] | None = None) -> Turn:
    """The conversation as the model sees it. `tools`: names of the tools it may call."""
    last = max((n for n, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    before, after = messages[: max(last, 0)], messages[last + 1 :]
    text = str(messages[last].text) if last >= 0 else ""
    spoken = "\n".join(str(message.text) for message in before if isinstance(message, HumanMessage))
    known = reading.order_ids(spoken) or reading.order_ids(_case(before))
    request = reading.read_request(text, known)
    return Turn(text, request, _calls(after), _calls(before), tools)


def _case(messages: Sequence[BaseMessage]) -> str:
    """The facts of the case that stand at the end of the instructions."""
    instructions = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
    return instructions[-1].rpartition(CASE)[2] if instructions and CASE in instructions[-1] else ""


def _calls(messages: Sequence[BaseMessage]) -> tuple[Call, ...]:
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    found = []
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            result = results.get(str(call["id"]))
            text = str(result.text) if result else None
            found.append(
                Call(call["name"], call["args"], text, result is not None and result.status == "error")
            )
    return tuple(found)

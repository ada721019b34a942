"""`demo:refunds`: a chat model of the normal LangChain kind that needs no provider.

It is deterministic but for its random call ids: it reads the whole conversation every time and says or proposes what
comes next, as a careful model would. Everything it claims about a refund comes from a tool's result.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
    UsageMetadata,
)
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from agents.refunds import demo_reading as reading
from agents.refunds import policy
from agents.refunds.demo_reading import Language, Outcome, Request, Wanted
from agents.refunds.demo_words import joined, reason_words, say

MAX_ORDERS = 20
MAX_READS = 2  # a read that failed is tried once more
QUOTED = 300  # characters of a message that are repeated in a question

type Record = dict[str, Any]
type Proposal = tuple[str, Record]
"""(tool, arguments)"""


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


@dataclass
class Reply:
    """What the model says and proposes next."""

    text: str
    calls: list[Proposal] = field(default_factory=list)


def read_turn(messages: Sequence[BaseMessage], tools: frozenset[str] | None = None) -> Turn:
    """The conversation as the model sees it. `tools`: names of the tools it may call."""
    last = max((n for n, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    before, after = messages[: max(last, 0)], messages[last + 1 :]
    text = str(messages[last].text) if last >= 0 else ""
    spoken = "\n".join(str(message.text) for message in before if isinstance(message, HumanMessage))
    request = reading.read_request(text, reading.order_ids(spoken))
    return Turn(text, request, _calls(after), _calls(before), tools)


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


def reply_to(turn: Turn) -> Reply:
    """The next step of the turn."""
    match turn.request.intent:
        case "thanks":
            return Reply(say(turn.language, "thanks"))
        case "status":
            return _tell_status(turn)
        case "unclear" if not turn.orders:
            return _ask_meaning(turn)
        case _ if not turn.orders:
            return _ask_order(turn)
    for step in (_look_up, _read_policy, _compute, _ask_about_doubts, _issue):
        if reply := step(turn):
            return reply
    return Reply("\n".join(_conclusion(turn, wanted) for wanted in turn.orders))


def _ask_meaning(turn: Turn) -> Reply:
    if not turn.of("ask_staff") and turn.has("ask_staff"):
        return _question(turn, "unclear", say(turn.language, "unclear_question", text=turn.text[:QUOTED]))
    if turn.answer is None:
        return Reply(say(turn.language, "no_answer"))
    return Reply(say(turn.language, "no_meaning", answer=turn.answer))


def _ask_order(turn: Turn) -> Reply:
    if not turn.of("ask_staff") and turn.has("ask_staff"):
        return _question(turn, "which", say(turn.language, "which_question", text=turn.text[:QUOTED]))
    return Reply(say(turn.language, "no_order"))


def _question(turn: Turn, why: str, question: str) -> Reply:
    return Reply(say(turn.language, why), [("ask_staff", {"question": question})])


def _look_up(turn: Turn) -> Reply | None:
    missing = [
        wanted.order_id
        for wanted in turn.orders
        if turn.data("lookup_order", wanted.order_id) is None
        and len(turn.of("lookup_order", wanted.order_id)) < MAX_READS
    ]
    if not missing or not turn.has("lookup_order"):
        return None
    text = say(turn.language, "look", orders=joined(turn.language, missing))
    return Reply(text, [("lookup_order", {"order_id": order_id}) for order_id in missing])


def _open(turn: Turn) -> list[tuple[Wanted, Record]]:
    """Orders that a refund is wanted for, that exist, and that have something left to refund."""
    if turn.request.intent == "info":
        return []
    found = [(wanted, turn.data("lookup_order", wanted.order_id)) for wanted in turn.orders]
    return [
        (wanted, order)
        for wanted, order in found
        if order and "error" not in order and Decimal(str(order.get("refundable", "0"))) > 0
    ]


def _read_policy(turn: Turn) -> Reply | None:
    if not _open(turn) or turn.of("read_policy") or not turn.has("read_policy"):
        return None
    topic = reason_words("en", turn.reason)
    return Reply(say(turn.language, "policy"), [("read_policy", {"topic": topic})])


def _compute(turn: Turn) -> Reply | None:
    missing = [
        wanted
        for wanted, _ in _open(turn)
        if turn.data("compute_refund", wanted.order_id) is None
        and len(turn.of("compute_refund", wanted.order_id)) < MAX_READS
    ]
    if not missing or not turn.has("compute_refund"):
        return None
    text = say(
        turn.language, "compute", orders=joined(turn.language, [wanted.order_id for wanted in missing])
    )
    return Reply(text, [("compute_refund", _wish(wanted, turn.reason)) for wanted in missing])


def _wish(wanted: Wanted, reason: policy.Reason) -> Record:
    args: Record = {"order_id": wanted.order_id, "reason": reason}
    if wanted.amount is not None:
        args["amount"] = _number(wanted.amount)
    elif wanted.percent is not None:
        args["percent"] = _number(wanted.percent)
    return args


def _doubtful(turn: Turn) -> list[tuple[Wanted, Record, Record]]:
    """Orders that the policy does not simply let through, with the computation that says why."""
    found = [(wanted, order, turn.data("compute_refund", wanted.order_id)) for wanted, order in _open(turn)]
    return [(w, o, computed) for w, o, computed in found if computed and computed.get("eligible") is False]


def _asked_about_doubts(turn: Turn) -> bool:
    """A question counts once the computations are known: an earlier one was about something else."""
    names = [call.name for call in turn.calls]
    return "compute_refund" in names and "ask_staff" in names[names.index("compute_refund") :]


def _ask_about_doubts(turn: Turn) -> Reply | None:
    doubtful = _doubtful(turn)
    if not doubtful or _asked_about_doubts(turn) or not turn.has("ask_staff"):
        return None
    doubts = " ".join(_doubt(turn.language, order, computed) for _, order, computed in doubtful)
    return _question(turn, "doubt", say(turn.language, "doubt_question", doubts=doubts))


def _doubt(language: Language, order: Record, computed: Record) -> str:
    if not order.get("delivered_at"):
        paid = _money(order["captured"], order["currency"])
        return say(
            language, "doubt_undelivered", order=str(order["id"]), paid=paid, status=str(order["status"])
        )
    return say(language, "doubt_other", order=str(order["id"]), why=str(computed.get("explanation", "")))


def _issue(turn: Turn) -> Reply | None:
    """All refunds of the turn at once, and only once: whatever came of a call, it is not made again unasked."""
    if turn.of("issue_refund") or not turn.has("issue_refund"):
        return None
    agreed = _agreed(turn)
    ready = [(wanted, order, _amount_for(turn, wanted, order)) for wanted, order in _open(turn)]
    calls, said = [], []
    for _, order, amount in ready:
        if amount is not None and amount > 0:
            calls.append(("issue_refund", _refund_args(turn, order, amount)))
            said.append(f"{_money(amount, order['currency'])} ({order['id']})")
    if not calls:
        return None
    key = "issue_anyway" if agreed and _doubtful(turn) else "issue"
    return Reply(say(turn.language, key, refunds=joined(turn.language, said)), calls)


def _agreed(turn: Turn) -> bool:
    """Whether a colleague answered the doubts, and not with a no."""
    return _asked_about_doubts(turn) and turn.answer is not None and not reading.is_no(turn.answer)


def _amount_for(turn: Turn, wanted: Wanted, order: Record) -> Decimal | None:
    """What to propose for an order; None: nothing."""
    refundable = Decimal(str(order["refundable"]))
    computed = turn.data("compute_refund", wanted.order_id)
    if computed is None:
        if turn.has("compute_refund"):
            return None  # it could not be computed: say so rather than guess
        return min(wanted.amount or refundable, refundable)
    if "error" in computed:
        return None
    if computed.get("eligible") is False:
        asked = (reading.amount_in(turn.answer or "") or wanted.amount) if _agreed(turn) else Decimal(0)
        return min(asked or refundable, refundable) if _agreed(turn) else None
    return Decimal(str(computed["amount"]))


def _refund_args(turn: Turn, order: Record, amount: Decimal) -> Record:
    currency, order_id = str(order["currency"]), str(order["id"])
    computed = turn.data("compute_refund", order_id.upper()) or {}
    reason = reason_words(turn.language, turn.reason)
    clause = f" ({computed['clause']})" if computed.get("clause") else ""
    last4 = str((order.get("payment") or {}).get("last4", ""))
    return {
        "order_id": order_id,
        "amount": _number(amount),
        "currency": currency,
        "reason": f"{reason}{clause}",
        # Without the amount: a reviewer may change it
        "customer_note": say(
            turn.language, "note", amount=_money(amount, currency), order=order_id, last4=last4
        ),
    }


def _conclusion(turn: Turn, wanted: Wanted) -> str:
    """One sentence about one order: what really happened."""
    language, order_id = turn.language, wanted.order_id
    order = turn.data("lookup_order", order_id)
    if order is None:
        return say(language, "unreadable", order=order_id)
    if "error" in order:
        return say(language, "unknown_order", order=order_id)
    if calls := turn.of("issue_refund", order_id):
        return _tell(language, calls[-1], order)
    if turn.request.intent == "info":
        return _describe(language, order)
    return _why_not(turn, wanted, order)


def _why_not(turn: Turn, wanted: Wanted, order: Record) -> str:
    language, order_id = turn.language, wanted.order_id
    if Decimal(str(order.get("refundable", "0"))) <= 0:
        return say(language, "nothing_left", order=order_id)
    computed = turn.data("compute_refund", order_id)
    if computed is None:
        return say(language, "unreadable", order=order_id)
    if "error" in computed:
        return say(language, "bad_amount", order=order_id, why=str(computed.get("message", "")))
    if computed.get("eligible") is False:
        if not _asked_about_doubts(turn):
            return say(language, "not_allowed", order=order_id, why=str(computed.get("explanation", "")))
        if turn.answer is None:
            return say(language, "staff_silent", order=order_id)
        return say(language, "staff_no", order=order_id, answer=turn.answer)
    return say(language, "no_tool", order=order_id)


def _tell(language: Language, call: Call, order: Record | None) -> str:
    """How one refund call ended, in the words of the situation."""
    outcome, order_id = call.outcome, str(call.args.get("order_id", ""))
    if outcome.kind == "paid":
        return _tell_paid(language, call, outcome, order)
    if outcome.kind == "rejected" and outcome.text:
        return say(language, "rejected_why", order=order_id, why=outcome.text)
    return say(language, outcome.kind, order=order_id, why=outcome.text)


def _tell_paid(language: Language, call: Call, outcome: Outcome, order: Record | None) -> str:
    currency, order_id = str(call.args.get("currency", "")), str(call.args.get("order_id", ""))
    last4 = str(((order or {}).get("payment") or {}).get("last4", ""))
    amount = _money(outcome.amount, currency) if outcome.amount is not None else currency
    if not last4 or not outcome.reference:
        return say(language, "paid_plain", order=order_id, amount=amount)
    return say(
        language,
        "paid_edited" if outcome.edited else "paid",
        order=order_id,
        amount=amount,
        last4=last4,
        reference=outcome.reference,
        proposed=_money(call.args.get("amount", 0), currency),
    )


def _describe(language: Language, order: Record) -> str:
    customer = order.get("customer") or {}
    title = "title_zh" if language == "zh" else "title"
    return say(
        language,
        "info",
        order=str(order["id"]),
        items=", ".join(str(item.get(title) or item.get("title")) for item in order.get("items", [])),
        customer=str(customer.get("name", "")),
        paid=_money(order["captured"], order["currency"]),
        refunded=_money(order["refunded"], order["currency"]),
        status=str(order["status"]),
    )


def _tell_status(turn: Turn) -> Reply:
    """ "Did you refund it?": from the record of this conversation, else from the order itself."""
    asked = {wanted.order_id for wanted in turn.orders}
    orders = {
        call.order_id: call.data for call in (*turn.earlier, *turn.calls) if call.name == "lookup_order"
    }
    refunds = {call.order_id: call for call in turn.earlier if call.name == "issue_refund"}
    told = [
        _tell(turn.language, call, orders.get(order_id))
        for order_id, call in refunds.items()
        if not asked or order_id in asked
    ]
    if told:
        return Reply("\n".join(told))
    if turn.orders:
        return _look_up(turn) or Reply("\n".join(_found(turn, wanted) for wanted in turn.orders))
    return Reply(say(turn.language, "status_none"))


def _found(turn: Turn, wanted: Wanted) -> str:
    order = turn.data("lookup_order", wanted.order_id)
    if order and "error" not in order:
        return _describe(turn.language, order)
    return say(turn.language, "unknown_order" if order else "unreadable", order=wanted.order_id)


def _money(amount: object, currency: object) -> str:
    return policy.money(Decimal(str(amount)), str(currency))


def _number(amount: Decimal) -> int | float:
    """A JSON number, as a provider would send it."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)


class RefundsDemo(BaseChatModel):
    """The model. `word_delay`: seconds between streamed words, so that a demo can be watched."""

    word_delay: float = Field(
        default_factory=lambda: float(os.environ.get("COUNTERSEAL_DEMO_WORD_DELAY") or 0), ge=0, le=5
    )

    @property
    def _llm_type(self) -> str:
        return "counterseal-demo-refunds"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        known = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=known, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs.get("tools")))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._next(messages, kwargs.get("tools"))
        for words in _pieces(str(message.text)):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=words))
            if run_manager:
                run_manager.on_llm_new_token(words, chunk=chunk)
            yield chunk
            if self.word_delay:
                time.sleep(self.word_delay)
        parts = [
            tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index)
            for index, call in enumerate(message.tool_calls)
        ]
        last = AIMessageChunk(
            content="", tool_call_chunks=parts, usage_metadata=message.usage_metadata, chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)

    def _next(self, messages: list[BaseMessage], tools: Sequence[Record] | None) -> AIMessage:
        names = frozenset(tool["function"]["name"] for tool in tools) if tools is not None else None
        reply = reply_to(read_turn(messages, names))
        calls: list[ToolCall] = [
            tool_call(name=name, args=args, id=f"call_{uuid.uuid4().hex[:20]}") for name, args in reply.calls
        ]
        return AIMessage(reply.text, tool_calls=calls, usage_metadata=_usage(messages, reply))


def _pieces(text: str) -> list[str]:
    """Words with the blanks before them; Chinese in short groups."""
    return re.findall(r"\s*[\u2e80-\u9fff\uff00-\uffef]{1,3}|\s*[^\s\u2e80-\u9fff\uff00-\uffef]+|\s+$", text)


def _usage(messages: Sequence[BaseMessage], reply: Reply) -> UsageMetadata:
    """Counted by length: four characters to a token."""
    given = sum(len(str(message.text)) for message in messages) // 4 + 1
    made = (len(reply.text) + len(json.dumps(reply.calls))) // 4 + 1
    return UsageMetadata(input_tokens=given, output_tokens=made, total_tokens=given + made)

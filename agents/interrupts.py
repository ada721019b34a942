"""Pure translation between LangGraph's state and our contracts: interrupts, messages, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.types import Interrupt

from agents.catalogue import ToolFacts
from agents.contracts import Message, Parked, Question, ToolCall
from middleware.calls import owner_of
from middleware.notes import notes_of


def question_of(item: Interrupt, messages: list[AnyMessage], facts: Mapping[str, ToolFacts]) -> Question:
    """Raises `Parked` for an interrupt that no page can show."""
    value: dict[str, Any] = item.value if isinstance(item.value, dict) else {"type": repr(item.value)}
    match value.get("type"):
        case "tool_approval" | "unknown_outcome" as kind:
            return _about_a_call(item, value, kind, messages, facts)
        case "limit_grant":
            return _about_a_limit(item, value, messages)
        case other:
            raise Parked(f"No page can show an interrupt of type {other!r}.")


def _about_a_call(
    item: Interrupt,
    value: Mapping[str, Any],
    kind: str,
    messages: list[AnyMessage],
    facts: Mapping[str, ToolFacts],
) -> Question:
    message_id, name, args = _call_of(value, messages)
    known = facts.get(name)
    unknown_outcome = kind == "unknown_outcome"
    is_question = known is not None and known.effect == "ask"
    return Question(
        interrupt_id=item.id,
        kind="unknown_outcome" if unknown_outcome else "question" if is_question else "tool_call",
        ai_message_id=message_id,
        tool_call_id=value["tool_call_id"],
        attempt=value["attempt"] if unknown_outcome else 0,
        tool=name,
        args=args,
        args_schema=known.schema() if known else {},
        allowed_decisions=_allowed(item, unknown_outcome),
        value=value,
        path=tuple(value.get("path", ())),
    )


def _call_of(value: Mapping[str, Any], messages: list[AnyMessage]) -> tuple[str, str, Mapping[str, Any]]:
    """(id of the AI message, tool, arguments). A sub-agent's messages are not among the agent's: then the interrupt,
    which our own middleware or gate has raised, says it."""
    try:
        message, call = owner_of(messages, value["tool_call_id"])
    except LookupError as error:
        if value.get("ai_message_id"):
            return str(value["ai_message_id"]), str(value["name"]), value["args"]
        raise Parked(f"The call cannot be shown: {error}.") from error
    if value.get("ai_message_id") not in (None, message.id):
        return (
            str(value["ai_message_id"]),
            str(value["name"]),
            value["args"],
        )  # the sub-agent's id is like one of ours
    return message.id or "", call["name"], call["args"]


def _allowed(item: Interrupt, unknown_outcome: bool) -> tuple[str, ...]:
    """What a person may answer: the branches of the interrupt's own schema."""
    if unknown_outcome:
        return ("happened", "did_not_happen", "still_unknown")
    schema: Any = getattr(item, "response_schema", None) or {}
    mapping = schema.get("discriminator", {}).get("mapping")
    if mapping:
        return tuple(mapping)
    const = schema.get("properties", {}).get("type", {}).get("const")
    return (const,) if const else ()


def _about_a_limit(item: Interrupt, value: Mapping[str, Any], messages: list[AnyMessage]) -> Question:
    newest = next((m.id or "" for m in reversed(messages) if isinstance(m, AIMessage)), "")
    newest = str(value.get("ai_message_id") or newest)
    resource = value.get("tool") or value["resource"]
    return Question(
        interrupt_id=item.id,
        kind="limit",
        ai_message_id=newest,
        tool_call_id=f"limit:{resource}",
        attempt=int(value["used"]) + 1,
        tool=str(value["resource"]),
        args=value,
        args_schema={},
        allowed_decisions=("grant", "stop"),
        value=value,
        path=tuple(value.get("path", ())),
    )


def message_of(message: AnyMessage) -> Message | None:
    """None for messages that are no part of a timeline."""
    usage = getattr(message, "usage_metadata", None) or {}
    counted = {name: int(usage.get(name, 0)) for name in ("input_tokens", "output_tokens")} if usage else {}
    match message:
        case HumanMessage():
            return Message(id=message.id or "", role="human", text=message.text)
        case AIMessage():
            calls = tuple(
                ToolCall(call["id"] or "", call["name"], call["args"]) for call in message.tool_calls
            )
            return Message(
                id=message.id or "",
                role="ai",
                text=message.text,
                tool_calls=calls,
                usage=counted,
                notes=notes_of(message),
            )
        case ToolMessage():
            return Message(
                id=message.id or f"tool-{message.tool_call_id}",
                role="tool",
                text=message.text,
                tool_call_id=message.tool_call_id,
                tool=message.name or "",
                is_error=message.status == "error",
                notes=notes_of(message),
            )
    return None


def messages_of(messages: Sequence[AnyMessage]) -> tuple[Message, ...]:
    return tuple(found for message in messages if (found := message_of(message)) is not None)


def resume_value(
    *, status: str, kind: str, tool: str, final: Any, message: str, grant: int | None
) -> dict[str, Any]:
    """What the engine is told. A call that did not run is a `reject` with our own whole sentence."""
    if kind == "unknown_outcome":
        return {
            "type": "see the ledger"
        }  # the row is the truth; a resume value would be replayed after a crash
    if kind == "limit":
        return {"type": "grant", "extra": grant} if grant else {"type": "stop", "note": message}
    match status:
        case "approved":
            return {"type": "approve"}
        case "edited":
            return {"type": "edit", "edited_action": {"name": tool, "args": final}}
        case "responded":
            return {"type": "respond", "message": message}
    return {"type": "reject", "message": message}

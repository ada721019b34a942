"""Limits that ask a person for more instead of ending the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import Field
from typing_extensions import TypedDict

Scope = Literal["run", "thread"]


class GrantAnswer(TypedDict):
    """The answer to a `limit_grant` question. `extra`: how many more calls; at most `max_extra` of the question."""

    type: Literal["grant", "stop"]
    extra: NotRequired[Annotated[int, Field(ge=1)]]
    note: NotRequired[str]


def place(path: Sequence[str], messages: Sequence[Any]) -> dict[str, Any]:
    """Where a question comes from, if that is a sub-agent: the same limit may be reached in several at once."""
    if not path:
        return {}
    return {"path": list(path), "ai_message_id": str(messages[-1].id if messages else "")}


class ModelLimitState(AgentState[Any]):
    mcl_used: NotRequired[Annotated[int, PrivateStateAttr]]
    mcl_granted: NotRequired[Annotated[int, PrivateStateAttr]]


class HumanGrantModelLimit(AgentMiddleware[ModelLimitState, Any, Any]):
    """At `limit` model calls asks a person for more; never goes over `hard_cap`.

    Args:
        limit: Calls that need no question.
        hard_cap: Calls that nobody can exceed.
        scope: "run" counts from the newest message on, through all pauses; "thread" since the thread began.
        path: The sub-agents that lie above.
    """

    state_schema = ModelLimitState

    def __init__(
        self, *, limit: int, hard_cap: int, scope: Scope = "run", path: tuple[str, ...] = ()
    ) -> None:
        super().__init__()
        self.limit, self.hard_cap, self.scope, self.path = limit, max(limit, hard_cap), scope, path

    def before_agent(self, state: ModelLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        # Runs once per message and never at a resume, so a pause does not give the calls back.
        return {"mcl_used": 0, "mcl_granted": 0} if self.scope == "run" else None

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: ModelLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        used, granted = state.get("mcl_used", 0), state.get("mcl_granted", 0)
        if used < min(self.limit + granted, self.hard_cap):
            return None
        note = f"the hard limit is {self.hard_cap}"
        if used < self.hard_cap:
            answer: GrantAnswer = interrupt(
                {
                    "type": "limit_grant",
                    "resource": "model_calls",
                    "used": used,
                    "limit": self.limit,
                    "granted": granted,
                    "max_extra": self.hard_cap - used,
                    **place(self.path, state["messages"]),
                },
                response_schema=GrantAnswer,
            )
            if answer["type"] == "grant":
                extra = min(answer.get("extra", 1), self.hard_cap - used)
                return {"mcl_granted": used - self.limit + extra}
            note = answer.get("note") or "no more calls were granted"
        return {"messages": [AIMessage(f"Stopped after {used} model calls: {note}.")], "jump_to": "end"}

    def after_model(self, state: ModelLimitState, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"mcl_used": state.get("mcl_used", 0) + 1}


class ToolLimitState(AgentState[Any]):
    tcl_used: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]
    tcl_granted: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]


class HumanGrantToolLimit(AgentMiddleware[ToolLimitState, Any, Any]):
    """One question per model turn for all calls over the limit, before anybody is asked to approve one of them.

    Args:
        tool_name: The tool it counts. Rejected and failed calls count as well.
        limit: Calls that need no question.
        hard_cap: Calls that nobody can exceed.
        scope: As for `HumanGrantModelLimit`.
    """

    state_schema = ToolLimitState

    def __init__(
        self,
        *,
        tool_name: str,
        limit: int,
        hard_cap: int,
        scope: Scope = "run",
        path: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.tool_name, self.limit, self.hard_cap = tool_name, limit, max(limit, hard_cap)
        self.scope, self.path = scope, path

    @property
    def name(self) -> str:
        """Differs between instances: LangChain refuses two middleware of one name."""
        return f"HumanGrantToolLimit[{self.tool_name}]"

    def before_agent(self, state: ToolLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if self.scope == "thread":
            return None
        return {
            "tcl_used": {**state.get("tcl_used", {}), self.tool_name: 0},
            "tcl_granted": {**state.get("tcl_granted", {}), self.tool_name: 0},
        }

    def after_model(self, state: ToolLimitState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        calls = _open_calls(state["messages"], self.tool_name)
        if not calls:
            return None
        used, granted = dict(state.get("tcl_used", {})), dict(state.get("tcl_granted", {}))
        before = used.get(self.tool_name, 0)
        room = max(0, min(self.limit + granted.get(self.tool_name, 0), self.hard_cap) - before)
        run, over, note = calls[:room], calls[room:], f"the hard limit is {self.hard_cap}"
        most = min(self.hard_cap - before - len(run), len(over))
        if most > 0:
            answer = self._ask(before, over, most, place(self.path, state["messages"]))
            note = answer.get("note") or "no further call was granted"
            if answer["type"] == "grant":
                extra = min(answer.get("extra", most), most)
                granted[self.tool_name] = before + len(run) + extra - self.limit
                run, over = run + over[:extra], over[extra:]
        used[self.tool_name] = before + len(run)
        return {
            "tcl_used": used,
            "tcl_granted": granted,
            "messages": [self._refusal(call, note) for call in over],
        }

    def _ask(self, used: int, over: list[ToolCall], most: int, where: dict[str, Any]) -> GrantAnswer:
        answer: GrantAnswer = interrupt(
            {
                "type": "limit_grant",
                "resource": "tool_calls",
                "tool": self.tool_name,
                "used": used,
                "limit": self.limit,
                "max_extra": most,
                "over": [{"tool_call_id": call["id"], "args": call["args"]} for call in over],
                **where,
            },
            response_schema=GrantAnswer,
        )
        return answer

    def _refusal(self, call: ToolCall, note: str) -> ToolMessage:
        text = f"Not run: the limit of {self.limit} calls of {self.tool_name} is reached and {note}."
        return ToolMessage(text, name=self.tool_name, tool_call_id=call["id"], status="error")


def _open_calls(messages: list[Any], tool: str) -> list[ToolCall]:
    """Calls of the newest AI message that have no answer yet."""
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    done = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    calls = last.tool_calls if last else []
    return [call for call in calls if call["name"] == tool and call["id"] not in done]

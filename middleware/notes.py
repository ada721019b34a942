"""Which middleware touched a step, seen from outside: what went into a hook beside what came out. Workers only.

A note holds names and numbers, never the text of a message. Notes about a model call travel in the message it gave,
those about a tool call in its result: they are saved with it, and a step that is made again has them once. What
`after_model` did is kept until the worker records the step; a worker killed just then loses that line and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ModelRequest,
    ToolCallLimitMiddleware,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolMessage
from langgraph.types import Command  # noqa: TID251 - only the type of a result

from middleware.entry import Entry, Middleware
from middleware.limits import HumanGrantModelLimit, HumanGrantToolLimit
from middleware.ports import Note
from middleware.spending import SpendLimit

KEY = "counterseal_notes"  # in a message's response_metadata, which no provider is sent

# What is worth a line, by entry; an empty set has its reason beside it. The team's own, which is not listed, says OWN.
WORTH: dict[str, frozenset[str]] = {
    "summarization": frozenset({"shortened"}),
    "context_editing": frozenset({"cleared"}),
    "todo_list": frozenset({"todos", "refused"}),
    "shell_tool": frozenset(),  # its calls are steps of their own
    "file_search": frozenset(),  # likewise
    "filesystem": frozenset({"result"}),
    "subagents": frozenset({"subagents"}),
    "model_fallback": frozenset({"model"}),
    "model_retry": frozenset({"attempts", "told"}),
    "model_refusal": frozenset(),  # it makes an error of a refusal, which the fallback answers
    "model_router": frozenset({"model"}),
    "llm_tool_selector": frozenset({"tools"}),
    "provider_tool_search": frozenset({"deferred"}),
    "dynamic_prompt": frozenset({"prompt"}),
    "auto_mode": frozenset({"answered", "passed"}),
    "human_in_the_loop": frozenset(),  # the request stands beside the step
    "model_call_limit": frozenset({"limit", "ended"}),
    "tool_call_limit": frozenset({"limit", "refused", "ended"}),
    "spend_limit": frozenset({"spent", "ended"}),
    "repeat_guard": frozenset({"answered"}),
    "pii": frozenset({"masked"}),
    "openai_moderation": frozenset({"messages", "ended"}),
    "anthropic_prompt_caching": frozenset({"cache"}),
    "bedrock_prompt_caching": frozenset({"cache"}),
    "anthropic_bash": frozenset(),  # its calls are steps of their own
    "anthropic_text_editor": frozenset(),  # likewise
    "anthropic_memory": frozenset(),  # likewise
    "anthropic_file_search": frozenset(),  # likewise
    "tool_error": frozenset({"told"}),
    "write_guard": frozenset({"answered"}),
    "tool_retry": frozenset({"attempts", "told"}),
    "llm_tool_emulator": frozenset({"answered"}),
    "role_tools": frozenset({"tools", "answered"}),
    "observer": frozenset(),  # it writes the log
}


OWN = frozenset(
    {
        "answered",
        "attempts",
        "cleared",
        "dropped",
        "ended",
        "masked",
        "model",
        "prompt",
        "refused",
        "result",
        "told",
        "tools",
    }
)


class Notebook:
    """Of one drive of one agent. Sub-agents have none: their steps are no steps of the run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead: list[Note] = []
        self._late: dict[str, list[Note]] = {}

    def ahead(self, notes: Iterable[Note]) -> None:
        """About the model call that comes next."""
        with self._lock:
            self._ahead += notes

    def late(self, message_id: str, notes: Iterable[Note]) -> None:
        """About a message that is saved already."""
        if found := list(notes):
            with self._lock:
                self._late.setdefault(message_id, []).extend(found)

    def onto(self, message: AIMessage) -> None:
        """Put what was said ahead into the message that came."""
        with self._lock:
            waiting, self._ahead = self._ahead, []
        attach(message, waiting)

    def take_late(self) -> Mapping[str, list[Note]]:
        """Message id -> notes that were not taken before."""
        with self._lock:
            taken, self._late = self._late, {}
        return taken


def attach(message: AIMessage | ToolMessage, notes: Iterable[Note]) -> None:
    if found := list(notes):
        metadata = message.response_metadata
        message.response_metadata = {**metadata, KEY: [*metadata.get(KEY, []), *found]}


def notes_of(message: AnyMessage) -> tuple[Note, ...]:
    return tuple(getattr(message, "response_metadata", {}).get(KEY, ()))


def watched(made: Middleware, entry: Entry, notebook: Notebook) -> Middleware:
    """The same instance, whose hooks leave notes. Its class keeps its name: LangChain names nodes after it."""
    worth = WORTH.get(entry.name, OWN)
    if not worth:
        return made
    kind, watch = type(made), _Watch(entry.name, worth, notebook)
    around = {
        "before_agent": watch.before_agent,
        "before_model": watch.before,
        "wrap_model_call": watch.model_call,
        "after_model": watch.after,
        "wrap_tool_call": watch.tool_call,
    }
    hooks = {
        name: wrap(getattr(kind, name))
        for name, wrap in around.items()
        if getattr(kind, name) is not getattr(AgentMiddleware, name)
    }
    made.__class__ = type(kind.__name__, (kind,), hooks)
    return made


type _Said = Iterator[tuple[str, dict[str, Any]]]
type _Hook = Callable[..., Any]


class _Watch:
    def __init__(self, use: str, worth: frozenset[str], notebook: Notebook) -> None:
        self.use, self.worth, self.notebook = use, worth, notebook

    def notes(self, said: _Said) -> list[Note]:
        return [{"use": self.use, "what": what, **more} for what, more in said if what in self.worth]

    def before_agent(self, hook: _Hook) -> _Hook:
        return self.before(hook, counts=False)  # the call that is counted comes after before_model

    def before(self, hook: _Hook, *, counts: bool = True) -> _Hook:
        @wraps(hook)
        def before(made: Any, state: Any, *rest: Any, **more: Any) -> Any:
            update = hook(made, state, *rest, **more)
            said = (
                one for one in _in_state(made, state, update) if counts or one[0] not in ("limit", "spent")
            )
            self.notebook.ahead(self.notes(said))
            if answer := _answer_in(update):  # no model call follows
                self.notebook.onto(answer)
            return update

        return before

    def after(self, hook: _Hook) -> _Hook:
        @wraps(hook)
        def after(made: Any, state: Any, *rest: Any, **more: Any) -> Any:
            update = hook(made, state, *rest, **more)
            last = next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None)
            if last is not None and last.id:
                self.notebook.late(last.id, self.notes(_in_state(made, state, update, after=True)))
            return update

        return after

    def model_call(self, hook: _Hook) -> _Hook:
        @wraps(hook)
        def model_call(made: Any, request: ModelRequest[Any], handler: Callable[[Any], Any]) -> Any:
            asked: list[ModelRequest[Any]] = []

            def counted(inner: ModelRequest[Any]) -> Any:
                asked.append(inner)
                return handler(inner)

            response = hook(made, request, counted)
            message = _message_in(response)
            if message is not None:
                attach(message, self.notes(_in_model_call(made, request, asked, message)))
            return response

        return model_call

    def tool_call(self, hook: _Hook) -> _Hook:
        @wraps(hook)
        def tool_call(made: Any, request: ToolCallRequest, handler: Callable[[Any], Any]) -> Any:
            got: list[Any] = []  # results of the tool; None: it failed

            def counted(inner: ToolCallRequest) -> Any:
                got.append(None)
                got[-1] = handler(inner)
                return got[-1]

            result = hook(made, request, counted)
            for message in _results_in(result, request.tool_call["id"] or ""):
                attach(message, self.notes(_in_tool_call(made, got, result)))
            return result

        return tool_call


# --- what was done, hook by hook ----------------------------------------------------------------------------------------
def _in_state(made: Any, state: Mapping[str, Any], update: Any, *, after: bool = False) -> _Said:
    given = update if isinstance(update, dict) else {}
    known = {message.id: message for message in state["messages"] if message.id}
    messages = given.get("messages") or []
    if any(isinstance(message, RemoveMessage) for message in messages):
        kept = sum(message.id in known for message in messages if not isinstance(message, RemoveMessage))
        yield "shortened", {"n": len(known) - kept}
    else:
        changed = [known[m.id] for m in messages if m.id in known and m.content != known[m.id].content]
        if changed:
            yield "masked", {"n": sum(_hits(made, message) for message in changed)}
            yield "messages", {"n": len(changed)}
    refused = sum(isinstance(message, ToolMessage) and message.id not in known for message in messages)
    if refused:
        yield "refused", {"n": refused}
    if given.get("jump_to") == "end":
        yield "ended", {}
    elif (standing := _standing(made, {**state, **given}, after=after, acted=bool(given))) is not None:
        yield standing


def _hits(made: Any, message: AnyMessage) -> int:
    """How many pieces of personal data the detector of the middleware finds in it."""
    detector = getattr(made, "detector", None)
    return len(detector(str(message.text))) if callable(detector) else 1


def _standing(
    made: Any, state: Mapping[str, Any], *, after: bool, acted: bool
) -> tuple[str, dict[str, Any]] | None:
    """How much of a limit is used with the call that comes (before the model), or that were proposed (after it)."""
    match made:
        case HumanGrantModelLimit() if not after:
            return "limit", {
                "n": state.get("mcl_used", 0) + 1,
                "of": min(made.limit + state.get("mcl_granted", 0), made.hard_cap),
            }
        case ModelCallLimitMiddleware() if not after:
            name = "run" if made.run_limit is not None else "thread"
            used = state.get(f"{name}_model_call_count", 0)
            return "limit", {"n": used + 1, "of": getattr(made, f"{name}_limit")}
        case SpendLimit() if not after:
            used = int(state.get("spend_used", 0.0) / made.unit)
            most = min(made.options.limit + state.get("spend_granted", 0.0), made.hard_cap)
            return "spent", {"n": used, "of": int(most / made.unit), "unit": made.resource}
        case HumanGrantToolLimit() if after and acted:
            most = min(made.limit + state["tcl_granted"].get(made.tool_name, 0), made.hard_cap)
            return "limit", {"n": state["tcl_used"][made.tool_name], "of": most, "tool": made.tool_name}
        case ToolCallLimitMiddleware() if after and acted:
            name = "run" if made.run_limit is not None else "thread"
            used = state.get(f"{name}_tool_call_count", {}).get(made.tool_name or "__all__", 0)
            return "limit", {"n": used, "of": getattr(made, f"{name}_limit"), "tool": made.tool_name or ""}
    return None


def _in_model_call(
    made: Any, request: ModelRequest[Any], asked: list[ModelRequest[Any]], message: AIMessage
) -> _Said:
    if not asked:
        yield "answered", {}
        return
    last = asked[-1]
    if last.model is not request.model:
        yield "model", {"name": model_name(last.model)}
    if len(asked) > 1:
        yield "attempts", {"n": len(asked), "of": getattr(made, "max_retries", len(asked) - 1) + 1}
    yield from _in_request(request, last)
    todos = _args(message, "write_todos").get("todos")
    if isinstance(todos, list):
        done = sum(isinstance(todo, dict) and todo.get("status") == "completed" for todo in todos)
        yield "todos", {"n": done, "of": len(todos)}
    helpers = dict.fromkeys(
        str(call["args"].get("subagent_type", "")) for call in message.tool_calls if call["name"] == "task"
    )
    if helpers:
        yield "subagents", {"name": ", ".join(helpers)[:200]}


def _in_request(given: ModelRequest[Any], sent: ModelRequest[Any]) -> _Said:
    before, after = given.messages, sent.messages
    changed = sum(old.content != new.content for old, new in zip(before, after, strict=False))
    tools = len(given.tools), len(sent.tools)
    system = given.system_message != sent.system_message
    if changed:
        yield "cleared", {"n": changed}
    if len(after) < len(before):
        yield "dropped", {"n": len(before) - len(after)}
    if tools[1] < tools[0]:
        yield "tools", {"n": tools[1], "of": tools[0]}
    elif (
        any(old is not new for old, new in zip(given.tools, sent.tools, strict=False)) or tools[1] > tools[0]
    ):
        yield "deferred", {}
    if system:
        yield "prompt", {}
    if system or changed or given.model_settings != sent.model_settings or given.tools != sent.tools:
        yield "cache", {}


def _in_tool_call(made: Any, got: list[Any], result: Any) -> _Said:
    if not got:
        yield "answered", {}
        return
    if len(got) > 1:
        yield "attempts", {"n": len(got), "of": getattr(made, "max_retries", len(got) - 1) + 1}
    if got[-1] is None:
        yield "told", {}
    else:
        yield "passed", {}
        if result is not got[-1]:
            yield "result", {}


def model_name(model: Any) -> str:
    found = getattr(model, "model_name", None) or getattr(model, "model", None)
    return found if isinstance(found, str) else type(model).__name__


def _args(message: AIMessage, tool: str) -> Mapping[str, Any]:
    return next((call["args"] for call in message.tool_calls if call["name"] == tool), {})


def _message_in(response: Any) -> AIMessage | None:
    found = getattr(response, "model_response", response)
    messages = [found] if isinstance(found, AIMessage) else getattr(found, "result", [])
    return next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)


def _answer_in(update: Any) -> AIMessage | None:
    """The message with which a hook ends the run in place of the model."""
    if not isinstance(update, dict) or update.get("jump_to") != "end":
        return None
    return next((m for m in reversed(update.get("messages") or []) if isinstance(m, AIMessage)), None)


def _results_in(result: Any, call_id: str) -> list[ToolMessage]:
    update = result.update if isinstance(result, Command) else None
    messages = update.get("messages", []) if isinstance(update, dict) else [result]
    return [m for m in messages if isinstance(m, ToolMessage) and m.tool_call_id == call_id]

"""The approval gate and the ledger for tools that a middleware brings: a shell, files that outlive the case.

They are no tools of a house, so nobody has written a sender for them. What they do is done by the tool itself, once a
decision or a verdict covers exactly these arguments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import Command  # noqa: TID251 - only the type of a result

from agents.catalogue import ToolFacts
from agents.gate import Gate, write_tool
from agents.outcomes import Ambiguous, Refused
from middleware.ports import Judge


def seal(inner: BaseTool, facts: ToolFacts, judge: Judge, gate: Gate) -> StructuredTool:
    """`inner` behind the gate. It runs at most once for each approved call; what is unclear is asked of a person."""
    if not isinstance(inner, StructuredTool) or inner.func is None:
        raise TypeError(f"{inner.name} cannot be sealed: it is no plain function")
    doing: ContextVar[ToolRuntime] = ContextVar(f"runtime of {inner.name}")
    act: Callable[..., Any] = inner.func

    def send(args: dict[str, Any], key: str, timeout: float) -> Mapping[str, Any]:
        given = {name: value for name, value in args.items() if value is not None}
        try:
            answer = act(**given, runtime=doing.get())
        except ToolException as error:
            raise Ambiguous(str(error)) from error
        return _said(answer)

    sealed = write_tool(facts, send=send, lookup=None, judge=judge, gate=gate)
    run: Callable[..., Any] = sealed.func  # type: ignore[assignment]

    def with_runtime(runtime: ToolRuntime, **passed: Any) -> Any:
        token = doing.set(runtime)
        try:
            return _result(run(runtime=runtime, **passed))
        finally:
            doing.reset(token)

    return StructuredTool.from_function(
        with_runtime,
        name=inner.name,
        description=inner.description,
        args_schema=facts.args,
        handle_tool_error=True,
        metadata=sealed.metadata,
    )


def _result(told: str) -> str:
    """What the tool said, without its own arguments: a written file would stand in the conversation twice."""
    known = json.loads(told)
    return str(known["result"]) if "result" in known else told


def _said(answer: Any) -> Mapping[str, Any]:
    """Raises `Refused` if nothing was done, `Ambiguous` if that is not known."""
    message = _message(answer)
    if message is None:
        return {"result": str(answer)}
    artifact = message.artifact if isinstance(message.artifact, dict) else {}
    if artifact.get("timed_out"):
        raise Ambiguous(message.text)
    if message.status == "error" and artifact.get("exit_code") is None and "exit_code" in artifact:
        raise Ambiguous(message.text)
    if message.status == "error" and "exit_code" not in artifact:
        raise Refused(message.text)
    return {"result": message.text}


def _message(answer: Any) -> ToolMessage | None:
    if isinstance(answer, ToolMessage):
        return answer
    if isinstance(answer, Command) and isinstance(answer.update, dict):
        found = [m for m in answer.update.get("messages", []) if isinstance(m, ToolMessage)]
        return found[-1] if found else None
    return None

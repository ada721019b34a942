"""Own hooks as LangChain's middleware. Imports LangChain."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from typing_extensions import TypedDict

from middleware.entry import Surroundings
from middleware.factories.naming import Middleware, with_id
from middleware.options.base import Options

ASYNC_OF = {"wrap_model_call": "awrap_model_call", "wrap_tool_call": "awrap_tool_call"}


def build(module: str, options: Options, around: Surroundings) -> Middleware:
    """The hooks of `module.OWN`, mixed into LangChain's class."""
    hooks = import_module(module).OWN.hooks
    kind = type(hooks.__name__, (hooks, AgentMiddleware), {"state_schema": _state(hooks)})
    made = kind(options, around)
    made.tools = list(getattr(made, "tools", ()))
    return with_id(made, options)


def _state(hooks: type) -> type:
    fields: dict[str, Any] = getattr(hooks, "state", {})
    if not fields:
        return AgentState
    private = {name: NotRequired[Annotated[kind, PrivateStateAttr]] for name, kind in fields.items()}
    return TypedDict(f"{hooks.__name__}State", private)  # type: ignore[operator, no-any-return]

"""Names of instances: LangChain refuses two of one name and takes the name from the class."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import AgentMiddleware

from middleware.options.base import Options

type Middleware = AgentMiddleware[Any, Any, Any]


def with_id(middleware: Middleware, options: Options, title: str = "") -> Middleware:
    """The same instance under `title[id]`. `title`: where the class is called otherwise."""
    kind = type(middleware)
    name = f"{title or kind.__name__}[{options.id}]" if options.id else title
    if name:
        middleware.__class__ = type(kind.__name__, (kind,), {"name": property(lambda _: name)})
    return middleware


def given(**options: Any) -> dict[str, Any]:
    """Without those that are None: the class's own default then holds."""
    return {name: value for name, value in options.items() if value is not None}

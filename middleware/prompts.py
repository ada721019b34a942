"""Lines about this case in the system prompt of each call. Never stored: the next call makes them anew."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import SystemMessage

type Request = ModelRequest[Any]
type Response = ModelResponse[Any]

_PLACE = re.compile(r"\{([a-z_]+)\}")


class CasePrompt(AgentMiddleware[AgentState[Any], Any, Any]):
    """Adds lines behind the system prompt.

    Args:
        lines: With places such as `{customer_name}`; a line whose place is not known is left out.
        for_roles: A line for each role that the requester may have.
        context: What staff entered about the case, and the requester's roles.
    """

    def __init__(
        self, lines: Sequence[str], for_roles: Mapping[str, str], context: Mapping[str, Any]
    ) -> None:
        super().__init__()
        roles = context.get("roles", ())
        wanted = [*lines, *(line for role, line in for_roles.items() if role in roles)]
        self.text = "\n".join(line for said in wanted if (line := filled(said, context)) is not None)

    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        return handler(self._told(request))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        return await handler(self._told(request))

    def _told(self, request: Request) -> Request:
        if not self.text:
            return request
        before = request.system_message.content_blocks if request.system_message else []
        blocks: list[Any] = [*before, {"type": "text", "text": self.text}]
        return request.override(system_message=SystemMessage(content=blocks))


def filled(line: str, context: Mapping[str, Any]) -> str | None:
    """None if something it names is not known. Values are data: a brace in one is not a place."""
    if any(not context.get(name) for name in _PLACE.findall(line)):
        return None
    return _PLACE.sub(lambda match: str(context[match.group(1)]), line)

"""Tell the model that a read failed. Never for writes and questions: their exceptions are not failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ToolCallRequest, ToolErrorMiddleware
from langchain_core.tools import ToolException

from middleware.options.models import Words
from middleware.ports import Conflict, SessionLost, ToolInfo

# Exceptions whose text we or the tool's author wrote for readers; of any other only the type is told.
_SPEAKING = (ConnectionError, TimeoutError, ToolException)


class ReadErrors(ToolErrorMiddleware[Any, Any]):
    """Turns exceptions of read tools into tool messages under the original call id.

    Args:
        tools: Names of the tools it covers. Each must be a read.
        facts: What is known of each tool.
        words: "plain" tells the text of errors that were written for readers, "with_text" of all, "type_only" of none.

    Raises:
        ValueError: If one of `tools` is unknown, a write or a question.
    """

    def __init__(self, tools: Sequence[str], facts: Mapping[str, ToolInfo], words: Words = "plain") -> None:
        for name in tools:
            if name not in facts or facts[name].effect != "read":
                raise ValueError(f"{name} is not a read: its errors must not be turned into messages")
        self.words = words
        super().__init__(self._told, tools=list(tools))

    def _told(self, error: Exception, request: ToolCallRequest) -> str | None:
        """None: let it through. A lost session means that this worker must write nothing more."""
        return None if isinstance(error, SessionLost | Conflict) else _sentence(error, request, self.words)


def _sentence(error: Exception, request: ToolCallRequest, words: Words) -> str:
    speaks = words == "with_text" or (words == "plain" and isinstance(error, _SPEAKING))
    why = f": {error}" if speaks and str(error) else ""
    return (
        f"{request.tool_call['name']} failed ({type(error).__name__}{why}). Nothing was read and nothing was changed. "
        "You may try once more, or say that the information is not available."
    )

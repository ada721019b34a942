"""Named exception classes and named ways to tell an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from langchain.agents.middleware._retry import default_retry_on
from langchain_core.exceptions import ModelError

from middleware.options.models import RetryOn, Words

type Judge = Callable[[Exception], bool]

TOO_MANY, SERVER = 429, range(500, 600)


def _status(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _http(error: Exception) -> bool:
    httpx = sys.modules.get("httpx")  # nobody can have raised what nobody has imported
    return httpx is not None and isinstance(error, httpx.HTTPError)


def _retryable(error: Exception) -> bool:
    """LangChain's own judgement; of errors that it does not know, those that a second try can mend."""
    if isinstance(error, ModelError):
        return default_retry_on(error)
    status = _status(error)
    if status is not None:
        return status == TOO_MANY or status in SERVER
    return isinstance(error, ConnectionError | TimeoutError) or _http(error)


FAILURES: Mapping[RetryOn, Judge] = {
    "retryable": _retryable,
    "any": lambda error: True,
    "connection": lambda error: isinstance(error, ConnectionError),
    "timeout": lambda error: isinstance(error, TimeoutError) or "Timeout" in type(error).__name__,
    "rate_limit": lambda error: _status(error) == TOO_MANY,
    "server_error": lambda error: _status(error) in SERVER,
    "http": _http,
    "os": lambda error: isinstance(error, OSError),
    "value": lambda error: isinstance(error, ValueError),
}

WORDS: Mapping[Words, Callable[[Exception], str]] = {
    "plain": lambda error: "The model could not be reached. Please try again later.",
    "type_only": lambda error: f"The model failed ({type(error).__name__}). Please try again later.",
    "with_text": lambda error: f"The model failed: {error}. Please try again later.",
}


def judge_of(names: Sequence[RetryOn]) -> Judge:
    """Any of them."""
    return lambda error: any(FAILURES[name](error) for name in names)

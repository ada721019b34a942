"""From options to middleware. Imports LangChain: only workers come here, through `catalogue.Entry.build`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import (
    AgentMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)

from middleware import options as o
from middleware.approval import HumanInTheLoop
from middleware.catalogue import Surroundings
from middleware.effects import WriteGuard
from middleware.errors import ReadErrors
from middleware.limits import HumanGrantModelLimit, HumanGrantToolLimit

type Middleware = AgentMiddleware[Any, Any, Any]

_EXCEPTIONS: dict[o.RetryOn, tuple[type[Exception], ...]] = {
    "connection": (ConnectionError,),
    "timeout": (TimeoutError,),
    "any": (Exception,),
}


def human_in_the_loop(options: o.HumanInTheLoopOptions, around: Surroundings) -> Middleware:
    return _with_id(HumanInTheLoop(options.interrupt_on, around.approvals), options)


def model_call_limit(options: o.ModelCallLimitOptions, _: Surroundings) -> Middleware:
    if options.on_limit == "ask":
        cap = options.hard_cap or options.limit
        return HumanGrantModelLimit(
            limit=options.limit, hard_cap=cap, scope="run" if options.run_limit else "thread"
        )
    return ModelCallLimitMiddleware(
        thread_limit=options.thread_limit, run_limit=options.run_limit, exit_behavior=options.exit_behavior
    )


def tool_call_limit(options: o.ToolCallLimitOptions, _: Surroundings) -> Middleware:
    if options.on_limit == "ask":
        return HumanGrantToolLimit(
            tool_name=str(options.tool_name),
            limit=options.limit,
            hard_cap=options.hard_cap or options.limit,
            scope="run" if options.run_limit else "thread",
        )
    return ToolCallLimitMiddleware(
        tool_name=options.tool_name,
        thread_limit=options.thread_limit,
        run_limit=options.run_limit,
        exit_behavior=options.exit_behavior,
    )


def pii(options: o.PiiOptions, _: Surroundings) -> Middleware:
    return PIIMiddleware(
        options.pii_type,
        strategy=options.strategy,
        detector=options.detector,
        apply_to_input=options.apply_to_input,
        apply_to_output=options.apply_to_output,
        apply_to_tool_results=options.apply_to_tool_results,
    )


def tool_error(options: o.ToolErrorOptions, around: Surroundings) -> Middleware:
    return _with_id(ReadErrors(options.tools, around.tools), options)


def write_guard(options: o.WriteGuardOptions, around: Surroundings) -> Middleware:
    return _with_id(WriteGuard(around.tools), options)


def tool_retry(options: o.ToolRetryOptions, _: Surroundings) -> Middleware:
    retry = ToolRetryMiddleware(
        max_retries=options.max_retries,
        tools=list(options.tools),
        retry_on=_exceptions(options.retry_on),
        on_failure="error",  # its own text tells the model to try again; `tool_error` outside has better words
        backoff_factor=options.backoff_factor,
        initial_delay=options.initial_delay,
        max_delay=options.max_delay,
        jitter=options.jitter,
    )
    return _with_id(retry, options)


def model_retry(options: o.ModelRetryOptions, _: Surroundings) -> Middleware:
    retry = ModelRetryMiddleware(
        max_retries=options.max_retries,
        retry_on=_exceptions(options.retry_on),
        on_failure=options.on_failure,
        backoff_factor=options.backoff_factor,
        initial_delay=options.initial_delay,
        max_delay=options.max_delay,
        jitter=options.jitter,
    )
    return _with_id(retry, options)


def _exceptions(names: Sequence[o.RetryOn]) -> tuple[type[Exception], ...]:
    return tuple(kind for name in names for kind in _EXCEPTIONS[name])


def _with_id(middleware: Middleware, options: o.Options) -> Middleware:
    """Two instances of one class need two names; LangChain takes the name from the class."""
    if options.id:
        kind = type(middleware)
        name = f"{kind.__name__}[{options.id}]"
        middleware.__class__ = type(kind.__name__, (kind,), {"name": property(lambda _: name)})
    return middleware

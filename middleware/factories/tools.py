"""What stands around tool calls."""

from __future__ import annotations

from langchain.agents.middleware import LLMToolEmulator, ToolRetryMiddleware

from middleware.effects import WriteGuard
from middleware.entry import Surroundings
from middleware.errors import ReadErrors
from middleware.factories.failures import judge_of
from middleware.factories.naming import Middleware, with_id
from middleware.observer import Observer
from middleware.options import tools as o
from middleware.roles import RoleTools


def tool_error(options: o.ToolErrorOptions, around: Surroundings) -> Middleware:
    return with_id(ReadErrors(options.tools, around.tools, options.words), options)


def write_guard(options: o.WriteGuardOptions, around: Surroundings) -> Middleware:
    return with_id(WriteGuard(around.tools), options)


def tool_retry(options: o.ToolRetryOptions, _: Surroundings) -> Middleware:
    retry = ToolRetryMiddleware(
        max_retries=options.max_retries,
        tools=list(options.tools),
        retry_on=judge_of(options.retry_on),
        on_failure="error",  # its own text tells the model to try again; `tool_error` outside has better words
        backoff_factor=options.backoff_factor,
        initial_delay=options.initial_delay,
        max_delay=options.max_delay,
        jitter=options.jitter,
    )
    return with_id(retry, options)


def llm_tool_emulator(options: o.LlmToolEmulatorOptions, around: Surroundings) -> Middleware:
    tools = None if options.tools is None else list(options.tools)
    return with_id(LLMToolEmulator(tools=tools, model=around.model(options.model)), options)  # type: ignore[arg-type]


def role_tools(options: o.RoleToolsOptions, around: Surroundings) -> Middleware:
    return with_id(RoleTools(options.allow, around.context.get("roles", ())), options)


def observer(options: o.ObserverOptions, around: Surroundings) -> Middleware:
    return with_id(Observer(options.slow_seconds, around.thread_id), options)

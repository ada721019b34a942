"""Approvals and limits."""

from __future__ import annotations

from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware

from middleware.approval import HumanInTheLoop
from middleware.entry import Surroundings
from middleware.factories.naming import Middleware, with_id
from middleware.limits import HumanGrantModelLimit, HumanGrantToolLimit
from middleware.options import people as o
from middleware.repeats import RepeatGuard
from middleware.spending import SpendLimit


def human_in_the_loop(options: o.HumanInTheLoopOptions, around: Surroundings) -> Middleware:
    return with_id(HumanInTheLoop(options.interrupt_on, around.approvals, around.path), options)


def model_call_limit(options: o.ModelCallLimitOptions, around: Surroundings) -> Middleware:
    if options.on_limit == "ask":
        cap = options.hard_cap or options.limit
        return HumanGrantModelLimit(
            limit=options.limit,
            hard_cap=cap,
            scope="run" if options.run_limit else "thread",
            path=around.path,
        )
    return ModelCallLimitMiddleware(
        thread_limit=options.thread_limit, run_limit=options.run_limit, exit_behavior=options.exit_behavior
    )


def tool_call_limit(options: o.ToolCallLimitOptions, around: Surroundings) -> Middleware:
    if options.on_limit == "ask":
        return HumanGrantToolLimit(
            tool_name=str(options.tool_name),
            limit=options.limit,
            hard_cap=options.hard_cap or options.limit,
            scope="run" if options.run_limit else "thread",
            path=around.path,
        )
    return ToolCallLimitMiddleware(
        tool_name=options.tool_name,
        thread_limit=options.thread_limit,
        run_limit=options.run_limit,
        exit_behavior=options.exit_behavior,
    )


def spend_limit(options: o.SpendLimitOptions, around: Surroundings) -> Middleware:
    return with_id(SpendLimit(options, around.path), options)


def repeat_guard(options: o.RepeatGuardOptions, around: Surroundings) -> Middleware:
    gated = {name for entry in around.spec_middleware for name in entry.get("interrupt_on", ())}
    return with_id(RepeatGuard(options.tools or tuple(gated)), options)

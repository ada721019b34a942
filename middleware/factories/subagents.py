"""Helpers with a conversation of their own, under the same gate as the agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deepagents.backends import StateBackend
from deepagents.middleware.subagents import SubAgentMiddleware

from middleware.entry import Surroundings
from middleware.factories.graphs import graph
from middleware.factories.naming import Middleware, with_id
from middleware.inheritance import inherited, within
from middleware.options import files as o
from middleware.stack import build_stack_around

GENERAL = o.SubAgentSpec(
    name="general-purpose",
    description="A helper with the same tools as the agent, for tasks of many steps whose inner steps do not matter.",
    system_prompt="Do the task you are given with the tools you have, and answer with the result only.",
)


def subagents(options: o.SubagentsOptions, around: Surroundings) -> Middleware:
    helpers = [*options.subagents, *([GENERAL] if options.general_purpose else [])]
    told: dict[str, Any] = {
        "system_prompt": options.system_prompt,
        "task_description": options.task_description,
    }
    made = SubAgentMiddleware(
        backend=StateBackend(), subagents=[_helper(one, around) for one in helpers], **told
    )
    return with_id(made, options)


def _helper(one: o.SubAgentSpec, around: Surroundings) -> Any:
    if one.graph:
        return {"name": one.name, "description": one.description, "runnable": graph(one.graph)}
    names: Sequence[str] = around.own_tools if one.tools is None else one.tools
    known = within(one, names)
    below = replace(
        around,
        tools={name: around.tools[name] for name in known},
        path=(*around.path, one.name),
        own_tools=tuple(names),
        spec_middleware=inherited(one, around.spec_middleware, known),
        watch=None,  # its steps are no steps of the run
    )
    return {
        "name": one.name,
        "description": one.description,
        "system_prompt": one.system_prompt,
        "model": around.model(one.model),
        "tools": list(around.make_tools(names)),
        "middleware": [*build_stack_around(below), *around.innermost()],
    }

"""From the data of a version to an engine that can run it: model, tools, middleware, in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import ValidationError

from agents.catalogue import AgentSpec, ToolFacts, all_tools, fingerprint, packages
from agents.chat_models import ModelUnavailable, build_chat_model
from agents.contracts import Desk, Parked, RunOrder
from agents.gate import Gate, write_tool
from agents.model_guard import ModelGuard
from agents.runtime import Engine
from agents.words import CASE
from middleware.effects import Unsealed, refuse_unsealed
from middleware.ports import Approvals, EffectLedger, Judge
from middleware.stack import StackError, build_stack, judges

CHANGED = "The definition of the agent changed since this run began: "


def build_engine(
    order: RunOrder,
    *,
    desk: Desk,
    saver: BaseCheckpointSaver[Any],
    approvals: Approvals,
    ledger: EffectLedger,
    shop_url: str,
) -> Engine:
    """Exactly the agent the run began with. Raises `Parked` if that is not possible."""
    spec = _spec(order)
    facts = {name: known for name, known in all_tools().items() if name in spec.tools}
    gate = Gate(order.thread_id, order.fingerprint, approvals, ledger)
    tools = _tools(facts, judges(spec.middleware), gate, shop_url)
    try:
        refuse_unsealed(tools, facts)
        stack = build_stack(spec.middleware, tools=facts, approvals=approvals)
    except (StackError, Unsealed) as error:
        raise Parked(f"The agent may not run as published: {error}") from error
    try:
        model = _model(spec.model, spec.base_url, spec.api_key_env, json.dumps(spec.model_options))
    except ModelUnavailable as error:
        raise Parked(f"The model of the agent cannot be used here: {error}.") from error
    graph = create_agent(
        model,
        tools,
        system_prompt=f"{spec.system_prompt}\n{case_line(order.context)}",  # never stored in the thread
        middleware=[*stack, ModelGuard(spec.model, spec.api_key_env, order.thread_id)],
        checkpointer=saver,
        name=spec.slug,
    )
    return Engine(graph, order, desk, facts)


def case_line(context: Mapping[str, Any]) -> str:
    """What staff entered about the case, for the model. "" if nothing was entered."""
    named = {"order": "order_id", "customer": "customer_name", "customer number": "customer_id"}
    facts = [f"{label} {context[name]}" for label, name in named.items() if context.get(name)]
    if context.get("language"):
        facts.append(f"the customer reads {context['language']}")
    return f"{CASE}{'; '.join(facts)}." if facts else ""


def _spec(order: RunOrder) -> AgentSpec:
    try:
        spec = AgentSpec.model_validate(order.spec)
    except ValidationError as error:
        raise Parked(f"{CHANGED}its stored form cannot be read ({error.error_count()} faults).") from error
    missing = sorted(set(spec.tools) - set(all_tools()))
    if missing:
        raise Parked(f"{CHANGED}it has no tool {', '.join(missing)} any more.")
    if fingerprint(spec) != order.fingerprint:
        raise Parked(f"{CHANGED}a tool takes other arguments now. The call needs to be proposed again.")
    return spec


def _tools(
    facts: Mapping[str, ToolFacts], rules: Mapping[str, Judge], gate: Gate, shop_url: str
) -> list[BaseTool]:
    homes = [import_module(f"{package}.tools") for package in packages()]
    made = {name: (home, make) for home in homes for name, make in home.TOOL_BUILDERS.items()}
    senders = {name: (home, make) for home in homes for name, make in home.SENDERS.items()}
    built: list[BaseTool] = []
    for name, known in facts.items():
        if known.effect != "write":
            home, build = made[name]
            built.append(build(home.connect(shop_url)))
            continue
        if name not in rules:
            raise Parked(
                f"{name} writes but no rule says who decides: publish the agent with an approval for it."
            )
        home, make = senders[name]
        send, lookup = make(home.connect(shop_url))
        built.append(
            write_tool(
                known, send=send, lookup=lookup if known.lookup else None, judge=rules[name], gate=gate
            )
        )
    return built


@lru_cache(maxsize=16)
def _model(model: str, base_url: str | None, api_key_env: str | None, options: str) -> Any:
    """`options` as JSON: a cache needs something hashable, and options may hold lists and objects."""
    return build_chat_model(model, base_url=base_url, api_key_env=api_key_env, options=json.loads(options))

"""From the data of a version to an engine that can run it: model, tools, middleware, in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from pydantic import ValidationError

from agents.catalogue import AgentSpec, ToolFacts, all_tools, facts_of, fingerprint, packages, tools_of
from agents.chat_models import ModelUnavailable, build_chat_model
from agents.contracts import Desk, Parked, RunOrder
from agents.gate import Gate, write_tool
from agents.model_guard import ModelGuard
from agents.runtime import Engine
from agents.sealing import seal
from agents.words import CASE
from middleware.catalogue import BadEntry, NotProvided, Surroundings
from middleware.effects import Unsealed, refuse_unsealed
from middleware.notes import Notebook, watched
from middleware.options.base import Model, ModelRef
from middleware.ports import Approvals, EffectLedger, Judge
from middleware.stack import StackError, added_tools, build_stack_around, judges

CHANGED = "The definition of the agent changed since this run began: "


@dataclass(frozen=True)
class Rig:
    """What a graph is built on: the real thing for a run, in memory for a trial."""

    thread_id: str
    context: Mapping[str, Any]  # what staff entered about the case
    approvals: Approvals
    make_tools: Callable[[Mapping[str, ToolFacts], Mapping[str, Judge]], list[BaseTool]]  # of the houses
    seal: Callable[[BaseTool, ToolFacts, Judge], BaseTool]  # of a tool that a middleware brings
    watch: Callable[[Any, Any], Any]  # see `Surroundings.watch`
    notebook: Notebook
    saver: Any
    store: BaseStore | None = None
    folder: str = ""


def build_engine(
    order: RunOrder,
    *,
    desk: Desk,
    saver: BaseCheckpointSaver[Any],
    approvals: Approvals,
    ledger: EffectLedger,
    shop_url: str,
    store: BaseStore | None = None,
    folder: str = "",
) -> Engine:
    """Exactly the agent the run began with. Raises `Parked` if that is not possible."""
    spec = _spec(order)
    gate = Gate(order.thread_id, order.fingerprint, approvals, ledger)
    notebook = Notebook()
    rig = Rig(
        thread_id=order.thread_id,
        context=order.context,
        approvals=approvals,
        make_tools=lambda facts, rules: _tools(facts, rules, gate, shop_url),
        seal=lambda tool, facts, rule: seal(tool, facts, rule, gate),
        watch=lambda made, entry: watched(made, entry, notebook),
        notebook=notebook,
        saver=saver,
        store=store,
        folder=folder,
    )
    graph, facts = build_graph(spec, rig)
    return Engine(graph, order, desk, facts, notebook)


def build_graph(spec: AgentSpec, rig: Rig) -> tuple[Any, dict[str, ToolFacts]]:
    """The compiled graph of a spec, and the facts of every tool in it. Raises `Parked` with the reason."""
    facts = {name: known for name, known in all_tools().items() if name in tools_of(spec)}
    rules = judges(spec.middleware)
    tools = rig.make_tools(facts, rules)
    guard = ModelGuard(spec.model, spec.api_key_env, rig.thread_id, rig.notebook)
    brought = {name: facts_of(tool) for name, tool in _added(spec).items()}
    with _parked_with_reason():
        model = _model_of(spec, None)
        around = Surroundings(
            tools=facts,
            approvals=rig.approvals,
            model=lambda ref: _model_of(spec, ref),
            make_tools=lambda names: _chosen(tools, names),
            seal=lambda tool: rig.seal(tool, brought[tool.name], _rule(rules, tool.name)),
            store=rig.store,
            spec_middleware=spec.middleware,
            own_tools=spec.tools,
            innermost=lambda: [guard],
            thread_id=rig.thread_id,
            slug=spec.slug,
            folder=rig.folder,
            context=rig.context,
            watch=rig.watch,
        )
        stack = build_stack_around(around)
        refuse_unsealed([*tools, *_tools_in(stack)], {**brought, **facts})
    graph = create_agent(
        model,
        _chosen(tools, spec.tools),
        system_prompt=f"{spec.system_prompt}\n{case_line(rig.context)}",  # never stored in the thread
        middleware=[*stack, guard],
        checkpointer=rig.saver,
        store=rig.store,
        name=spec.slug,
    )
    return graph, {**brought, **facts}


@contextmanager
def _parked_with_reason() -> Iterator[None]:
    try:
        yield
    except (StackError, Unsealed, NotProvided) as error:
        raise Parked(f"The agent may not run as published: {error}") from error
    except ModelUnavailable as error:
        raise Parked(f"The model of the agent cannot be used here: {error}.") from error


def _added(spec: AgentSpec) -> dict[str, Any]:
    try:
        return added_tools(spec.middleware)
    except BadEntry:
        return {}  # the stack says it with every other reason


def _tools_in(stack: Sequence[Any]) -> list[BaseTool]:
    return [tool for made in stack for tool in getattr(made, "tools", ())]


def _chosen(tools: Sequence[BaseTool], names: Iterable[str]) -> list[BaseTool]:
    wanted = set(names)
    return [tool for tool in tools if tool.name in wanted]


def _rule(rules: Mapping[str, Judge], name: str) -> Judge:
    if name not in rules:
        raise Unsealed(f"{name} writes but no rule says who decides")
    return rules[name]


def _model_of(spec: AgentSpec, ref: Model | None) -> Any:
    """None: the agent's own. A bare name of the agent's provider has the agent's address and key."""
    if isinstance(ref, ModelRef):
        return _model(ref.model, ref.base_url, ref.api_key_env, json.dumps(ref.options))
    if ref is None:
        return _model(spec.model, spec.base_url, spec.api_key_env, json.dumps(spec.model_options))
    same = ref.partition(":")[0] == spec.model.partition(":")[0]
    url, key = (spec.base_url, spec.api_key_env) if same else (None, None)
    return _model(ref, url, key, "{}")


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
    missing = sorted(set(tools_of(spec)) - set(all_tools()))
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

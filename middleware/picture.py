"""What a stack really does at each hook: built with stand-ins, then asked class by class. Workers only."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import FakeListChatModel
from langgraph.store.memory import InMemoryStore

from middleware.catalogue import BadEntry, NotProvided, Surroundings, parse
from middleware.entry import HOOKS, Hook
from middleware.policy import SpecMiddleware
from middleware.ports import Args, CallId, Judge, Standing, ToolInfo, Verdict
from middleware.stack import all_facts


def look(spec_middleware: SpecMiddleware, tools: Mapping[str, ToolInfo]) -> list[dict[str, Any]]:
    """One item for each entry, outermost first: {"use", "hooks", "error"}.

    `error`: why this worker cannot build it ("" if it can); then `hooks` is empty. No key and no model is needed.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [_one(entry, spec_middleware, tools, folder) for entry in spec_middleware]


def hooks_of(middleware: Any) -> tuple[Hook, ...]:
    """The hooks that a class has of its own, synchronous or not."""
    kind = type(middleware)
    return tuple(
        hook
        for hook in HOOKS
        if any(getattr(kind, name, None) is not getattr(AgentMiddleware, name) for name in (hook, f"a{hook}"))
    )


def _one(
    spec_entry: Mapping[str, Any], whole: SpecMiddleware, tools: Mapping[str, ToolInfo], folder: str
) -> dict[str, Any]:
    use = str(spec_entry.get("use", ""))
    try:
        entry, options = parse(spec_entry)
        made = entry.build(options, _around(whole, tools, folder))
    except (BadEntry, NotProvided, ImportError, ValueError, TypeError, RuntimeError, OSError) as error:
        return {"use": use, "hooks": [], "error": str(error)[:300]}
    return {"use": use, "hooks": list(hooks_of(made)), "error": ""}


def _around(whole: SpecMiddleware, tools: Mapping[str, ToolInfo], folder: str) -> Surroundings:
    model = FakeListChatModel(responses=["-"], profile={"max_input_tokens": 100_000})
    try:
        known = all_facts(whole, tools)
    except BadEntry:  # the entry that is wrong says so itself
        known = dict(tools)
    return Surroundings(
        tools=known,
        approvals=_NoApprovals(),
        model=lambda _: model,
        make_tools=_nothing,
        seal=lambda tool: tool,
        store=InMemoryStore(),
        spec_middleware=tuple(whole),
        own_tools=tuple(tools),
        thread_id="picture",
        folder=folder,
    )


def _nothing(_: Iterable[str]) -> Sequence[Any]:
    return ()


class _NoApprovals:
    """`Approvals` of a stack that never runs."""

    def verdict(self, call: CallId, tool: str, args: Args, judge: Judge) -> Verdict:
        return judge(args)

    def standing(self, call: CallId) -> Standing | None:
        return None

    def gate_refused(self, call: CallId, tool: str, why: str) -> None:
        return None

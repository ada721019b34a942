"""What an own middleware says about itself. Light."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from middleware.entry import HOOKS, AddedTool, Entry, named
from middleware.options.base import Options

__all__ = ["AddedTool", "Options", "Own", "can_jump_to"]


def can_jump_to[F: Callable[..., Any]](*where: Literal["end", "model", "tools"]) -> Callable[[F], F]:
    """LangChain's `hook_config(can_jump_to=...)` without importing it. Without it a `jump_to` is silently ignored."""

    def mark(hook: F) -> F:
        hook.__can_jump_to__ = list(where)  # type: ignore[attr-defined]
        return hook

    return mark


@dataclass(frozen=True)
class Own:
    """`hooks`: a plain class with one or more of LangChain's six hooks, made with (options, surroundings).

    `state`: private fields that its hooks may return, with their types; they belong to the case and survive pauses.
    `touches`: tools whose calls `wrap_tool_call` may answer, repeat or change: "all" unless it only looks on.
    """

    label: str
    summary: str
    help: str
    options: type[Options]
    hooks: type
    touches: Callable[[Any], frozenset[str] | Literal["all", "none"]] = lambda _: "all"
    adds_tools: Callable[[Any], tuple[AddedTool, ...]] = lambda _: ()
    notes: tuple[str, ...] = ()

    def entry(self, package: str, name: str) -> Entry:
        has = tuple(hook for hook in HOOKS if hasattr(self.hooks, hook))
        if not has and not hasattr(self.hooks, "tools"):
            raise ValueError(f"{package}.{name} has no hook; LangChain knows {', '.join(HOOKS)}")
        return Entry(
            name=name,
            label=self.label,
            family="own",
            summary=self.summary,
            help=self.help,
            options=self.options,
            hooks=has,
            factory=f"middleware.own.building:{package}.{name}",
            title=named(self.hooks.__name__),
            touches=self.touches if "wrap_tool_call" in has else lambda _: "none",
            adds_tools=self.adds_tools,
            notes=self.notes,
            jumps=tuple(unmarked_jumps(self.hooks)),
        )


def unmarked_jumps(hooks: type) -> list[str]:
    """Hooks that speak of `jump_to` but were not marked with `can_jump_to`: LangChain would not jump."""
    spoken: list[str] = []
    for name in HOOKS:
        hook = getattr(hooks, name, None)
        code = getattr(hook, "__code__", None)
        if code and "jump_to" in _constants(code) and not getattr(hook, "__can_jump_to__", None):
            spoken.append(name)
    return spoken


def _constants(code: Any) -> set[str]:
    found: set[str] = set()
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, tuple):
            found |= {part for part in constant if isinstance(part, str)}
        elif hasattr(constant, "co_consts"):
            found |= _constants(constant)
    return found

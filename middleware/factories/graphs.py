"""Compiled graphs by name, for sub-agents that are more than a prompt. A package registers its own when imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from middleware.entry import NotProvided

type Make = Callable[[], Any]


def _echo() -> Any:
    """Answers with the task it was given: for trying things out."""
    from langchain_core.messages import AIMessage  # noqa: PLC0415 - slow
    from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: PLC0415 - slow

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"The task was: {state['messages'][-1].text}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile()


_GRAPHS: dict[str, Make] = {"echo": _echo}


def register_graph(name: str, make: Make) -> None:
    """`make()` gives a compiled graph whose state has "messages". Raises `ValueError` if the name is taken."""
    if _GRAPHS.setdefault(name, make) is not make:
        raise ValueError(f"the graph {name} is taken")


def graph(name: str) -> Any:
    if name not in _GRAPHS:
        raise NotProvided(f"there is no graph {name!r}; known are {', '.join(sorted(_GRAPHS)) or 'none'}")
    return _GRAPHS[name]()

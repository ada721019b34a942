"""What `manage.py new_middleware` writes. Light."""

from __future__ import annotations

MODULE = '''"""{label}: say here what it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from middleware.own.base import Options, Own, can_jump_to

if TYPE_CHECKING:  # the web process reads this file too and must not load LangChain
    from middleware.entry import Surroundings


class {kind}Options(Options):
    """What may stand beside "use": "{name}" in a spec."""

    most_calls: int = Field(default=50, ge=1, description="Tool calls of one case; then the run ends.")


class {kind}:
    """Delete the hooks you do not need. An own field of the state is private to the case and survives pauses.

    before_agent, after_agent    once for each message of the case
    before_model, after_model    at every model call; they return changes of the state, or None
    wrap_model_call              around every model call: `handler(request)` makes it
    wrap_tool_call               around every tool call: `handler(request)` makes it; call it once, or answer instead
    """

    state: ClassVar[dict[str, Any]] = {{"{name}_calls": int}}

    def __init__(self, options: {kind}Options, around: Surroundings) -> None:
        super().__init__()
        self.options = options

    @can_jump_to("end")
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if state.get("{name}_calls", 0) < self.options.most_calls:
            return None
        from langchain_core.messages import AIMessage  # noqa: PLC0415 - only in a worker

        return {{"messages": [AIMessage("Stopped: too many tool calls.")], "jump_to": "end"}}

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        calls = len(getattr(state["messages"][-1], "tool_calls", ()))
        return {{"{name}_calls": state.get("{name}_calls", 0) + calls}}

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)


OWN = Own(
    label="{label}",
    summary="One sentence for the list of the catalogue.",
    help="One paragraph: what it does, when one wants it, and where it stands in the list.",
    options={kind}Options,
    hooks={kind},
    touches=lambda options: "none",  # it only looks on; "all" if it answers, repeats or changes calls
    notes=("One sentence for each trap.",),
)
'''

TEST = '''"""{label}, alone: a made-up request and a handler that counts."""

from __future__ import annotations

from types import SimpleNamespace

from {package}.{name} import OWN, {kind}, {kind}Options
from tests.unit.middleware.stacks import around


def made(**options: object) -> {kind}:
    return {kind}({kind}Options(**options), around())


def test_the_handler_is_called_once_and_its_answer_is_the_answer():
    calls = []
    assert made().wrap_tool_call("request", lambda request: calls.append(request) or "answer") == "answer"
    assert calls == ["request"]


def test_calls_are_counted_and_the_limit_ends_the_run():
    hook, state = made(most_calls=2), {{"messages": [SimpleNamespace(tool_calls=[1, 2])]}}
    assert hook.before_model(state, None) is None
    state |= hook.after_model(state, None)
    assert state["{name}_calls"] == 2
    assert hook.before_model(state, None)["jump_to"] == "end"


def test_it_is_an_entry_of_the_catalogue():
    entry = OWN.entry("{package}", "{name}")
    assert entry.hooks == ("before_model", "after_model", "wrap_tool_call")
    built = entry.build(entry.options(), around())
    assert built.name == "{kind}"
'''


def names(name: str) -> dict[str, str]:
    """What the two texts above are filled with."""
    words = name.split("_")
    return {"name": name, "kind": "".join(map(str.capitalize, words)), "label": " ".join(words).capitalize()}

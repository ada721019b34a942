"""All six hooks, each writing its name into the file that `log` names; `stop_at` ends the run before that model call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from middleware.own.base import Options, Own, can_jump_to

if TYPE_CHECKING:
    from middleware.entry import Surroundings


class SixOptions(Options):
    log: str
    stop_at: int = 99
    refuse: str = ""


class Six:
    state: ClassVar[dict[str, Any]] = {"six_models": int}

    def __init__(self, options: SixOptions, around: Surroundings) -> None:
        super().__init__()
        self.options = options

    def _say(self, what: str) -> None:
        with Path(self.options.log).open("a") as file:
            file.write(f"{self.options.id or 'one'} {what}\n")

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        self._say("before_agent")
        return {"six_models": 0}

    @can_jump_to("end")
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        self._say("before_model")
        if state["six_models"] < self.options.stop_at:
            return None
        from langchain_core.messages import AIMessage

        return {"messages": [AIMessage("stopped by six")], "jump_to": "end"}

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._say("wrap_model_call in")
        answer = handler(request)
        self._say("wrap_model_call out")
        return answer

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        self._say("after_model")
        return {"six_models": state["six_models"] + 1}

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._say("wrap_tool_call in")
        if request.tool_call["name"] == self.options.refuse:
            from langchain_core.messages import ToolMessage

            return ToolMessage("refused by six", tool_call_id=request.tool_call["id"], status="error")
        answer = handler(request)
        self._say("wrap_tool_call out")
        return answer

    def after_agent(self, state: Any, runtime: Any) -> None:
        self._say("after_agent")


OWN = Own(
    label="Six hooks",
    summary="Writes down which hook ran, for tests.",
    help="For tests.",
    options=SixOptions,
    hooks=Six,
    touches=lambda options: "none",
)

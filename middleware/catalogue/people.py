"""Approvals and limits."""

from __future__ import annotations

from middleware.entry import Entry, named
from middleware.options import people as o


def _tool_limit_title(options: o.ToolCallLimitOptions) -> str:
    if options.on_limit == "ask":
        return f"HumanGrantToolLimit[{options.tool_name}]"
    return f"ToolCallLimitMiddleware[{options.tool_name}]" if options.tool_name else "ToolCallLimitMiddleware"


def _model_limit_title(options: o.ModelCallLimitOptions) -> str:
    return "HumanGrantModelLimit" if options.on_limit == "ask" else "ModelCallLimitMiddleware"


ENTRIES = (
    Entry(
        name="human_in_the_loop",
        label="Human in the loop",
        family="people",
        summary="A person approves, edits, rejects or answers calls of the listed tools.",
        help="Pauses before a listed tool runs and shows the call to a person of its queue, who approves it, changes "
        "its arguments, rejects it or answers in its place. The pause survives restarts. List every tool that changes "
        "something, and put this in front of whatever answers, repeats or catches tool calls.",
        options=o.HumanInTheLoopOptions,
        hooks=("after_model", "wrap_tool_call"),
        factory="middleware.factories.people:human_in_the_loop",
        title=named("HumanInTheLoop"),
        touches=lambda options: frozenset(options.interrupt_on),
        notes=(
            "Each call is asked about by itself: LangChain's batched mode can be blocked for good by one bad answer.",
            "A rule is judged once, when the call is first seen. Changing it does not change open questions.",
        ),
    ),
    Entry(
        name="model_call_limit",
        label="Model call limit",
        family="people",
        summary="Limits model calls of a run or case; asks a person for more, or ends.",
        help="Stops an agent that goes round in circles. With on_limit ask it pauses and a person may grant more calls, "
        "never above the hard limit; otherwise the run ends with a sentence or an error. Put it first.",
        options=o.ModelCallLimitOptions,
        hooks=("before_agent", "before_model", "after_model"),
        factory="middleware.factories.people:model_call_limit",
        title=_model_limit_title,
        notes=(
            "Without ask, a run_limit starts again after every pause: LangChain does not keep its count.",
            "Calls for summaries, tool selection, repeats and fallbacks are not counted.",
        ),
    ),
    Entry(
        name="tool_call_limit",
        label="Tool call limit",
        family="people",
        summary="Limits calls of one tool or of all; asks a person for more, or ends.",
        help="Counts calls as the model proposes them, rejected and failed ones too. With on_limit ask a person is asked "
        "once per turn for all calls above the limit, before anybody is asked to approve one of them. Otherwise the "
        "calls above it are answered with an error, or the run ends.",
        options=o.ToolCallLimitOptions,
        hooks=("before_agent", "after_model"),
        factory="middleware.factories.people:tool_call_limit",
        title=_tool_limit_title,
        names_tools=lambda options: (options.tool_name,) if options.tool_name else (),
        notes=(
            "Without ask, a run_limit starts again after every pause: LangChain does not keep its count.",
        ),
    ),
    Entry(
        name="spend_limit",
        label="Spending limit",
        family="people",
        summary="Limits tokens, or money by price; asks a person for more.",
        help="Adds up the tokens that the model reports, or what they cost at the prices given here. At the limit it "
        "pauses before the next model call and a person may grant more, never above the hard limit.",
        options=o.SpendLimitOptions,
        hooks=("before_agent", "before_model", "after_model"),
        factory="middleware.factories.people:spend_limit",
        title=named("SpendLimit"),
        notes=(
            "Only what the agent's own model calls report is counted, and only after each call: one call can go over.",
        ),
    ),
    Entry(
        name="repeat_guard",
        label="Repeat guard",
        family="people",
        summary="A call that people have just refused is not put before them again.",
        help="When the model proposes the very same call again after it was rejected, expired or withdrawn in this run, "
        "no second card is opened: the model reads that the answer stands. Put it directly in front of human in the "
        "loop.",
        options=o.RepeatGuardOptions,
        hooks=("wrap_tool_call",),
        factory="middleware.factories.people:repeat_guard",
        title=named("RepeatGuard"),
        names_tools=lambda options: options.tools,
        notes=("It compares whole arguments of the same run: a changed amount is a new proposal.",),
    ),
)

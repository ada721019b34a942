"""What stands around tool calls."""

from __future__ import annotations

from middleware.entry import Entry, named
from middleware.options import tools as o

ENTRIES = (
    Entry(
        name="tool_error",
        label="Tool errors",
        family="tools",
        summary="Tells the model that a read failed, instead of failing the run.",
        help="An exception of a listed tool becomes a message that the model can answer: it may try again or say that "
        "the information is not there. Only reads may be listed. Put it behind human in the loop and in front of tool "
        "retry.",
        options=o.ToolErrorOptions,
        hooks=("wrap_tool_call",),
        factory="middleware.factories.tools:tool_error",
        title=named("ReadErrors"),
        touches=lambda options: frozenset(options.tools),
        notes=(
            "An exception of a write does not say that nothing happened, so it is never turned into a message.",
        ),
    ),
    Entry(
        name="write_guard",
        label="Write guard",
        family="tools",
        summary="Refuses tools that are not known and writes that do not carry the approval gate.",
        help="The last look before a tool runs. Every agent has it. Put it behind everything that may answer or change "
        "a call; only repeats of reads stand inside.",
        options=o.WriteGuardOptions,
        hooks=("wrap_tool_call",),
        factory="middleware.factories.tools:write_guard",
        title=named("WriteGuard"),
        touches=lambda _: "all",
    ),
    Entry(
        name="tool_retry",
        label="Tool retry",
        family="tools",
        summary="Repeats reads that failed, with growing pauses.",
        help="For short failures of a system that is only read. Writes cannot be listed: a repeated write may happen "
        "twice. Put it innermost.",
        options=o.ToolRetryOptions,
        hooks=("wrap_tool_call",),
        factory="middleware.factories.tools:tool_retry",
        title=named("ToolRetryMiddleware"),
        touches=lambda options: frozenset(options.tools),
        notes=("When all repeats fail the exception goes on: list the same tools in tool errors, outside.",),
    ),
    Entry(
        name="llm_tool_emulator",
        label="Tool emulator",
        family="tools",
        summary="A model makes up what tools answer: for trying an agent out.",
        help="The listed tools, or all, are not run: a model writes a likely answer. For the test bench and for drafts. "
        "An agent with a real write should not have it.",
        options=o.LlmToolEmulatorOptions,
        hooks=("wrap_tool_call",),
        factory="middleware.factories.tools:llm_tool_emulator",
        title=named("LLMToolEmulator"),
        touches=lambda options: "all" if options.tools is None else frozenset(options.tools),
        models=lambda options: (options.model,) if options.model else (),
        notes=("Answers are invented: nothing was read and nothing was changed.",),
    ),
    Entry(
        name="role_tools",
        label="Tools by role",
        family="tools",
        summary="The model sees, and may call, only what the requester's roles allow.",
        help="A listed tool is offered to the model only if the person who opened the case has one of its roles. A call "
        "that comes all the same is refused before anybody is asked: the look before the call is the boundary, the "
        "shorter list only saves mistakes.",
        options=o.RoleToolsOptions,
        hooks=("wrap_model_call", "wrap_tool_call"),
        factory="middleware.factories.tools:role_tools",
        title=named("RoleTools"),
        names_tools=lambda options: options.allow,
        notes=(
            "Roles are read each time a run is driven: a role that was taken away counts at the next step.",
        ),
    ),
    Entry(
        name="observer",
        label="Observer",
        family="tools",
        summary="Times and counts of every model and tool call, in the log and in the state.",
        help="Notes when the run began and ended, how long each call took, and what was answered without running. It "
        "writes names, times and counts only, never arguments, results or texts. Put it first to see everything.",
        options=o.ObserverOptions,
        hooks=("before_agent", "wrap_model_call", "wrap_tool_call", "after_agent"),
        factory="middleware.factories.tools:observer",
        title=named("Observer"),
        notes=("The time of a call that pauses for a person is that of its last part.",),
    ),
)

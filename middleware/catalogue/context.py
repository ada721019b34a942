"""What keeps the conversation small and the agent on its plan."""

from __future__ import annotations

from middleware.entry import AddedTool, Entry, named
from middleware.options import context as o

ENTRIES = (
    Entry(
        name="summarization",
        label="Summarization",
        family="context",
        summary="Replaces old messages by a summary when the conversation grows long.",
        help="When one of the triggers is reached, older messages are replaced by a summary that a model writes; the "
        "newest stay as they are. For long cases. Personal data should be masked before it is summed up.",
        options=o.SummarizationOptions,
        hooks=("before_model",),
        factory="middleware.factories.context:summarization",
        title=named("SummarizationMiddleware"),
        models=lambda options: tuple(m for m in (options.model, options.summarizer) if m),
        notes=(
            "The old messages leave the conversation; the case's timeline and older checkpoints keep them.",
            "A fraction needs a model whose size is known; with any other the run cannot start.",
            "If the summary fails three times the run fails.",
        ),
    ),
    Entry(
        name="context_editing",
        label="Context editing",
        family="context",
        summary="Leaves out old tool results when a request grows large.",
        help="Above a number of tokens, results of older tool calls are replaced by a short mark in what the model is "
        "sent. The stored conversation keeps them.",
        options=o.ContextEditingOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.context:context_editing",
        title=named("ContextEditingMiddleware"),
        names_tools=lambda options: [name for edit in options.edits for name in edit.exclude_tools],
        notes=("A provider's cache of the conversation is lost whenever something is cleared.",),
    ),
    Entry(
        name="todo_list",
        label="To-do list",
        family="context",
        summary="Gives the agent a list of steps to write and tick off.",
        help="Adds the tool write_todos and a word on how to use it. For work of many steps; people can follow the list.",
        options=o.TodoListOptions,
        hooks=("wrap_model_call", "after_model"),
        factory="middleware.factories.context:todo_list",
        title=named("TodoListMiddleware"),
        adds_tools=lambda _: (AddedTool("write_todos", "read"),),
        notes=("Two calls of write_todos in one turn are both refused: each replaces the whole list.",),
    ),
)

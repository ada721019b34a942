"""What keeps the conversation small and the agent on its plan."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
)

from middleware.entry import Surroundings
from middleware.factories.naming import Middleware, given, with_id
from middleware.options import context as o

BY_MODEL = "model"


def summarization(options: o.SummarizationOptions, around: Surroundings) -> Middleware:
    model = around.model(options.model)
    more: Any = given(
        summary_prompt=options.summary_prompt,
        summarizer=around.model(options.summarizer) if options.summarizer else None,
        token_counter=model.get_num_tokens_from_messages if options.token_counter == BY_MODEL else None,
    )
    summary = SummarizationMiddleware(
        model,
        trigger=[_clause(clause) for clause in options.trigger],
        keep=o.checked(*options.keep),  # type: ignore[arg-type]
        trim_tokens_to_summarize=options.trim_tokens_to_summarize,
        **more,
    )
    return with_id(summary, options)


def _clause(clause: o.Clause) -> Any:
    """LangChain wants tuples, and whole numbers where they are meant."""
    if isinstance(clause, dict):
        return dict(o.checked(kind, number) for kind, number in clause.items())
    return o.checked(*clause)


def context_editing(options: o.ContextEditingOptions, _: Surroundings) -> Middleware:
    edits = [ClearToolUsesEdit(**edit.model_dump(exclude={"use"})) for edit in options.edits]
    editing = ContextEditingMiddleware(edits=edits, token_count_method=options.token_count_method)
    return with_id(editing, options)


def todo_list(options: o.TodoListOptions, _: Surroundings) -> Middleware:
    told: Any = given(system_prompt=options.system_prompt, tool_description=options.tool_description)
    return with_id(TodoListMiddleware(**told), options)

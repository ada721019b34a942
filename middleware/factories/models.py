"""What stands around the model."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import (
    LLMToolSelectorMiddleware,
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ModelRetryMiddleware,
    ProviderToolSearchMiddleware,
)

from middleware.entry import Surroundings
from middleware.factories.failures import WORDS, judge_of
from middleware.factories.naming import Middleware, given, with_id
from middleware.options import models as o
from middleware.prompts import CasePrompt


def model_fallback(options: o.ModelFallbackOptions, around: Surroundings) -> Middleware:
    return with_id(ModelFallbackMiddleware(*map(around.model, options.models)), options)


def model_retry(options: o.ModelRetryOptions, _: Surroundings) -> Middleware:
    failure: Any = options.on_failure
    retry = ModelRetryMiddleware(
        max_retries=options.max_retries,
        retry_on=judge_of(options.retry_on),
        on_failure=WORDS.get(failure, failure),
        backoff_factor=options.backoff_factor,
        initial_delay=options.initial_delay,
        max_delay=options.max_delay,
        jitter=options.jitter,
    )
    return with_id(retry, options)


def model_refusal(options: o.ModelRefusalOptions, _: Surroundings) -> Middleware:
    return with_id(ModelRefusalMiddleware(), options)


def provider_tool_search(options: o.ProviderToolSearchOptions, _: Surroundings) -> Middleware:
    return with_id(ProviderToolSearchMiddleware(searchable_tools=list(options.searchable_tools)), options)


def llm_tool_selector(options: o.LlmToolSelectorOptions, around: Surroundings) -> Middleware:
    failure = options.on_parsing_failure
    selector = LLMToolSelectorMiddleware(
        model=around.model(options.model) if options.model else None,
        max_tools=options.max_tools,
        always_include=list(options.always_include),
        max_retries=options.max_retries,
        on_parsing_failure=list(failure) if isinstance(failure, tuple) else failure,
        **given(system_prompt=options.system_prompt),
    )
    return with_id(selector, options)


def dynamic_prompt(options: o.DynamicPromptOptions, around: Surroundings) -> Middleware:
    return with_id(CasePrompt(options.lines, options.for_roles, around.context), options)

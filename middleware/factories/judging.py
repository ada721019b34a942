"""Middleware that asks a judging model: risk of a call, route of a run."""

from __future__ import annotations

import os
import warnings
from typing import Any

from langchain.agents.middleware import AutoModeMiddleware, ModelChoice, ModelRouterMiddleware
from langchain_core._api import LangChainBetaWarning
from langchain_core.decisions import NoulCriteria

from middleware.decisions import ChatDecisions
from middleware.entry import NotProvided, Surroundings
from middleware.factories.naming import Middleware, given, with_id
from middleware.options import models as o
from middleware.options.base import ModelRef


def auto_mode(options: o.AutoModeOptions, around: Surroundings) -> Middleware:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)
        return with_id(_auto_mode(options, around), options)


def _auto_mode(options: o.AutoModeOptions, around: Surroundings) -> Middleware:
    tools = list(options.tools)
    if options.classifier.use == "openai_decisions":
        from langchain_openai.middleware import OpenAIAutoModeMiddleware  # noqa: PLC0415 - an optional package

        told: Any = given(instructions=_whole(options))
        return OpenAIAutoModeMiddleware(tools=tools, model=_openai(options.classifier), **told)
    criteria = None
    if options.risky_when or options.safe_when:
        criteria = NoulCriteria(true=options.risky_when, false=options.safe_when)
    more: Any = given(instructions=options.instructions, criteria=criteria)
    judge = ChatDecisions.of(around.model(options.classifier.model), options.classifier.model)
    return AutoModeMiddleware(tools=tools, classifier=judge, **more)


def _whole(options: o.AutoModeOptions) -> str | None:
    """OpenAI's takes one text."""
    parts = [options.instructions]
    parts += [f"Answer yes if: {options.risky_when}"] if options.risky_when else []
    parts += [f"Answer no if: {options.safe_when}"] if options.safe_when else []
    return "\n".join(part for part in parts if part) or None


def _openai(classifier: o.Classifier) -> Any:
    from langchain_openai.decisions import OpenAIDecisions  # noqa: PLC0415 - an optional package

    found = classifier.model
    ref = ModelRef(model=found) if isinstance(found, str) else found
    key = os.environ.get(ref.api_key_env) if ref.api_key_env else None
    if ref.api_key_env and not key:
        raise NotProvided(f"{ref.model} needs the key in {ref.api_key_env}, which is empty here")
    where: Any = given(base_url=ref.base_url, api_key=key)
    return OpenAIDecisions(model=ref.model.removeprefix("openai:"), **where)


def model_router(options: o.ModelRouterOptions, around: Surroundings) -> Middleware:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)
        return with_id(_model_router(options, around), options)


def _model_router(options: o.ModelRouterOptions, around: Surroundings) -> Middleware:
    choices = {
        name: (around.model(choice.model), choice.criteria) for name, choice in options.choices.items()
    }
    if options.classifier.use == "openai_decisions":
        from langchain_openai.middleware import ModelChoice as Route  # noqa: PLC0415 - an optional package
        from langchain_openai.middleware import OpenAIModelRouterMiddleware  # noqa: PLC0415

        return OpenAIModelRouterMiddleware(
            choices={name: Route(model, why) for name, (model, why) in choices.items()},
            instructions=options.instructions,
            model=_openai(options.classifier),
        )
    return ModelRouterMiddleware(
        choices={name: ModelChoice(model, why) for name, (model, why) in choices.items()},
        instructions=options.instructions,
        classifier=ChatDecisions.of(around.model(options.classifier.model), options.classifier.model),
    )

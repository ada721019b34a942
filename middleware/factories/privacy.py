"""What looks for personal data and unwanted text."""

from __future__ import annotations

import os
from typing import Any

from langchain.agents.middleware import PIIMiddleware, RedactionRule

from middleware.detectors import DETECTORS
from middleware.entry import Surroundings
from middleware.factories.naming import Middleware, with_id
from middleware.options import privacy as o
from middleware.options.base import Detector


def detector_of(detector: str | Detector | None) -> Any:
    return DETECTORS[detector.use] if isinstance(detector, Detector) else detector


def pii(options: o.PiiOptions, _: Surroundings) -> Middleware:
    return PIIMiddleware(
        options.pii_type,
        strategy=options.strategy,
        detector=detector_of(options.detector),
        apply_to_input=options.apply_to_input,
        apply_to_output=options.apply_to_output,
        apply_to_tool_results=options.apply_to_tool_results,
    )


def redaction(rule: o.RedactionRule) -> RedactionRule:
    return RedactionRule(rule.pii_type, rule.strategy, detector_of(rule.detector))


def openai_moderation(options: o.OpenaiModerationOptions, _: Surroundings) -> Middleware:
    from langchain_openai.middleware import OpenAIModerationMiddleware  # noqa: PLC0415 - an optional package
    from openai import OpenAI  # noqa: PLC0415 - an optional package

    key = os.environ.get(options.api_key_env)
    client = (
        OpenAI(base_url=options.base_url, api_key=key) if key else None
    )  # without: it fails when it is used
    moderation = OpenAIModerationMiddleware(
        model=options.model,
        check_input=options.check_input,
        check_output=options.check_output,
        check_tool_results=options.check_tool_results,
        exit_behavior=options.exit_behavior,
        violation_message=options.violation_message,
        client=client,
    )
    return with_id(moderation, options)

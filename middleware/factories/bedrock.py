"""What works with Amazon Bedrock only."""

from __future__ import annotations

from langchain_aws.middleware import BedrockPromptCachingMiddleware

from middleware.entry import Surroundings
from middleware.factories.naming import Middleware, with_id
from middleware.options import providers as o


def prompt_caching(options: o.PromptCachingOptions, _: Surroundings) -> Middleware:
    caching = BedrockPromptCachingMiddleware(
        type=options.type,
        ttl=options.ttl,
        min_messages_to_cache=options.min_messages_to_cache,
        unsupported_model_behavior=options.unsupported_model_behavior,
    )
    return with_id(caching, options)

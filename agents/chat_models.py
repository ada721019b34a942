"""From the model string of a spec to a chat model. LangChain's providers are imported only when one is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from pydantic import SecretStr

DEMO = "demo:"
TEST_MODELS_ENV = (
    "COUNTERSEAL_TEST_MODELS"  # modules, separated by commas, that call `register` when imported
)

type Factory = Callable[[Mapping[str, Any]], BaseChatModel]


class ModelUnavailable(ValueError):
    """The model of this agent cannot be used here; the text says what is missing."""


def _refunds(options: Mapping[str, Any]) -> BaseChatModel:
    from agents.refunds.demo_model import RefundsDemo  # noqa: PLC0415 - slow import

    return RefundsDemo(**options)


_REGISTRY: dict[str, Factory] = {"refunds": _refunds}


def register(name: str, factory: Factory) -> None:
    """Make `demo:<name>` known. Raises `ValueError` if another factory has the name."""
    if _REGISTRY.setdefault(name, factory) is not factory:
        raise ValueError(f"demo:{name} is taken")


def build_chat_model(
    model: str,
    base_url: str | None = None,
    api_key_env: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> BaseChatModel:
    """`model`: "demo:<name>" or what `init_chat_model` takes ("openai:gpt-5.4"). Raises `ModelUnavailable`."""
    if model.startswith(DEMO):
        return _demo(model.removeprefix(DEMO), options or {})
    given = dict(options or {})
    if base_url:
        given["base_url"] = base_url
    if api_key_env:
        key = os.environ.get(api_key_env)
        if not key:
            raise ModelUnavailable(
                f"{model} needs its key in the environment variable {api_key_env}, which is empty"
            )
        given["api_key"] = key
    return _provider(model, given)


def _demo(name: str, options: Mapping[str, Any]) -> BaseChatModel:
    for module in filter(None, (part.strip() for part in os.environ.get(TEST_MODELS_ENV, "").split(","))):
        import_module(module)
    if name not in _REGISTRY:
        raise ModelUnavailable(f"there is no model demo:{name}; known are {', '.join(sorted(_REGISTRY))}")
    return _REGISTRY[name](options)


def _provider(model: str, options: Mapping[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow import

    try:
        built = init_chat_model(model, **options)
    except ImportError as error:  # LangChain's text names the package to install
        raise ModelUnavailable(f"{model}: {error}") from error
    except _refusals() as error:  # unknown provider, missing key, refused option
        raise ModelUnavailable(f"{model}: {error}") from error
    if not isinstance(built, BaseChatModel):
        raise ModelUnavailable(f"{model} leaves the model open; name one")
    _complete(model, built)
    return built


def _refusals() -> tuple[type[Exception], ...]:
    """What a provider's package raises when it cannot be set up; OpenAI's has a class of its own for a missing key."""
    openai = sys.modules.get("openai")
    return (ValueError, openai.OpenAIError) if openai else (ValueError,)


def _complete(model: str, built: BaseChatModel) -> None:
    """What the provider's class leaves open, or finds out only when it is called."""
    if getattr(built, "stream_usage", True) is None:
        # OpenAI's class counts no tokens on a `base_url` unless told to; `model_options` can say False.
        built.stream_usage = True  # type: ignore[attr-defined]
    key = getattr(built, "anthropic_api_key", None)
    if isinstance(key, SecretStr) and not key.get_secret_value():
        raise ModelUnavailable(
            f"{model} needs its key in the environment variable ANTHROPIC_API_KEY, which is empty"
        )

"""What stands around the model."""

from __future__ import annotations

from middleware.entry import Entry, named
from middleware.options import models as o
from middleware.options.base import Model


def _classifier(options: o.AutoModeOptions | o.ModelRouterOptions) -> tuple[Model, ...]:
    return (options.classifier.model,) if options.classifier.use == "chat" else ()


ENTRIES = (
    Entry(
        name="model_fallback",
        label="Model fallback",
        family="models",
        summary="Tries other models in order when the model fails.",
        help="If a call of the agent's model raises an error, the same request goes to the next model of the list. "
        "The first one is tried again at every call. Put it outside model retry, so that repeats come before the "
        "change, and outside anything that prepares the request for one provider.",
        options=o.ModelFallbackOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.models:model_fallback",
        title=named("ModelFallbackMiddleware"),
        models=lambda options: options.models,
        notes=("An outer prompt caching does not mark the fallback's request: put caching inside.",),
    ),
    Entry(
        name="model_retry",
        label="Model retry",
        family="models",
        summary="Repeats model calls that failed, with growing pauses.",
        help="For limits of speed and short failures of a provider. Only errors that pass by themselves are worth "
        "repeating; the default does that. When all repeats are used up the run fails and can be tried again.",
        options=o.ModelRetryOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.models:model_retry",
        title=named("ModelRetryMiddleware"),
        notes=(
            "With on_failure other than error, a failed run ends as if the error text were the answer.",
            "A worker waits during the pauses: keep them short.",
        ),
    ),
    Entry(
        name="model_refusal",
        label="Model refusal",
        family="models",
        summary="Turns a refusal of the model into an error, so that a fallback can take over.",
        help="Some providers answer with a marked refusal. Without this it counts as the answer of the run. List it "
        "behind model fallback.",
        options=o.ModelRefusalOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.models:model_refusal",
        title=named("ModelRefusalMiddleware"),
        notes=("A refusal in plain words is not recognised. Streamed text may have been seen already.",),
    ),
    Entry(
        name="model_router",
        label="Model router",
        family="models",
        summary="A judging model picks the model for each run.",
        help="Before the run begins, the newest message is judged once and one of the listed models is chosen for all "
        "of its calls: a small one for simple wishes, a large one for hard ones. If the judge fails, the run fails.",
        options=o.ModelRouterOptions,
        hooks=("before_agent", "wrap_model_call"),
        factory="middleware.factories.judging:model_router",
        title=lambda options: named(
            "ModelRouterMiddleware" if options.classifier.use == "chat" else "OpenAIModelRouterMiddleware"
        )(options),
        models=lambda options: (*(c.model for c in options.choices.values()), *_classifier(options)),
        notes=("Beta in LangChain: its options may change.",),
    ),
    Entry(
        name="llm_tool_selector",
        label="Tool selector",
        family="models",
        summary="A model picks the tools that fit before the main model is asked.",
        help="For agents with many tools: one extra call per model call chooses which of them the main model sees. It "
        "saves tokens and keeps the model on its subject; it is no permission.",
        options=o.LlmToolSelectorOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.models:llm_tool_selector",
        title=named("LLMToolSelectorMiddleware"),
        names_tools=lambda options: (
            *options.always_include,
            *(options.on_parsing_failure if isinstance(options.on_parsing_failure, tuple) else ()),
        ),
        models=lambda options: (options.model,) if options.model else (),
        notes=(
            "The extra calls are not counted by limits.",
            "A tool that is left out can still be called by a model that remembers it: the gate decides, not this.",
        ),
    ),
    Entry(
        name="provider_tool_search",
        label="Provider tool search",
        family="models",
        summary="Tools are loaded by the provider's own search when the model needs them.",
        help="For agents with very many tools on Anthropic or OpenAI: the listed tools are sent as searchable and the "
        "provider shows one to the model when it looks for it.",
        options=o.ProviderToolSearchOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.models:provider_tool_search",
        title=named("ProviderToolSearchMiddleware"),
        names_tools=lambda options: options.searchable_tools,
        notes=("Only Anthropic and OpenAI; with any other model the run fails.",),
    ),
    Entry(
        name="dynamic_prompt",
        label="Dynamic prompt",
        family="models",
        summary="Adds lines about this case and its requester to the system prompt of each call.",
        help="The lines are filled from what staff entered about the case and from the requester's roles. They are added "
        "to each request and never stored, so they do not pile up and always say what is true now.",
        options=o.DynamicPromptOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.models:dynamic_prompt",
        title=named("CasePrompt"),
        notes=("What the model is told is no permission: limits and gates decide.",),
    ),
    Entry(
        name="auto_mode",
        label="Auto mode",
        family="tools",
        summary="A judging model blocks calls that look risky.",
        help="Each call of a listed tool is judged before it runs. A risky one is answered with an error; nobody is "
        "asked. It can stand behind human in the loop as a second pair of eyes, and does not replace it.",
        options=o.AutoModeOptions,
        hooks=("wrap_tool_call",),
        factory="middleware.factories.judging:auto_mode",
        title=lambda options: named(
            "AutoModeMiddleware" if options.classifier.use == "chat" else "OpenAIAutoModeMiddleware"
        )(options),
        touches=lambda options: frozenset(options.tools),
        models=_classifier,
        notes=(
            "Beta in LangChain: its options may change.",
            "It only blocks. A judge that fails also stops the call, with an error.",
        ),
    ),
)

"""What works with one provider only."""

from __future__ import annotations

from middleware.catalogue import files as f
from middleware.entry import AddedTool, Entry, named
from middleware.options import files as fo
from middleware.options import providers as o

CLAUDE = "langchain_anthropic"


def _editor(options: o.AnthropicTextEditorOptions) -> tuple[AddedTool, ...]:
    return (f.TEXT_EDITOR if options.where == "disk" else AddedTool(f.TEXT_EDITOR.name, "read"),)


def _memory(options: o.AnthropicMemoryOptions) -> tuple[AddedTool, ...]:
    return (f.MEMORY if options.where == "disk" else AddedTool(f.MEMORY.name, "read"),)


def _bash(_: fo.AnthropicBashOptions) -> tuple[AddedTool, ...]:
    return (f.shell("bash"),)


def _placed(name: str) -> object:
    return lambda options: named(f"{'State' if options.where == 'state' else 'Filesystem'}{name}")(options)


ENTRIES = (
    Entry(
        name="anthropic_prompt_caching",
        label="Anthropic prompt caching",
        family="providers",
        summary="Lets Claude keep the unchanged beginning of the conversation: cheaper and faster.",
        help="Marks the system prompt, the tools and the end of the conversation for Anthropic's cache. Put it inside "
        "model fallback and behind whatever changes the prompt or the tools.",
        options=o.PromptCachingOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.anthropic:prompt_caching",
        title=named("AnthropicPromptCachingMiddleware"),
        package=CLAUDE,
        install="langchain-anthropic",
        notes=("A prompt that changes at each call, or a tool list that does, leaves nothing to keep.",),
    ),
    Entry(
        name="anthropic_bash",
        label="Anthropic bash",
        family="providers",
        summary="Claude's own bash tool, run by the worker.",
        help="As the shell tool, under the name and in the form that Claude was trained on. Every command is asked about "
        "unless a rule lets it pass.",
        options=fo.AnthropicBashOptions,
        hooks=("before_agent", "wrap_model_call", "after_agent"),
        factory="middleware.factories.anthropic:bash",
        title=named("ClaudeBash"),
        adds_tools=_bash,
        package=CLAUDE,
        install="langchain-anthropic",
        missing=lambda options: f.program_of(options.execution_policy),
        notes=f.SHELL_NOTES,
    ),
    Entry(
        name="anthropic_text_editor",
        label="Anthropic text editor",
        family="providers",
        summary="Claude's own tool for reading and changing text files.",
        help="The files live in the state of the case, or in a folder of the workers' machine; in a folder every call is "
        "asked about unless a rule lets it pass.",
        options=o.AnthropicTextEditorOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.anthropic:text_editor",
        title=_placed("ClaudeTextEditorMiddleware"),  # type: ignore[arg-type]
        adds_tools=_editor,
        package=CLAUDE,
        install="langchain-anthropic",
        notes=("Files in the state are stored again in every checkpoint: keep them small.",),
    ),
    Entry(
        name="anthropic_memory",
        label="Anthropic memory",
        family="providers",
        summary="Claude's own tool for notes under /memories.",
        help="Claude looks there first and writes down what it wants to know later: for this case only, or in a folder "
        "for all cases; in a folder every call is asked about unless a rule lets it pass.",
        options=o.AnthropicMemoryOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.anthropic:memory",
        title=_placed("ClaudeMemoryMiddleware"),  # type: ignore[arg-type]
        adds_tools=_memory,
        package=CLAUDE,
        install="langchain-anthropic",
        notes=("Files in the state are stored again in every checkpoint: keep them small.",),
    ),
    Entry(
        name="anthropic_file_search",
        label="Anthropic file search",
        family="providers",
        summary="Finds files of the text editor or the memory by name or content.",
        help="Adds glob_search and grep_search over the files in the state of the case. It goes with the text editor or "
        "the memory in the state.",
        options=o.AnthropicFileSearchOptions,
        hooks=(),
        factory="middleware.factories.anthropic:file_search",
        title=named("StateFileSearchMiddleware"),
        adds_tools=lambda _: f.SEARCH,
        package=CLAUDE,
        install="langchain-anthropic",
        notes=("Its tools have the names of file search: an agent can have one of the two.",),
    ),
    Entry(
        name="bedrock_prompt_caching",
        label="Bedrock prompt caching",
        family="providers",
        summary="Prompt caching for Claude and Nova models on Amazon Bedrock.",
        help="Puts cache points behind the system prompt, the tools and the conversation. Put it inside model fallback "
        "and behind whatever changes the prompt or the tools.",
        options=o.PromptCachingOptions,
        hooks=("wrap_model_call",),
        factory="middleware.factories.bedrock:prompt_caching",
        title=named("BedrockPromptCachingMiddleware"),
        package="langchain_aws",
        install="langchain-aws",
    ),
)

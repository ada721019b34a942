"""Which test proves which middleware in the whole product. `tests/middleware` checks that each is there. Light."""

from __future__ import annotations

from collections.abc import Mapping

PROOFS: Mapping[str, tuple[str, ...]] = {
    "human_in_the_loop": ("test_people.py::TestHumanInTheLoop", "test_subagents.py"),
    "model_call_limit": ("test_people.py::TestModelCallLimit",),
    "tool_call_limit": ("test_people.py::TestToolCallLimit",),
    "spend_limit": ("test_people.py::TestSpendLimit",),
    "repeat_guard": ("test_people.py::TestRepeatGuard",),
    "model_fallback": ("test_models.py::TestModelFallback",),
    "model_retry": ("test_models.py::TestModelRetry",),
    "model_refusal": ("test_models.py::TestModelRefusal",),
    "model_router": ("test_models.py::TestModelRouter", "test_models.py::TestOpenaiDecisions"),
    "llm_tool_selector": ("test_models.py::TestToolSelector",),
    "provider_tool_search": ("test_models.py::TestProviderToolSearch",),
    "dynamic_prompt": ("test_models.py::TestDynamicPrompt",),
    "auto_mode": ("test_models.py::TestAutoMode", "test_models.py::TestOpenaiDecisions"),
    "tool_error": ("test_tools.py::TestToolError",),
    "write_guard": ("test_tools.py::TestWriteGuard",),
    "tool_retry": ("test_tools.py::TestToolRetry",),
    "llm_tool_emulator": ("test_tools.py::TestToolEmulator",),
    "role_tools": ("test_tools.py::TestToolsByRole",),
    "observer": ("test_tools.py::TestObserver",),
    "summarization": ("test_tools.py::TestSummarization",),
    "context_editing": ("test_tools.py::TestContextEditing",),
    "todo_list": ("test_tools.py::TestTodoList",),
    "pii": ("test_tools.py::TestPii",),
    "openai_moderation": ("test_providers.py::TestOpenaiModeration",),
    "shell_tool": ("test_files.py::TestShell", "test_files.py::TestShellPolicies"),
    "file_search": ("test_files.py::TestFileSearch",),
    "filesystem": ("test_files.py::TestFilesystem",),
    "subagents": ("test_subagents.py",),
    "anthropic_prompt_caching": ("test_providers.py::TestAnthropicPromptCaching",),
    "anthropic_bash": ("test_providers.py::TestAnthropicBash",),
    "anthropic_text_editor": ("test_providers.py::TestAnthropicFiles",),
    "anthropic_memory": ("test_providers.py::TestAnthropicFiles",),
    "anthropic_file_search": ("test_providers.py::TestAnthropicFiles",),
    "bedrock_prompt_caching": ("test_providers.py::TestBedrockPromptCaching",),
}

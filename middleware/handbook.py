"""`docs/middleware.md`, made from the catalogue. Light."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from middleware.catalogue import ENTRIES
from middleware.entry import Entry
from middleware.proofs import PROOFS

FAMILIES = {
    "people": "People and limits",
    "models": "Around the model",
    "tools": "Around tool calls",
    "context": "The conversation",
    "privacy": "Personal data",
    "files": "Tools it brings along",
    "providers": "One provider",
    "own": "Your own",
}

HEAD = """# Middleware

Made from the catalogue by `manage.py agent docs`; the tests check that it is up to date.

An agent's spec lists its middleware, outermost first: `{"use": "tool_retry", "tools": ["lookup_order"]}`. The first of
the list sees a call first and its result last. `before_agent` and `before_model` run from first to last, `wrap_model_call`
and `wrap_tool_call` lie inside each other like the skins of an onion, `after_model` and `after_agent` run from last to
first. For a run of three model calls and two tool calls, `before_agent` and `after_agent` run once, the three hooks of
the model three times, and `wrap_tool_call` twice.

`manage.py agent check spec.json` says what is wrong or doubtful about a list; an error keeps it from being published.
`manage.py new_middleware NAME` makes an own one. LangChain's class names and older option names are accepted when a spec
is imported, with a note of what became of them.

A good order, from the outside to the inside:

1. `observer`, limits (`model_call_limit`, `tool_call_limit`, `spend_limit`)
2. `pii`, then `openai_moderation`, then `summarization`
3. `model_fallback`, `model_refusal`, `model_retry`
4. what changes the prompt or the tools: `dynamic_prompt`, `role_tools`, `todo_list`, `filesystem`, `subagents`,
   `llm_tool_selector`, `context_editing`
5. prompt caching
6. `repeat_guard`, `human_in_the_loop`
7. `auto_mode`, `tool_error`, `llm_tool_emulator`
8. `write_guard`, then `tool_retry`

Tools that a middleware brings and that change anything outside the case (a shell, files that outlive it) carry the same
gate and the same ledger as every other write: they must be listed in `human_in_the_loop`, and a rule may let harmless
calls pass.
"""


def page() -> str:
    parts = [HEAD, *_table()]
    for family, title in FAMILIES.items():
        entries = [entry for entry in ENTRIES.values() if entry.family == family]
        if entries:
            parts.append(f"\n## {title}\n")
            parts += [_section(entry) for entry in entries]
    return "\n".join(parts).rstrip() + "\n"


def _table() -> Iterator[str]:
    """System -> the test that proves it in the whole product."""
    yield "\n## Which test proves what\n"
    yield "In `tests/middleware`. Each publishes a spec and runs it in a real worker on Postgres, every drive in a process"
    yield "of its own; providers are loopback servers that speak the real protocol. Docker and Codex are proved up to the"
    yield "command that would be started. `test_models.py` also counts the hooks and runs the examples of `examples/agents`.\n"
    yield "| middleware | hooks | proved by |"
    yield "|---|---|---|"
    for entry in ENTRIES.values():
        proofs = ", ".join(f"`{proof}`" for proof in PROOFS.get(entry.name, ()))
        yield f"| `{entry.name}` | {', '.join(entry.hooks) or 'tools only'} | {proofs} |"


def _section(entry: Entry) -> str:
    lines = [f"### {entry.label} · `{entry.name}`\n", entry.summary, "", entry.help, ""]
    lines.append(f"Hooks: {', '.join(f'`{hook}`' for hook in entry.hooks) or 'none; it brings tools'}.")
    if entry.package:
        lines.append(f"Package: `{entry.install or entry.package}`.")
    lines += ["", *_options(entry)]
    if entry.notes:
        lines += ["", "Traps:", "", *(f"- {note}" for note in entry.notes)]
    return "\n".join(lines) + "\n"


def _options(entry: Entry) -> Iterator[str]:
    schema = entry.options.model_json_schema()
    fields = {name: field for name, field in schema["properties"].items() if name != "id"}
    if not fields:
        yield "It has no options."
        return
    yield "| option | kind | default | |"
    yield "|---|---|---|---|"
    required = schema.get("required", [])
    for name, field in fields.items():
        default = "required" if name in required else f"`{_short(field.get('default'))}`"
        yield f"| `{name}` | {_kind(field, schema)} | {default} | {_cell(field.get('description', ''))} |"


def _kind(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return _of_ref(str(field["$ref"]), schema)
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    for key in ("anyOf", "oneOf"):
        if key in field:
            kinds = dict.fromkeys(_kind(part, schema) for part in field[key] if part.get("type") != "null")
            return " or ".join(kinds)
    if field.get("type") == "array":
        inner = field.get("items")
        return f"list of {_kind(inner, schema)}" if isinstance(inner, Mapping) and inner else "list"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"name: {_kind(inner, schema)}" if isinstance(inner, Mapping) and inner else "object"
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"}
    return words.get(str(field.get("type")), "any")


def _of_ref(ref: str, schema: Mapping[str, Any]) -> str:
    """What stands in an object of its own, in one line."""
    name = ref.rpartition("/")[2]
    found = schema.get("$defs", {}).get(name, {})
    if found.get("type") != "object":
        return _kind(found, schema)
    fields = found.get("properties", {})
    use = fields.get("use", {})
    said = use.get("const") or use.get("default")
    rest = [f"`{key}`" for key in fields if key != "use"]
    head = f"`{said}`" if said else "object"
    return f"{head} ({', '.join(rest)})" if rest else head


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else "…"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

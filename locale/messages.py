"""Collects every message of the product, and compiles the catalogue. Needs no gettext tools.

python locale/messages.py          # update zh_Hans: new messages are added empty, unused ones are dropped; compile
python locale/messages.py --check  # say what is missing; exit status 1 if anything is
"""

from __future__ import annotations

import ast
import io
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # the file changes only when a message does
KEYWORDS = {name: None for name in ("_", "_t", "gettext", "gettext_lazy", "gettext_noop")} | {
    "ngettext": (1, 2)
}
HOUSES = ("approvals", "agents", "config")

type Message = str | tuple[str, ...]


def messages() -> set[Message]:
    """Every message id; plural ones as (singular, plural)."""
    found: set[Message] = set()
    for house in HOUSES:
        for path in sorted((ROOT / house).rglob("*.py")):
            found |= set(_in_python(path.read_bytes()))
    for path in sorted((ROOT / "templates").rglob("*.html")):
        found |= set(_in_template(path.read_text()))
    return found | set(_in_facts()) | set(_in_middleware())


def _in_python(source: bytes) -> Iterator[Message]:
    for _line, message, _comments, _context in extract("python", io.BytesIO(source), keywords=KEYWORDS):
        if message:
            yield tuple(message) if isinstance(message, tuple) else message


def _in_template(source: str) -> Iterator[Message]:
    from django.utils.translation.template import templatize  # noqa: PLC0415 -- after the set-up below

    lines = (line.strip() for line in templatize(source).splitlines())
    yield from _in_python("\n".join(lines).encode())


def _in_facts() -> Iterator[str]:
    """Names of agents; descriptions of arguments, which are hints in the form of an edit; titles of the demo policy."""
    from agents.catalogue import all_tools, shipped_specs  # noqa: PLC0415 -- after the path is set below
    from examples.shop.policies import POLICIES  # noqa: PLC0415 -- after the path is set below

    yield from (text for spec in shipped_specs() for text in (spec.title, spec.description))
    for entry in POLICIES:
        yield from (entry["title"], *(clause["title"] for clause in entry["clauses"]))

    for facts in all_tools().values():
        if facts.effect != "read":
            yield from (field.description for field in facts.args.model_fields.values() if field.description)


def _in_middleware() -> Iterator[str]:
    """What the catalogue says of each entry, what a lint says, and what became of an older spelling."""
    from agents.catalogue import AgentSpec  # noqa: PLC0415 -- after the path is set below
    from middleware.catalogue import ENTRIES, brought  # noqa: PLC0415
    from middleware.legacy import NOTES, REASONS  # noqa: PLC0415
    from middleware.lints.words import WORDS  # noqa: PLC0415
    from middleware.predicates import PREDICATES  # noqa: PLC0415

    for entry in ENTRIES.values():
        if entry.family != "own":  # the team's own words
            yield from (entry.label, entry.summary, entry.help, *entry.notes)
            yield from _descriptions(entry.options.model_json_schema())
            yield from _names(entry.options.model_json_schema())
    yield from _names(AgentSpec.model_json_schema())
    for predicate in PREDICATES.values():
        yield from _names(predicate.options.model_json_schema())
    for path in sorted((ROOT / "middleware" / "options").glob("*.py")):
        yield from _refusals(path.read_text())
    for tool in brought().values():
        yield from (tool.title, tool.consequence)
        yield from _descriptions(tool.args.model_json_schema() if tool.args else {})
    yield from (text for text in WORDS.values() if text != "%(why)s")
    yield from (*NOTES, *REASONS)


def _names(schema: Any) -> Iterator[str]:
    """Of options, as the form of the agents page labels them."""
    from approvals.argform.fields import humanize  # noqa: PLC0415 -- after the path is set below
    from approvals.optionform.tree import LABELS  # noqa: PLC0415

    if isinstance(schema, list):
        for part in schema:
            yield from _names(part)
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        yield from (humanize(n) for n, part in properties.items() if n not in LABELS and "const" not in part)
        for part in schema.values():
            yield from _names(part)


def _refusals(source: str) -> Iterator[str]:
    """What the options say about each other: `raise ValueError("...")`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from (
                arg.value
                for arg in node.exc.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            )


def _descriptions(schema: Any) -> Iterator[str]:
    """Of fields and of the objects in them."""
    if isinstance(schema, list):
        for part in schema:
            yield from _descriptions(part)
    if isinstance(schema, dict):
        for name, part in schema.items():
            if name == "description" and isinstance(part, str):
                yield part
            else:
                yield from _descriptions(part)


def _setup() -> None:
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django  # noqa: PLC0415 -- after the environment is set

    django.setup()


def read() -> Catalog:
    with CATALOGUE.open("rb") as file:
        return read_po(file, locale="zh_Hans")


def compiled(catalogue: Catalog) -> bytes:
    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def untranslated(catalogue: Catalog) -> list[str]:
    """Messages of the product that the catalogue lacks."""
    known = {m.id if isinstance(m.id, str) else tuple(m.id): m.string for m in catalogue if m.id}
    filled = {key for key, text in known.items() if text and all([text] if isinstance(text, str) else text)}
    return sorted(str(message) for message in messages() if message not in filled)


def update() -> None:
    old = read() if CATALOGUE.exists() else Catalog("zh_Hans")
    fresh = Catalog(
        "zh_Hans", project="Counterseal", version="1", header_comment="# Simplified Chinese of Counterseal.",
        last_translator="Counterseal", language_team="zh_Hans", msgid_bugs_address="-",
        creation_date=EPOCH, revision_date=EPOCH, charset="utf-8", fuzzy=False,
    )  # fmt: skip
    for message in sorted(messages(), key=str):
        known = old.get(message if isinstance(message, str) else message[0])
        fresh.add(message, known.string if known else "")
    CATALOGUE.parent.mkdir(parents=True, exist_ok=True)
    text = io.BytesIO()
    write_po(text, fresh, width=110, no_location=True)
    CATALOGUE.write_bytes(text.getvalue())
    CATALOGUE.with_suffix(".mo").write_bytes(compiled(read()))


if __name__ == "__main__":
    _setup()
    if "--check" in sys.argv:
        missing = untranslated(read())
        sys.stdout.write("\n".join(missing or ["complete"]) + "\n")
        sys.exit(bool(missing))
    update()

"""Checking edited arguments in the web process: schema, locks, the tool's business bounds. In this order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import get_language, gettext
from jsonschema import Draft202012Validator

from agents.canonical import Uncanonical, canonical
from agents.catalogue import Check, CheckUnavailable, known_tools
from approvals import money
from approvals.argform.patch import Change, compare
from approvals.argform.pointer import get
from approvals.argform.schema import classify
from approvals.errors import Invalid
from approvals.models import ApprovalRequest

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


def checked(request: ApprovalRequest, args: object, context: Mapping[str, Any]) -> bytes:
    """Canonical bytes of acceptable arguments. Raises `Invalid` with one sentence per field.

    Fields are named `args/amount`, as in the form. A numeric string ("12.50") becomes the number it spells.
    """
    if not isinstance(args, dict):
        raise Invalid({"args": "Send the edited arguments as a JSON object."})
    args = _numbers(request.args_schema, args)
    changed = list(compare(request.args, args))
    if not changed:
        raise Invalid({"args": "Nothing was changed: approve the call to run it as proposed."})
    errors = (
        _control_errors(changed) | _schema_errors(request.args_schema, args) | _lock_errors(request, args)
    )
    if errors:
        raise Invalid(errors)
    try:
        data = canonical(args)
    except Uncanonical as error:
        raise Invalid({"args": f"These arguments cannot be stored safely: {error}."}) from error
    if problems := _business_errors(request, args, context):
        raise Invalid(problems)
    return data


def _control_errors(changed: list[Change]) -> dict[str, str]:
    """Nobody can see control characters, and some providers cut a text at them: no edit may bring one in."""
    errors = {}
    for change in changed:
        if found := CONTROL.search("".join(_texts(change.new))):
            where = f"args{change.pointer}"
            errors[where] = f"Contains the control character U+{ord(found[0]):04X}: remove it."
    return errors


def _texts(value: object) -> Iterator[str]:
    """Every text in a JSON value, names of fields included."""
    match value:
        case str():
            yield value
        case dict():
            for name, part in value.items():
                yield from (name, *_texts(part))
        case list():
            for part in value:
                yield from _texts(part)


def _numbers(schema: Mapping[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """ "12.50" in a numeric field becomes 12.5; other texts stay and are refused by the schema."""
    fixed = dict(args)
    for name, part in schema.get("properties", {}).items():
        value = fixed.get(name)
        if not isinstance(value, str) or not PLAIN_NUMBER.fullmatch(value):
            continue
        kind = classify(part, dict(schema), None).name
        if kind == "number":
            fixed[name] = float(value) if "." in value else int(value)
        elif kind == "integer" and "." not in value:
            fixed[name] = int(value)
    return fixed


def _schema_errors(schema: Mapping[str, Any], args: Mapping[str, Any]) -> dict[str, str]:
    errors: dict[str, str] = {}
    for error in Draft202012Validator(dict(schema)).iter_errors(args):
        where = "/".join(["args", *(str(part) for part in error.absolute_path)])
        if error.validator == "required":
            for name in set(error.validator_value) - set(error.instance):
                errors[f"{where}/{name}"] = "This field is required."
        elif error.validator == "additionalProperties":
            for name in set(error.instance) - set(error.schema.get("properties", {})):
                errors[f"{where}/{name}"] = "The tool has no such argument: remove it."
        else:
            errors.setdefault(where, _sentence(error.message))
    return errors


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _lock_errors(request: ApprovalRequest, args: dict[str, Any]) -> dict[str, str]:
    proposed = request.args
    return {
        f"args{pointer}": "Locked by a rule: it must stay as proposed. Reject the call to change it."
        for pointer in request.locked
        if list(compare(get(proposed, pointer), get(args, pointer)))
    }


def _business_errors(
    request: ApprovalRequest, args: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, str]:
    facts = known_tools().get(request.tool)
    if facts is None or facts.check is None:
        return {}
    try:
        found = facts.check(args, context)
    except CheckUnavailable as error:
        return {"args": f"{error} Nothing was decided; try again in a moment."}
    return {
        f"args{check.field}": spoken(check)
        for check in found
        if check.level == "fail" and not _was_shown(request, args, check)
    }


def _was_shown(request: ApprovalRequest, args: Mapping[str, Any], check: Check) -> bool:
    """The proposal failed this check as well, in a field that the edit leaves alone: its reader has seen it in red."""
    if not check.field or list(compare(get(request.args, check.field), get(dict(args), check.field))):
        return False
    failed = [(found["text"], found["field"]) for found in request.checks if found["level"] == "fail"]
    return (check.text, check.field) in failed


def spoken(check: Check) -> str:
    """In the language of whoever edits."""
    return gettext(check.text) % money.respoken(check.params, get_language() or "en")


def parsed(data: bytes) -> Any:
    return json.loads(data)


def changes(old: Any, new: Any) -> list[Change]:
    """Every place where two documents differ; 1, 1.0, True and "1" are four different values."""
    return list(compare(old, new))

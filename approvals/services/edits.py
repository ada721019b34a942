"""Checking edited arguments in the web process: schema, locks, the tool's business bounds. In this order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from agents.canonical import Uncanonical, canonical
from agents.catalogue import Check, CheckUnavailable, all_tools
from approvals.argform.patch import Change, compare
from approvals.argform.pointer import get
from approvals.argform.schema import classify
from approvals.errors import Invalid
from approvals.models import ApprovalRequest

PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


def checked(request: ApprovalRequest, args: object, context: Mapping[str, Any]) -> bytes:
    """Canonical bytes of acceptable arguments. Raises `Invalid` with one sentence per field.

    Fields are named `args/amount`, as in the form. A numeric string ("12.50") becomes the number it spells.
    """
    if not isinstance(args, dict):
        raise Invalid({"args": "Send the edited arguments as a JSON object."})
    args = _numbers(request.args_schema, args)
    errors = _schema_errors(request.args_schema, args) | _lock_errors(request, args)
    if errors:
        raise Invalid(errors)
    try:
        data = canonical(args)
    except Uncanonical as error:
        raise Invalid({"args": f"These arguments cannot be stored safely: {error}."}) from error
    if problems := _business_errors(request, args, context):
        raise Invalid(problems)
    return data


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
    facts = all_tools().get(request.tool)
    if facts is None or facts.check is None:
        return {}
    try:
        found = facts.check(args, context)
    except CheckUnavailable as error:
        return {"args": f"{error} Nothing was decided; try again in a moment."}
    return {f"args{check.field}": spoken(check) for check in found if check.level == "fail"}


def spoken(check: Check) -> str:
    return check.text % dict(check.params)


def parsed(data: bytes) -> Any:
    return json.loads(data)


def changes(old: Any, new: Any) -> list[Change]:
    """Every place where two documents differ; 1, 1.0, True and "1" are four different values."""
    return list(compare(old, new))

"""What the schema says about edited arguments, in the reader's words and at the field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator, ValidationError

from approvals.argform.pointer import escape


def schema_errors(schema: Mapping[str, Any], args: Any) -> dict[str, str]:
    """Name of the form control -> sentence with the remedy."""
    found: dict[str, str] = {}
    for error in Draft202012Validator(dict(schema)).iter_errors(args):
        where = "/".join(["args", *(escape(str(part)) for part in error.absolute_path)])
        if error.validator == "required":
            for name in set(error.validator_value) - set(error.instance):
                found[f"{where}/{escape(name)}"] = _("This field is required.")
        elif error.validator == "additionalProperties":
            for name in set(error.instance) - set(error.schema.get("properties", {})):
                found[f"{where}/{escape(name)}"] = _("The tool has no such argument: remove it.")
        else:
            found.setdefault(where, _sentence(error))
    return found


SENTENCES: dict[str, Callable[[Any], str]] = {
    "exclusiveMinimum": lambda limit: _("Enter more than %(limit)s.") % {"limit": limit},
    "minimum": lambda limit: _("Enter at least %(limit)s.") % {"limit": limit},
    "exclusiveMaximum": lambda limit: _("Enter less than %(limit)s.") % {"limit": limit},
    "maximum": lambda limit: _("Enter at most %(limit)s.") % {"limit": limit},
    "maxLength": lambda limit: _("Shorten it to %(limit)s characters.") % {"limit": limit},
    "minLength": lambda _limit: _("Fill in this field."),
    "pattern": lambda pattern: _("It must match the pattern %(pattern)s.") % {"pattern": pattern},
    "enum": lambda _values: _("Pick one of the listed values."),
    "const": lambda _value: _("Pick one of the listed values."),
    "type": lambda kind: (
        _("It must be of the type %(type)s.") % {"type": kind if isinstance(kind, str) else ", ".join(kind)}
    ),
}


def _sentence(error: ValidationError) -> str:
    said = SENTENCES.get(str(error.validator))
    if said is None:
        return _("This value does not fit the tool: %(why)s") % {"why": error.message}
    return said(error.validator_value)

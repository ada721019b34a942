"""Problem documents (RFC 9457) for everything that can go wrong under /api/."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import BadRequest, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from approvals import errors
from approvals.access import Hidden
from approvals.actors import Actor
from approvals.models import ApprovalRequest
from approvals.services import refusals

log = logging.getLogger("counterseal.api")

type FieldErrors = Sequence[Mapping[str, str]]

TITLES: Final = {
    "unauthorized": "Not signed in",
    "token-in-url": "Token in the address",
    "csrf": "CSRF token missing or wrong",
    "scope": "The token may not do this",
    "not-allowed": "Not allowed",
    "not-found": "Not found",
    "method-not-allowed": "Method not allowed",
    "malformed": "Malformed request",
    "media-type": "Unsupported media type",
    "too-large": "Too large",
    "invalid": "Invalid input",
    "already-decided": "Already decided",
    "key-reused": "Idempotency key used before",
    "pending": "A decision is pending",
    "not-publishable": "Must not be published",
    "too-late": "Too late",
    "too-many": "Too many attempts",
    "unavailable": "Temporarily unavailable",
    "internal": "Internal error",
}

SCHEMA: Final = {  # for the OpenAPI document
    "title": "Problem",
    "description": "RFC 9457. A 409 of a decision also says request_status, decided_by, decided_at and rev.",
    "type": "object",
    "required": ["type", "title", "status", "detail", "instance"],
    "properties": {
        "type": {"type": "string", "enum": [f"urn:counterseal:problem:{kind}" for kind in TITLES]},
        "title": {"type": "string"},
        "status": {"type": "integer", "description": "The HTTP status."},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {
                    "field": {"type": "string", "description": "For example args/amount."},
                    "message": {"type": "string"},
                },
            },
        },
        "request_status": {"type": "string"},
        "decided_by": {"type": ["string", "null"]},
        "decided_at": {"type": ["string", "null"], "format": "date-time"},
        "rev": {"type": "integer"},
    },
}

# Reasons of `access.why_not_decide` and rights of `access.require`, in words for the caller.
REASONS: Final = {
    "queue": "Only members of this request's queue decide it.",
    "own_case": "You opened this case or wrote in it, so another person must decide it.",
    "approver": "You approved this call; above this amount another person says what became of it.",
    "open_case": "Your account may not open cases: ask an administrator for a role.",
    "see_audit": "Only administrators and auditors read the audit trail.",
    "see_work": "Your account has no role yet: ask an administrator.",
    "write": "You may not change this case.",
    "set_up": "Only administrators set up agents.",
    "withdraw": "You may not withdraw this request.",
    "cancel": "You may not stop this run.",
}


class Problem(Exception):
    """An answer that is an error: raised anywhere below an operation."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        field_errors: FieldErrors = (),
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail
        self.field_errors, self.more, self.headers = list(field_errors), dict(more or {}), dict(headers or {})


def respond(request: HttpRequest, problem: Problem) -> HttpResponse:
    body = {
        "type": f"urn:counterseal:problem:{problem.kind}",
        "title": TITLES[problem.kind],
        "status": problem.status,
        "detail": problem.detail,
        "instance": request.path,
        **({"errors": problem.field_errors} if problem.field_errors else {}),
        **problem.more,
    }
    response = HttpResponse(json.dumps(body), status=problem.status, content_type="application/problem+json")
    for name, value in problem.headers.items():
        response[name] = value
    return response


def unauthorized(detail: str) -> Problem:
    headers = {"WWW-Authenticate": 'Bearer realm="counterseal"'}
    return Problem(401, "unauthorized", detail, headers=headers)


def not_found(request: HttpRequest, **_: object) -> HttpResponse:
    """The view of every address under /api/ that does not exist."""
    detail = "There is nothing at this address: see /api/v1/openapi.json for what there is."
    return respond(request, Problem(404, "not-found", detail))


def not_allowed(request: HttpRequest, allowed: str) -> HttpResponse:
    detail = f"{request.method} is not possible here; allowed: {allowed}."
    return respond(request, Problem(405, "method-not-allowed", detail, headers={"Allow": allowed}))


def install(api: NinjaAPI) -> None:
    """Register a handler for every exception that operations, authentication and parsing raise."""
    table: dict[type[Exception], Callable[[HttpRequest, Any], Problem]] = {
        Problem: lambda _request, error: error,
        Hidden: _refused,
        errors.NotAllowed: _refused,
        errors.Invalid: lambda _request, error: invalid(renamed(error.errors)),
        errors.AlreadyClosed: lambda _request, error: already_closed(error.request),
        errors.KeyReused: lambda _request, error: Problem(409, "key-reused", str(error)),
        errors.Pending: lambda _request, error: Problem(409, "pending", str(error)),
        errors.NotPublishable: _not_publishable,
        errors.TooLate: lambda _request, error: Problem(
            409, "too-late", str(error) or "Too late: it has ended already."
        ),
        ValidationError: lambda _request, error: invalid(_from_pydantic(error.errors)),
        AuthenticationError: lambda _request, _error: unauthorized(
            "Sign in, or send a token: `Authorization: Bearer cseal_...`."
        ),
        HttpError: _http_error,
        BadRequest: lambda _request, _error: Problem(400, "malformed", "The request could not be read."),
        RequestDataTooBig: lambda _request, _error: too_large(),
        Http404: lambda _request, _error: Problem(404, "not-found", "There is no such object."),
        OperationalError: _unavailable,
        InterfaceError: _unavailable,
        Exception: _internal,
    }
    for kind, explain in table.items():
        api.add_exception_handler(kind, _handler(explain))


def _handler(explain: Callable[[HttpRequest, Any], Problem]) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: respond(request, explain(request, error))


def invalid(found: Mapping[str, str]) -> Problem:
    return Problem(422, "invalid", "Nothing was changed: see errors.", field_errors=errors.as_pairs(found))


def _not_publishable(_request: HttpRequest, error: errors.NotPublishable) -> Problem:
    found = [{"field": f"spec/{finding.code}", "message": finding.text} for finding in error.findings]
    return Problem(409, "not-publishable", "Nothing was published: see errors.", field_errors=found)


def too_large() -> Problem:
    return Problem(413, "too-large", "The body is larger than 64 KB: shorten it.")


def already_closed(request: ApprovalRequest) -> Problem:
    """`status` of a problem document is the HTTP status, so the request's own is `request_status`."""
    more = {
        "request_status": request.status,
        "decided_by": request.closed_by or None,
        "decided_at": iso(request.closed_at),
        "rev": request.rev,
    }
    if request.is_pending:
        detail = "What you decided on is not what is open now, or its time is over: read the request again."
    else:
        detail = (
            f"Nothing was done: {request.closed_by or 'somebody'} was first, the request is {request.status}."
        )
    return Problem(409, "already-decided", detail, more=more)


def iso(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def renamed(found: Mapping[str, str]) -> dict[str, str]:
    """Services name fields of dataclasses, callers sent nested JSON."""
    names = {"customer_name": "customer/name", "customer_id": "customer/id"}
    return {names.get(field, field): text for field, text in found.items()}


def refusal(request: HttpRequest, actor: Actor, error: errors.NotAllowed) -> Problem:
    """The answer to a refused attempt, which is put on the audit trail."""
    refusals.record(actor, error.attempt, request.path)
    if isinstance(error, Hidden):
        return Problem(404, "not-found", "There is no such object, or your account may not see it.")
    return Problem(403, "not-allowed", REASONS.get(str(error), "Your account may not do this."))


def _refused(request: HttpRequest, error: errors.NotAllowed) -> Problem:
    return refusal(request, request.auth, error)  # type: ignore[attr-defined]


def _http_error(_request: HttpRequest, error: HttpError) -> Problem:
    """ninja wraps whatever the body parser raised."""
    if isinstance(error.__cause__, Problem):
        return error.__cause__
    return Problem(error.status_code, "malformed", str(error))


def _unavailable(_request: HttpRequest, error: Exception) -> Problem:
    log.error("database: %s", type(error).__name__)
    detail = "The database does not answer. Nothing was changed; try again in a moment."
    return Problem(503, "unavailable", detail, headers={"Retry-After": "2"})


def _internal(request: HttpRequest, error: Exception) -> Problem:
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return Problem(500, "internal", "This is a defect of Counterseal; its log has the details.")


def _from_pydantic(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """("body", "decision", "args", "amount") -> "args/amount"; the whole body is called "body"."""
    result: dict[str, str] = {}
    for error in found:
        source, *parts = [str(part) for part in error["loc"]]
        if source == "body":
            parts = parts[1:]  # the name of the operation's parameter
        result.setdefault("/".join(parts) or source, _words(error))
    return result


def _words(error: Mapping[str, Any]) -> str:
    match error["type"]:
        case "missing":
            return "This field is required."
        case "extra_forbidden":
            return "There is no such field here: remove it."
        case "model_type" | "model_attributes_type" | "dict_type":
            return "Send a JSON object."
        case "literal_error":
            return f"Use one of {error['ctx']['expected']}."
    text = str(error["msg"])
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")

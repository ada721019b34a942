"""Who calls: a bearer token with the right scope, or a signed-in browser with its CSRF token."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from approvals.actors import Actor
from approvals.api.problems import Problem, unauthorized
from approvals.enums import Scope
from approvals.errors import Attempt
from approvals.models import User
from approvals.services import refusals, sessions, tokens

SAFE = ("GET", "HEAD", "OPTIONS")
# Whoever may open or decide may also read what that is about.
READING = (Scope.READ, Scope.CASES, Scope.DECIDE)
NO_NUL = r"^[^\x00]*$"  # Postgres holds no NUL in a text


class BearerToken(AuthBase):
    """`Authorization: Bearer cseal_...`, made by `manage.py token create` or on the Me page."""

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, *scopes: Scope) -> None:
        super().__init__()
        self.scopes = scopes  # any of them; none: every token

    def __call__(self, request: HttpRequest) -> Actor | None:
        _refuse_token_in_url(request)
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, text = header.partition(" ")
        token = tokens.find(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise _unknown(text.strip(), request.META.get("REMOTE_ADDR", ""))
        actor = Actor.of(token.user, token)
        if self.scopes and not set(self.scopes) & set(token.scopes):
            refusals.record(actor, Attempt(f"scope {self.scopes[0]}"), request.path)
            raise Problem(403, "scope", f"This token lacks the scope {self.scopes[0]}: make one that has it.")
        return actor


def _unknown(text: str, address: str) -> Problem:
    if wait := sessions.token_refused(prefix=tokens.prefix_of(text), address=address):
        detail = f"Too many tokens that are none of ours came from your address: try again in {wait} seconds."
        return Problem(429, "too-many", detail, headers={"Retry-After": str(wait)})
    return unauthorized("The token is unknown, expired or revoked: make a new one and send it as Bearer.")


class SessionCookie(AuthBase):
    """The session of a signed-in browser; unsafe methods need `X-CSRFToken`."""

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = "sessionid"

    def __call__(self, request: HttpRequest) -> Actor | None:
        if not isinstance(request.user, User):
            return None
        if request.method not in SAFE and check_csrf(request) is not None:
            raise Problem(403, "csrf", "Send the page's CSRF token as X-CSRFToken, or use a bearer token.")
        return Actor.of(request.user)


def needs(*scopes: Scope) -> list[Any]:
    return [BearerToken(*scopes), SessionCookie()]


def caller(request: HttpRequest) -> Actor:
    """The actor that authentication found."""
    actor: Actor = request.auth  # type: ignore[attr-defined]
    return actor


def _refuse_token_in_url(request: HttpRequest) -> None:
    values = [value for name in request.GET for value in request.GET.getlist(name)]
    if any(value.startswith(f"{tokens.BRAND}_") for value in values):
        detail = "Addresses end up in logs: revoke this token and send a new one in the Authorization header."
        raise Problem(400, "token-in-url", detail)

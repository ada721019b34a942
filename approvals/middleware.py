"""What every page has in common: the person's language and time zone, caching, and answers to refusals."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.urls import resolve
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from approvals import access
from approvals.actors import Actor
from approvals.errors import NotAllowed
from approvals.services import refusals

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})


class ProbesMiddleware(MiddlewareMixin):
    """Supervisors and monitoring ask by address, not by name: they are answered before the host is checked, and
    without a session."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        if request.path not in PROBES:
            return None
        answer: HttpResponseBase = resolve(request.path).func(request)
        return answer


class PersonSettingsMiddleware(MiddlewareMixin):
    """The language and time zone of the person; of the browser for who is not signed in."""

    def process_request(self, request: HttpRequest) -> None:
        wanted = getattr(request.user, "language", "")
        known = wanted in dict(settings.LANGUAGES)
        language = wanted if known else translation.get_language_from_request(request)
        translation.activate(language)
        request.LANGUAGE_CODE = translation.get_language()
        timezone.activate(zone_of(getattr(request.user, "time_zone", "")))

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        patch_vary_headers(response, ("Accept-Language",))
        response.headers.setdefault("Content-Language", translation.get_language())
        return response


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """UTC for a zone this machine does not know (any more)."""
    try:
        return zoneinfo.ZoneInfo(name or "UTC")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return zoneinfo.ZoneInfo("UTC")


class SignedInPagesMiddleware(MiddlewareMixin):
    """No copies of signed-in pages anywhere; 401 for a fetch of somebody signed out; refusals as pages, on record."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, NotAllowed):
            return None
        hidden = isinstance(error, access.Hidden)
        if request.user.is_authenticated:
            refusals.record(Actor.of(request.user), error.attempt, request.path)
        right = error.attempt.right
        context: dict[str, Any] = {"right": right, "why": str(error)}
        name, status = ("404.html", 404) if hidden else ("403.html", 403)
        return render(request, name, context, status=status)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if getattr(request, "htmx", False):
            patch_vary_headers(response, ("HX-Request",))
            if response.headers.get("Location", "").startswith(resolve_url(settings.LOGIN_URL)):
                # XMLHttpRequest would follow the redirect and htmx put the login page into the pane. No HX-Redirect
                # either: a fetch set off by a nudge must not take the page, and what is typed in it, away.
                return HttpResponse(status=401)
        user = getattr(request, "user", None)
        if user is not None and user.is_authenticated:
            patch_vary_headers(response, ("HX-Request",))
            response.headers.setdefault("Cache-Control", "no-store")
        return response

"""What the views share."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import trigger_client_event
from django_htmx.middleware import HtmxDetails

from approvals.actors import Actor
from approvals.models import User


class PageRequest(HttpRequest):
    """A request of somebody who is signed in; the login middleware lets no other through."""

    htmx: HtmxDetails
    user: User


def actor(request: PageRequest) -> Actor:
    return Actor.of(request.user)


def page(
    request: PageRequest, name: str, context: dict[str, Any], *, part: str = "", status: int = 200
) -> HttpResponse:
    """The whole page, or the named part of it for htmx. On Back htmx asks for the page: then it is not a fragment."""
    fragment = part and request.htmx and not request.htmx.history_restore_request
    return render(request, f"{name}#{part}" if fragment else name, context, status=status)


def toast(response: HttpResponse, text: str) -> HttpResponse:
    return trigger_client_event(response, "toast", {"text": text})


def uuid_or_none(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def number_or_none(text: str, most: int = 2**62) -> int | None:
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return int(text) if is_short and int(text) <= most else None

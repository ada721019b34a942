"""How the installation is doing: for supervisors, load balancers and monitoring, and a page for administrators."""

from __future__ import annotations

import ipaddress
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from redis import Redis
from redis.exceptions import RedisError

from approvals import access
from approvals.contexts.health import Health, health_of
from approvals.errors import TooLate
from approvals.services import runs, work
from approvals.views.common import PageRequest, actor, page

log = logging.getLogger("counterseal.health")

SECONDS = 2
FORWARDED = ("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via")
_threads = ThreadPoolExecutor(2, thread_name_prefix="readyz")


@login_not_required
@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers. Asks nobody, so a slow database does not get the process restarted."""
    return JsonResponse({"status": "ok"})


@login_not_required
@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Database and broker answer within two seconds; else 503, and no new requests should come here."""
    parts = {"database": _database(), "broker": _broker()}
    ready = all(parts.values())
    body = {
        "status": "ok" if ready else "unavailable",
        **{n: "ok" if up else "down" for n, up in parts.items()},
    }
    return JsonResponse(body, status=200 if ready else 503)


def _database() -> bool:
    """On a thread of its own: a server that does not answer may take much longer than we have."""
    try:
        _threads.submit(_ask_database).result(SECONDS)
    except (Error, TimeoutError) as error:
        log.warning("database: %s", type(error).__name__)
        return False
    return True


def _ask_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
    finally:
        connection.close()


def _broker() -> bool:
    link = Redis.from_url(settings.REDIS_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS)
    try:
        return bool(link.ping())
    except (RedisError, OSError) as error:
        log.warning("broker: %s", type(error).__name__)
        return False
    finally:
        link.close()


@login_not_required
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """For Prometheus: with the token of the settings; without one, only for a program on this machine."""
    if not _may_scrape(request):
        remedy = "Set COUNTERSEAL_METRICS_TOKEN and send it as a bearer token.\n"
        return HttpResponse(remedy, content_type="text/plain; charset=utf-8", status=403)
    from approvals import health_metrics  # noqa: PLC0415 -- most web processes are never asked

    return HttpResponse(health_metrics.exposition(), content_type="text/plain; version=0.0.4; charset=utf-8")


def _may_scrape(request: HttpRequest) -> bool:
    if token := settings.METRICS_TOKEN:
        return secrets.compare_digest(
            request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode()
        )
    if any(name in request.headers for name in FORWARDED):
        return False  # a proxy on this machine asks for somebody elsewhere
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


# --- the page -----------------------------------------------------------------------------------------------------------
@require_safe
def index(request: PageRequest) -> HttpResponse:
    access.require(request.user, access.is_administrator(request.user), "health")
    return _page(request, health_of(request.user))


def _page(request: PageRequest, found: Health, *, error: str = "", status: int = 200) -> HttpResponse:
    context = {"health": found, "error": error}
    return page(request, "health/page.html", context, part="vitals", status=status)


@require_POST
def retry(request: PageRequest, pk: UUID) -> HttpResponse:
    """Put a parked run back to work."""
    access.require(request.user, access.is_administrator(request.user), "retry")
    try:
        runs.retry(actor=actor(request), run_pk=pk)
    except TooLate as error:
        return _page(request, health_of(request.user), error=_(str(error)), status=409)
    return redirect("approvals:health")


@require_POST
def drain(request: PageRequest) -> HttpResponse:
    """Stop all work at the next safe point, or let it go on."""
    access.require(request.user, access.is_administrator(request.user), "drain")
    if request.POST.get("to") == "go-on":
        work.resume(actor=actor(request))
    else:
        work.drain(actor=actor(request))
    return redirect("approvals:health")

"""For supervisors and load balancers: is the process alive, and can it work?"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger("counterseal.health")

SECONDS = 2
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

"""Who opens a connection outside Django's request cycle: the live socket and the long poll.

Works on the ASGI scope. Everything that reads the database is synchronous and runs through `in_thread`, on a small pool
of its own: Django's and Channels' default is one thread per process for everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import parse_cookie
from django.http.request import split_domain_port, validate_host

from approvals.actors import Actor
from approvals.enums import Scope
from approvals.models import User
from approvals.services import tokens

type AsgiScope = Mapping[str, Any]

_threads = ThreadPoolExecutor(4, thread_name_prefix="handshake")


async def in_thread[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run code that uses the database; its connection is given back before this returns."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, partial(_with_own_connection, function, *args, **kwargs))


def _with_own_connection[**P, T](function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()


def header(scope: AsgiScope, name: str) -> str:
    wanted = name.lower().encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key.lower() == wanted), "")


def identify(scope: AsgiScope, *scopes: Scope) -> Actor | None:
    """The living token (with one of `scopes`) or session behind a connection. Ask again: both may end."""
    if authorization := header(scope, "authorization"):
        kind, _, text = authorization.partition(" ")
        token = tokens.find(text.strip()) if kind.lower() == "bearer" else None
        fits = token is not None and bool(set(scopes) & set(token.scopes))
        return Actor.of(token.user, token) if token and fits else None
    user = _session_user(header(scope, "cookie"))
    return Actor.of(user) if user else None


def _session_user(cookies: str) -> User | None:
    key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    engine = import_module(settings.SESSION_ENGINE)

    class Request:
        session = engine.SessionStore(key)

    user = get_user(Request())  # type: ignore[arg-type]
    return user if isinstance(user, User) else None


def origin_fits(scope: AsgiScope) -> bool:
    """Whether a browser page of ours opens this connection: cookies alone also come with a page of somebody else.

    A missing origin (no browser) is accepted only with a token, which no page can send.
    """
    origin = header(scope, "origin")
    if not origin:
        return bool(header(scope, "authorization"))
    if settings.ORIGINS:
        return origin.lower() in {known.lower().rstrip("/") for known in settings.ORIGINS}
    host = header(scope, "host")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    secure = settings.HTTPS or scope.get("scheme") in ("wss", "https")
    return _normal(origin) == _normal(f"{'https' if secure else 'http'}://{host}")


def _normal(origin: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port, with the port that is left out written out."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.path or parts.query or parts.fragment or parts.username:
        return None
    return parts.scheme, parts.hostname, port or {"http": 80, "https": 443}.get(parts.scheme)

"""Typed readers of environment variables. They fail loudly and name the variable and the remedy."""

from __future__ import annotations

import os
from urllib.parse import parse_qsl, unquote, urlsplit


class BadSetting(SystemExit):
    """A setting cannot be used; the text names it."""


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def flag(name: str, default: bool) -> bool:
    raw = os.environ.get(name)
    if raw is None:
        return default
    known = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if raw.strip().lower() not in known:
        raise BadSetting(f"{name}={raw!r} is not a yes or no: set it to 1 or 0.")
    return known[raw.strip().lower()]


def number(name: str, default: int) -> int:
    raw = os.environ.get(name)
    if raw is None:
        return default
    try:
        return int(raw)
    except ValueError:
        raise BadSetting(f"{name}={raw!r} is not a whole number.") from None


def choice(name: str, default: str, *others: str) -> str:
    raw = os.environ.get(name) or default
    if raw not in (default, *others):
        raise BadSetting(f"{name}={raw!r} is not known: set it to {' or '.join((default, *others))}.")
    return raw


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def database_parameters(name: str) -> dict[str, object]:
    """`postgresql://user:password@host:port/name?option=value` as Django's database dictionary."""
    url = urlsplit(text(name))
    if url.scheme not in ("postgres", "postgresql") or not url.path.strip("/"):
        raise BadSetting(f"{name} must look like postgresql://user:password@host:5432/name.")
    options = dict(parse_qsl(url.query))
    return {
        "NAME": unquote(url.path[1:]),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": options.pop("host", None) or unquote(url.hostname or ""),
        "PORT": options.pop("port", None) or url.port or "",
        "OPTIONS": options,
    }


def celery_url(redis_url: str) -> str:
    """A Redis URL as kombu spells it: `unix:///path?db=1` becomes `redis+socket:///path?virtual_host=1`."""
    if not redis_url.startswith("unix://"):
        return redis_url
    url = urlsplit(redis_url)
    return f"redis+socket://{url.path}?virtual_host={dict(parse_qsl(url.query)).get('db', '0')}"

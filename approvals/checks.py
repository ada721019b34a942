"""What `manage.py check` says about an installation before it does harm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from agents.catalogue import all_tools, shipped_specs
from approvals import demo


@register(Tags.security)
def demo_stays_at_home(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    if not settings.DEMO or demo.is_local():
        return []
    hosts = ", ".join(sorted(set(settings.ALLOWED_HOSTS) - demo.LOOPBACK))
    hint = "Set COUNTERSEAL_DEMO=0, or take these names out of COUNTERSEAL_HOSTS."
    return [
        Error(
            f"Demo accounts have a known password, but {hosts} can be reached.",
            hint=hint,
            id="counterseal.E001",
        )
    ]


@register(Tags.security)
def origins_are_named(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    found: list[CheckMessage] = []
    if settings.HTTPS and not settings.ORIGINS:
        hint = "Set COUNTERSEAL_ORIGINS to the full origin, for example https://desk.example.com."
        found.append(
            Warning("No origin is named that may open live sockets.", hint=hint, id="counterseal.W001")
        )
    for origin in settings.ORIGINS:
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not host or "/" in host or "*" in host:
            hint = "Write scheme, host and port, nothing more: https://desk.example.com."
            found.append(Error(f"{origin!r} is not a full origin.", hint=hint, id="counterseal.E002"))
    return found


@register(Tags.security)
def hosts_are_named(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "Every Host header is accepted.",
            hint="Name the hosts in COUNTERSEAL_HOSTS.",
            id="counterseal.W002",
        )
    ]


@register()
def shipped_agents_are_whole(app_configs: Any, **kwargs: Any) -> Sequence[CheckMessage]:
    """Default deny: every tool of an agent that ships has facts, and every write among them a guard."""
    known = all_tools()
    found: list[CheckMessage] = []
    for spec in shipped_specs():
        for name in spec.tools:
            if name not in known:
                hint = "Declare it in the facts of a package that COUNTERSEAL_AGENTS names."
                found.append(
                    Error(
                        f"Agent {spec.slug}: nothing is known of tool {name!r}.",
                        hint=hint,
                        id="counterseal.E003",
                    )
                )
        writes = [name for name in spec.tools if name in known and known[name].effect == "write"]
        if writes and not any(entry.get("use") == "write_guard" for entry in spec.middleware):
            hint = 'Add {"use": "write_guard"} to its middleware.'
            found.append(
                Error(
                    f"Agent {spec.slug}: {', '.join(writes)} could run unguarded.",
                    hint=hint,
                    id="counterseal.E004",
                )
            )
    return found

"""The frame of every page: where a person may go, and what waits there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from approvals import access, phrases, queries


@dataclass(frozen=True)
class Place:
    """One item of the navigation. `key`: after G."""

    name: str
    label: str
    icon: str
    key: str
    count: int = 0
    section: str = ""  # the heading that begins with it


@dataclass
class Frame:
    """Navigation and counts; worked out only where a template asks, so fragments do not pay for it."""

    user: Any
    path: str = ""

    @cached_property
    def counts(self) -> dict[str, int]:
        return queries.counts(self.user)

    @cached_property
    def places(self) -> list[Place]:
        """Only what the person may use."""
        user = self.user
        found = []
        if access.roles(user):
            found.append(Place("inbox", _("Inbox"), "inbox", "i", self.counts["mine"]))
        if access.may_open_cases(user) or access.sees_everything(user):
            found.append(Place("support", _("Support"), "messages-square", "s"))
        if access.may_see_runs(user):
            found.append(Place("runs", _("Runs"), "activity", "r"))
        if access.may_see_audit(user):
            found.append(Place("audit", _("Audit trail"), "scroll-text", "a"))
        if access.may_see_agents(user):
            found.append(Place("agents", _("Agents"), "bot", "e", section=_("Set up")))
        if access.is_administrator(user):
            found.append(Place("health", _("Health"), "heart-pulse", "h"))
        return found

    @property
    def here(self) -> str:
        return self.path.strip("/").split("/")[0]

    @cached_property
    def roles(self) -> str:
        names = [phrases.queue_name(name) for name in sorted(access.roles(self.user))]
        return ", ".join(names) or _("No role yet")

    @property
    def waiting(self) -> int:
        return self.counts["mine"]


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor."""
    return {"frame": Frame(request.user, request.path)} if hasattr(request, "user") else {}

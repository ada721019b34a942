"""Pictures of stacks: asked for by a page, made by a worker, kept for good."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from approvals import dispatch
from approvals.models import StackPicture

PATIENCE = timedelta(seconds=5)
PACKAGES = ("langchain", "deepagents", "langchain-anthropic", "langchain-aws", "langchain-openai")


def of_spec(spec: Mapping[str, Any]) -> StackPicture:
    """The picture of a spec's stack; its `entries` are None until a worker has looked. Asks one to look if need be."""
    listed, tools = list(spec.get("middleware") or []), list(spec.get("tools") or [])
    key = _key(listed, tools)
    with transaction.atomic():
        row, made = StackPicture.objects.get_or_create(
            key=key, defaults={"middleware": listed, "tools": tools}
        )
        if row.entries is None and (made or _is_late(row)):
            dispatch.picture_on_commit(key)
    return row


def store(*, key: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """What a worker found. The first one counts: all find the same."""
    StackPicture.objects.filter(key=key, entries__isnull=True).update(entries=list(entries), made_at=Now())


def _is_late(row: StackPicture) -> bool:
    """The hint was lost, or no worker runs: ask again, but not with every look at the page."""
    due = StackPicture.objects.filter(pk=row.pk, entries__isnull=True, asked_at__lt=Now() - PATIENCE)
    return bool(due.update(asked_at=Now()))


def _key(listed: Sequence[Any], tools: Sequence[Any]) -> str:
    about = json.dumps([listed, tools, _installed()], sort_keys=True, default=str)
    return sha256(about.encode()).hexdigest()


@cache
def _installed() -> list[str]:
    """A new version of a package may have other hooks."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return found

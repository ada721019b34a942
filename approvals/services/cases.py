"""Opening a case: a thread and its first run, once per idempotency key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from approvals import access, cleaning
from approvals.actors import Actor
from approvals.errors import AgentPaused, Invalid, KeyReused
from approvals.models import Agent, Run, Thread
from approvals.services import audit, events, runs

MAX_MESSAGE = 20_000


@dataclass(frozen=True)
class NewCase:
    agent: str
    message: str
    customer_name: str = ""
    customer_id: str = ""
    order_id: str = ""
    language: str = ""
    title: str = ""


@dataclass(frozen=True)
class Opened:
    run: Run
    is_repeat: bool


def body_digest(body: Mapping[str, Any]) -> str:
    return sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def find_repeat(*, actor: Actor, key: str | None, digest: str) -> Run | None:
    """The run an earlier request with this key made. Raises `KeyReused` if its body was another one."""
    if key is None:
        return None
    known = Run.objects.select_related("thread").filter(requested_by=actor.person, key=key).first()
    if known is not None and known.key_digest != digest:
        raise KeyReused("This Idempotency-Key was used with another body: send a new key.")
    return known


def open_case(*, actor: Actor, case: NewCase, key: str | None = None) -> Opened:
    """Thread, first run, event, audit entry, hint. The same key again gives the same run."""
    access.require(actor.person, access.may_open_cases(actor.person), "open_case")
    digest = body_digest(case.__dict__)
    if known := find_repeat(actor=actor, key=key, digest=digest):
        return Opened(known, is_repeat=True)
    agent = _check(case)
    try:
        with transaction.atomic():
            run = _create(actor, case, agent, key, digest)
    except AgentPaused as error:  # since it was looked at
        raise Invalid({"agent": error.TEXT}) from error
    except IntegrityError:
        if known := find_repeat(actor=actor, key=key, digest=digest):
            return Opened(known, is_repeat=True)
        raise
    return Opened(run, is_repeat=False)


def post_message(
    *,
    actor: Actor,
    thread_pk: UUID | str,
    message: str,
    while_pending: runs.WhilePending | None,
    key: str | None = None,
) -> Opened:
    """A message to the agent of a case, once per idempotency key: see `runs.post`."""
    digest = body_digest({"thread": str(thread_pk), "message": message, "while_pending": while_pending})
    if known := find_repeat(actor=actor, key=key, digest=digest):
        return Opened(known, is_repeat=True)
    if errors := _text_errors(message):
        raise Invalid(errors)
    try:
        run = runs.post(
            actor=actor,
            thread_pk=thread_pk,
            message=message,
            while_pending=while_pending,
            key=key,
            key_digest=digest,
        )
    except IntegrityError:  # the same key in two requests at once: the other one has made it
        if known := find_repeat(actor=actor, key=key, digest=digest):
            return Opened(known, is_repeat=True)
        raise
    return Opened(run, is_repeat=False)


def _text_errors(message: str) -> dict[str, str]:
    if cleaning.is_blank(message):
        return {"message": "Write what the agent should do."}
    if len(message) > MAX_MESSAGE:
        return {"message": f"Shorten the message to {MAX_MESSAGE:,} characters."}
    if "\x00" in message:
        return {"message": "Remove the NUL character."}
    return {}


def _check(case: NewCase) -> Agent:
    errors: dict[str, str] = {}
    agent = Agent.objects.filter(slug=case.agent).first()
    if agent is None or agent.current is None:
        errors["agent"] = f"There is no agent called {case.agent!r}: pick one of GET /api/v1/agents."
    elif agent.is_paused:
        errors["agent"] = AgentPaused.TEXT
    errors |= _text_errors(case.message)
    for name, most in (
        ("title", 200),
        ("customer_name", 120),
        ("customer_id", 80),
        ("order_id", 80),
        ("language", 12),
    ):
        if len(getattr(case, name)) > most:
            errors[name] = f"Shorten it to {most} characters."
    for name, value in case.__dict__.items():
        if "\x00" in value:
            errors[name] = "Remove the NUL character."
    if errors or agent is None:
        raise Invalid(errors)
    return agent


def _create(actor: Actor, case: NewCase, agent: Agent, key: str | None, digest: str) -> Run:
    version = agent.current
    assert version is not None
    thread = Thread.objects.create(
        agent=agent,
        requester=actor.person,
        title=case.title or _title(case),
        customer_name=case.customer_name,
        customer_id=case.customer_id,
        order_id=case.order_id,
        language=case.language,
    )
    run = runs.create(
        thread=thread, version=version, actor=actor, message=case.message, key=key, key_digest=digest
    )
    events.record(events.INBOX, thread.topic, run.topic, kind="opened", object_id=thread.pk)
    audit.record(
        "case.opened",
        actor=actor,
        subject=thread,
        run=run,
        data={"agent": agent.slug, "version": version.number},
    )
    return run


def _title(case: NewCase) -> str:
    first = case.message.strip().splitlines()[0]
    short = first if len(first) <= 60 else first[:57].rstrip() + "…"
    return f"{case.customer_name} · {short}"[:200] if case.customer_name else short

"""Drafts of agents: begun from a version, a template or a file, changed step by step, published or discarded.

Every change names the revision it was made on. Whoever is second is told who was first, and nothing is overwritten.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from pydantic import ValidationError

from agents.catalogue import AgentSpec
from agents.words import gettext_noop
from approvals import access, cleaning, specdiff
from approvals.actors import Actor
from approvals.errors import DraftChanged, Invalid
from approvals.models import Agent, AgentDraft, AgentVersion
from approvals.services import agents, audit

type Spec = Mapping[str, Any]

MAX_SPEC = 200_000  # characters as JSON; a spec is sent to every worker that builds it
MAX_ENTRIES = 60
RESERVED = frozenset({"new"})  # an address of the page


def begin(*, actor: Actor, slug: str, number: int) -> AgentDraft:
    """A draft that is like version `number`. Raises `DraftChanged` if there is a draft already."""
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    version = AgentVersion.objects.select_related("agent").get(agent_id=slug, number=number)
    with transaction.atomic():
        return _begin(actor, version.agent, version.spec, version, {"from": f"v{number}"})


type Notes = Sequence[Mapping[str, Any]]
"""What became of older spellings in a file: {"text": message id, "params"}."""


def create(*, actor: Actor, spec: AgentSpec, source: str, notes: Notes = ()) -> AgentDraft:
    """A new agent that is nothing but a draft. `source`: what it was made from. Raises `Invalid` for a slug in use."""
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    with transaction.atomic():
        agent, made = Agent.objects.get_or_create(
            slug=spec.slug, defaults={"title": spec.title[:120], "description": spec.description}
        )
        if not made or spec.slug in RESERVED:
            raise Invalid({"slug": gettext_noop("There is an agent of that name already: choose another.")})
        return _begin(actor, agent, spec.model_dump(mode="json"), None, {"source": source}, notes)


def replace(
    *, actor: Actor, slug: str, spec: AgentSpec, rev: int | None, source: str, notes: Notes = ()
) -> AgentDraft:
    """What a file says becomes the draft: of revision `rev`, or a new one where there is none (`rev` None)."""
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    new = {**spec.model_dump(mode="json"), "slug": slug}
    if rev is not None:
        said = {"did": "imported", "what": source, "notes": list(notes)}
        return change(actor=actor, slug=slug, rev=rev, spec=new, said=said)
    with transaction.atomic():
        agent = Agent.objects.get(pk=slug)
        return _begin(actor, agent, new, agent.current, {"source": source}, notes)


def _begin(
    actor: Actor,
    agent: Agent,
    spec: Spec,
    base: AgentVersion | None,
    said: dict[str, Any],
    notes: Notes = (),
) -> AgentDraft:
    told = {"said": {"notes": list(notes)}} if notes else {}
    fresh = {"base": base, "spec": _checked(spec), "edited_by": actor.name, "undo": told}
    draft, made = AgentDraft.objects.get_or_create(agent=agent, defaults=fresh)
    if not made:
        raise DraftChanged(draft)
    audit.record("draft.begun", actor=actor, subject=agent, data=said)
    return AgentDraft.objects.select_related("agent", "base").get(pk=draft.pk)


def change(*, actor: Actor, slug: str, rev: int, spec: Spec, said: Mapping[str, Any]) -> AgentDraft:
    """`spec` takes the place of what stood at revision `rev`. Nothing is written if it says the same.

    `said`: {"did": a word of `contexts.agents.DID`, "what": name}. Raises `DraftChanged`, `Invalid`.
    """
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    new = _checked({**spec, "slug": slug})
    with transaction.atomic():
        old = _at(slug, rev)
        if not specdiff.differ(old.spec, new):
            return old
        undo = {"spec": old.spec, "said": dict(said)}
        changed = AgentDraft.objects.filter(pk=slug, rev=rev).update(
            spec=new, rev=F("rev") + 1, undo=undo, edited_by=actor.name, edited_at=Now()
        )
        if not changed:
            raise DraftChanged(_now(slug))
        changes = specdiff.listed(old.spec, new)
        data = {"rev": rev + 1, **said, "changes": changes}
        audit.record("draft.changed", actor=actor, subject=old.agent, data=data)
    return _at(slug, rev + 1)


def undo(*, actor: Actor, slug: str, rev: int) -> AgentDraft:
    """Take the last change back, whoever made it. Undoing twice brings it back again."""
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    draft = _at(slug, rev)
    if "spec" not in draft.undo:
        return draft
    said = draft.undo.get("said", {})
    return change(
        actor=actor,
        slug=slug,
        rev=rev,
        spec=draft.undo["spec"],
        said={"did": "undone", "what": said.get("what", "")},
    )


def discard(*, actor: Actor, slug: str, rev: int) -> None:
    """Throw the draft away; the trail keeps what it would have changed. An agent that never was published goes too."""
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    with transaction.atomic():
        draft = _locked(slug, rev)
        against = draft.base.spec if draft.base else {}
        data = {"rev": rev, "changes": specdiff.listed(against, draft.spec)}
        agent = draft.agent
        draft.delete()
        audit.record("draft.discarded", actor=actor, subject=agent, data=data)
        if not agent.versions.exists() and not agent.threads.exists():
            agent.delete()


def publish(*, actor: Actor, slug: str, rev: int, current: int) -> AgentVersion:
    """The draft becomes the next version. `current`: number of the version it was compared with, 0 for none.

    Raises `NotPublishable`, `DraftChanged`, `Invalid` (nothing differs, or it cannot be read).
    """
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    with transaction.atomic():
        agent = Agent.objects.select_for_update().filter(pk=slug).first()
        draft = _locked(slug, rev)
        before = agent.current if agent else None
        if (before.number if before else 0) != current:
            raise DraftChanged(draft)
        version = agents.publish(actor=actor, spec=read(draft.spec), edited_by=draft.edited_by)
        if before is not None and version.pk == before.pk:
            raise Invalid({"draft": gettext_noop("Nothing differs from the current version.")})
        draft.delete()
    return version


def read(spec: Spec) -> AgentSpec:
    """A stored draft as a spec. Raises `Invalid` with sentences by field."""
    try:
        return AgentSpec.model_validate(spec)
    except ValidationError as error:
        raise Invalid({".".join(map(str, e["loc"])) or "spec": e["msg"] for e in error.errors()}) from error


def _at(slug: str, rev: int) -> AgentDraft:
    draft = _now(slug)
    if draft is None or draft.rev != rev:
        raise DraftChanged(draft)
    return draft


def _locked(slug: str, rev: int) -> AgentDraft:
    """No other change can come between."""
    AgentDraft.objects.select_for_update().filter(pk=slug).first()
    return _at(slug, rev)


def _now(slug: str) -> AgentDraft | None:
    return AgentDraft.objects.select_related("agent", "base").filter(pk=slug).first()


def _checked(spec: Spec) -> dict[str, Any]:
    """What may be stored: whole JSON of a sensible size. Whether it makes sense is said by the findings."""
    if cleaning.is_deep(spec):
        raise Invalid({"spec": gettext_noop("This is nested too deeply.")})
    new: dict[str, Any] = cleaning.json(copy.deepcopy(dict(spec)))
    if len(json.dumps(new)) > MAX_SPEC:
        raise Invalid({"spec": gettext_noop("This is too large for an agent: shorten its texts.")})
    if len(new.get("middleware", ())) > MAX_ENTRIES:
        raise Invalid({"middleware": gettext_noop("That is too much middleware for one agent.")})
    return new

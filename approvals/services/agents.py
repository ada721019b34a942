"""Publishing agents: a new immutable version whenever a spec or the schema of one of its tools changed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count

from agents.catalogue import AgentSpec, fingerprint, tool_marks
from agents.drift import Difference, differences
from agents.exchange import examine
from approvals import access, specdiff
from approvals.actors import Actor
from approvals.enums import RunStatus
from approvals.errors import NotPublishable
from approvals.models import OPEN, Agent, AgentVersion, Run
from approvals.services import audit


def publish(*, actor: Actor, spec: AgentSpec, edited_by: str = "") -> AgentVersion:
    """The current version of the agent; a new one if `spec` differs from it. Runs keep the version they started with.

    `edited_by`: who wrote it, where that may be another person. Raises `NotPublishable`.
    """
    _may(actor)
    mark = fingerprint(spec)
    with transaction.atomic():
        agent, _ = Agent.objects.get_or_create(slug=spec.slug, defaults={"title": spec.title})
        agent = Agent.objects.select_for_update().get(pk=agent.pk)
        current = agent.current
        if current is not None and current.fingerprint == mark:
            return current
        if errors := [finding for finding in examine(spec) if finding.level == "error"]:
            raise NotPublishable(errors)
        Agent.objects.filter(pk=agent.pk).update(title=spec.title, description=spec.description)
        number = current.number + 1 if current else 1
        version = AgentVersion.objects.create(
            agent=agent,
            number=number,
            spec=spec.model_dump(mode="json"),
            fingerprint=mark,
            tools=tool_marks(spec),
            published_by=actor.name,
        )
        said = {
            "version": number,
            "fingerprint": mark,
            **({"edited_by": edited_by} if edited_by else {}),
            **({"changes": specdiff.listed(current.spec, version.spec)} if current else {}),
        }
        audit.record("agent.published", actor=actor, subject=agent, data=said)
    return version


def publish_shipped(*, actor: Actor, spec: AgentSpec) -> AgentVersion:
    """At every start. What people have published since stays in force; otherwise as `publish`."""
    current = AgentVersion.objects.filter(agent_id=spec.slug).order_by("-number").first()
    if current is not None and current.published_by != actor.name:
        return current
    return publish(actor=actor, spec=spec)


def pause(*, actor: Actor, slug: str) -> bool:
    """Take no new work for this agent; open runs go on. False if it was paused before."""
    return _set_paused(actor, slug, paused=True)


def resume(*, actor: Actor, slug: str) -> bool:
    """The opposite of `pause`."""
    return _set_paused(actor, slug, paused=False)


def _set_paused(actor: Actor, slug: str, *, paused: bool) -> bool:
    _may(actor)
    with transaction.atomic():
        if not Agent.objects.filter(pk=slug, is_paused=not paused).update(is_paused=paused):
            return False
        agent = Agent.objects.get(pk=slug)
        audit.record("agent.paused" if paused else "agent.resumed", actor=actor, subject=agent)
    return True


def _may(actor: Actor) -> None:
    """The system itself publishes what ships; of people only administrators."""
    if actor.user is not None:
        access.require(actor.user, access.may_set_up(actor.user), "set_up")


@dataclass(frozen=True)
class Use:
    """A version that runs depend on."""

    version: AgentVersion
    open: int
    parked: int
    differences: list[Difference]  # empty: the installed code can rebuild it


def in_use() -> list[Use]:
    """Versions with open or parked runs, and what differs in the installed code."""
    alive, parked = (
        dict(Run.objects.filter(status__in=statuses).values_list("version").annotate(Count("pk")).order_by())
        for statuses in (OPEN, [RunStatus.PARKED])
    )
    found = AgentVersion.objects.filter(pk__in=alive.keys() | parked.keys()).select_related("agent")
    return [
        Use(row, alive.get(row.pk, 0), parked.get(row.pk, 0), drift_of(row))
        for row in found.order_by("agent_id", "number")
    ]


def drift_of(version: AgentVersion) -> list[Difference]:
    return differences(version.spec, version.fingerprint, version.tools)

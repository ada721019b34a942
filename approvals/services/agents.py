"""Publishing agents: a new immutable version whenever a spec or the schema of one of its tools changed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count

from agents.catalogue import AgentSpec, fingerprint, tool_marks
from agents.drift import Difference, differences
from approvals.actors import Actor
from approvals.enums import RunStatus
from approvals.models import OPEN, Agent, AgentVersion, Run
from approvals.services import audit


def publish(*, actor: Actor, spec: AgentSpec) -> AgentVersion:
    """The current version of the agent; a new one if `spec` differs from it. Runs keep the version they started with."""
    mark = fingerprint(spec)
    with transaction.atomic():
        agent, _ = Agent.objects.get_or_create(slug=spec.slug, defaults={"title": spec.title})
        agent = Agent.objects.select_for_update().get(pk=agent.pk)
        current = agent.current
        if current is not None and current.fingerprint == mark:
            return current
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
        audit.record(
            "agent.published", actor=actor, subject=agent, data={"version": number, "fingerprint": mark}
        )
    return version


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

"""Publishing agents: a new immutable version whenever a spec or the schema of one of its tools changed."""

from __future__ import annotations

from django.db import transaction

from agents.catalogue import AgentSpec, fingerprint
from approvals.actors import Actor
from approvals.models import Agent, AgentVersion
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
            published_by=actor.name,
        )
        audit.record(
            "agent.published", actor=actor, subject=agent, data={"version": number, "fingerprint": mark}
        )
    return version

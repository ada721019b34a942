"""Agents and their versions; and who the caller is."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router, Status
from pydantic import BaseModel, Field

from agents.catalogue import ToolFacts, all_tools
from agents.exchange import BadSpec, read
from approvals import access, cleaning
from approvals.api import answers
from approvals.api.auth import READING, caller, needs
from approvals.api.bodies import Body
from approvals.enums import Scope
from approvals.errors import Invalid
from approvals.models import Agent, AgentVersion, User
from approvals.services import agents

router = Router(tags=["agents"])


class AgentList(BaseModel):
    items: list[answers.AgentAnswer]
    next: None = None


@router.get("/agents", auth=needs(*READING), response=AgentList)
def list_agents(request: HttpRequest) -> AgentList:
    """Every agent with its current version."""
    _may_read(caller(request).person)
    return AgentList(
        items=[answers.AgentAnswer(**_summary(agent)) for agent in Agent.objects.order_by("slug")]
    )


@router.get("/agents/{slug:slug}", auth=needs(*READING), response=answers.AgentDetail)
def read_agent(request: HttpRequest, slug: str) -> answers.AgentDetail:
    """One agent: the spec in force, its tools, its versions."""
    user = caller(request).person
    _may_read(user)
    agent = get_object_or_404(Agent, pk=slug)
    current = agent.current
    names = current.spec.get("tools", []) if current else []
    known = all_tools()
    return answers.AgentDetail(
        **_summary(agent),
        spec=current.spec if current else None,
        tools=[_tool(known[name]) for name in names if name in known],
        versions=[answers.version_answer(version) for version in agent.versions.order_by("-number")[:200]],
        shop_url=settings.SHOP_URL if settings.DEMO else None,
    )


class SpecBody(Body):
    spec: dict[str, Any] = Field(description="An agent as data; older spellings are translated.")


class PauseBody(Body):
    paused: bool


class Published(BaseModel):
    version: answers.VersionAnswer
    notes: list[str] = Field(description="What became of older spellings.")


@router.post(
    "/agents/{slug:slug}/versions", auth=needs(Scope.ADMIN), response={200: Published, 201: Published}
)
def publish_version(request: HttpRequest, slug: str, body: SpecBody) -> Status[Published]:
    """Publish a spec as the next version; 200 if it is the one in force. Refused if anything is wrong with it."""
    actor = caller(request)
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    if cleaning.is_deep(body.spec):
        raise Invalid({"spec": "This is nested too deeply."})
    try:
        found = read({**body.spec, "slug": slug})
    except BadSpec as error:
        raise Invalid({"spec": str(error)}) from error
    before = AgentVersion.objects.filter(agent_id=slug).order_by("-number").first()
    version = agents.publish(actor=actor, spec=found.spec)
    answer = Published(version=answers.version_answer(version), notes=[str(note) for note in found.notes])
    return Status(200 if before is not None and before.pk == version.pk else 201, answer)


@router.post("/agents/{slug:slug}/pause", auth=needs(Scope.ADMIN), response=answers.AgentAnswer)
def pause_agent(request: HttpRequest, slug: str, body: PauseBody) -> answers.AgentAnswer:
    """Take no new work for this agent, or take it again. What runs already goes on."""
    actor = caller(request)
    access.require(actor.person, access.may_set_up(actor.person), "set_up")
    agent = get_object_or_404(Agent, pk=slug)
    (agents.pause if body.paused else agents.resume)(actor=actor, slug=slug)
    agent.refresh_from_db()
    return answers.AgentAnswer(**_summary(agent))


@router.get("/me", auth=needs(), response=answers.MeAnswer)
def read_me(request: HttpRequest) -> answers.MeAnswer:
    """The caller and their rights."""
    actor = caller(request)
    user, token = actor.person, actor.token
    return answers.MeAnswer(
        username=user.username,
        name=user.name,
        groups=sorted(access.roles(user)),
        queues=sorted(access.queues(user)),
        may_open_cases=access.may_open_cases(user),
        may_see_audit=access.may_see_audit(user),
        scopes=token.scopes if token else None,
        token=token.prefix if token else None,
        token_expires_at=token.expires_at if token else None,
    )


def _may_read(user: User) -> None:
    access.require(user, access.may_see_runs(user), "see_work")


def _summary(agent: Agent) -> dict[str, Any]:
    current = agent.current
    return {
        "slug": agent.slug,
        "title": agent.title,
        "description": agent.description,
        "is_paused": agent.is_paused,
        "version": current.number if current else None,
        "fingerprint": current.fingerprint if current else None,
    }


def _tool(facts: ToolFacts) -> answers.ToolAnswer:
    return answers.ToolAnswer(
        name=facts.name,
        title=facts.title,
        description=facts.description,
        effect=facts.effect,
        reversible=facts.reversible,
        idempotent=facts.idempotent,
        locked=list(facts.locked),
        args_schema=facts.schema(),
    )

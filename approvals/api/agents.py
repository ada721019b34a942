"""Agents and their versions; and who the caller is."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import BaseModel

from agents.catalogue import ToolFacts, all_tools
from approvals import access
from approvals.api import answers
from approvals.api.auth import READING, caller, needs
from approvals.models import Agent, User

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

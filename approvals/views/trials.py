"""What a worker finds out about an agent: its picture, and a trial of it on one message."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from approvals import access
from approvals.contexts import picture as contexts_picture
from approvals.contexts.trial import TrialView
from approvals.errors import Invalid
from approvals.models import Agent, AgentDraft, AgentVersion, Trial
from approvals.services import trials
from approvals.views.common import PageRequest, actor, number_or_none, page


@require_POST
def start(request: PageRequest, slug: str, number: int | None = None) -> HttpResponse:
    """The draft, or version `number`."""
    agent = access.agent_for(request.user, slug)
    found: AgentDraft | AgentVersion = (
        get_object_or_404(AgentDraft, agent=agent)
        if number is None
        else get_object_or_404(AgentVersion, agent=agent, number=number)
    )
    text, yes = request.POST.get("message", ""), request.POST.get("says_yes") == "1"
    typed: dict[str, Any] = {"trial_typed": text, "trial_yes": yes, "trial_url": request.path}
    try:
        trial = trials.start(actor=actor(request), agent=agent, spec=found.spec, message=text, says_yes=yes)
    except Invalid as error:
        typed["trial_errors"] = {name: _(said) for name, said in error.errors.items()}
        return _page(request, agent, number, typed, status=422)
    if not request.htmx:
        return redirect("approvals:trial", slug=slug, pk=trial.pk)
    return _page(request, agent, number, {**typed, "trial": TrialView(trial)})


@require_safe
def show(request: PageRequest, slug: str, pk: UUID) -> HttpResponse:
    """?part=trace: what a page that waits fetches."""
    agent = access.agent_for(request.user, slug)
    trial = get_object_or_404(Trial, pk=pk, agent=agent)
    more = {
        "trial": TrialView(trial),
        "trial_url": reverse("approvals:try-draft", args=[slug]),
        "trial_typed": trial.message,
        "trial_yes": trial.says_yes,
    }
    part = "trace" if request.GET.get("part") == "trace" else ""
    return _page(request, agent, None, more, part=part)


@require_safe
def picture(request: PageRequest, slug: str) -> HttpResponse:
    """Of the draft, or of version ?v=: what a page fetches until a worker has looked."""
    agent = access.agent_for(request.user, slug)
    number = number_or_none(request.GET.get("v", ""), most=2**31 - 1)
    subject: AgentDraft | AgentVersion = (
        get_object_or_404(AgentDraft, agent=agent)
        if number is None
        else get_object_or_404(AgentVersion, agent=agent, number=number)
    )
    return page(request, "agents/picture.html", {"picture": contexts_picture.of(subject), "selected": None})


def _page(
    request: PageRequest,
    agent: Agent,
    number: int | None,
    more: dict[str, Any],
    *,
    part: str = "card",
    status: int = 200,
) -> HttpResponse:
    has_draft = number is None and AgentDraft.objects.filter(agent=agent).exists()
    back = reverse("approvals:agent-draft" if has_draft else "approvals:agent", args=[agent.pk])
    if number is not None:
        back = reverse("approvals:agent-version", args=[agent.pk, number])
    may_try = access.may_set_up(request.user) and (has_draft or number is not None)
    context = {"agent": agent, "back": back, "may_try": may_try, **more}
    return page(request, "agents/trial_show.html", context, part=part, status=status)

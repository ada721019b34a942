"""The inbox: the list, one request, and what nudges fetch. Nothing here decides."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from approvals import access, contexts, queries
from approvals.contexts import Pane, Typed
from approvals.models import ApprovalRequest
from approvals.views.common import PageRequest, page

MODES = ("read", "edit", "reject")


def queue_of(request: PageRequest) -> str:
    asked = request.GET.get("queue", "")
    default = "mine" if access.is_reviewer(request.user) else "team"
    return asked if asked in queries.QUEUES else default


@require_safe
def index(request: PageRequest) -> HttpResponse:
    """The list alone; htmx gets all rows of the queue, the recently closed ones as ghosts."""
    access.require(request.user, bool(access.roles(request.user)), "inbox")
    everything = request.GET.get("all") == "1"
    inbox = contexts.inbox(request.user, queue_of(request), ghosts=bool(request.htmx), everything=everything)
    return page(request, "inbox/page.html", {"inbox": inbox}, part="rows")


@require_safe
def show(request: PageRequest, pk: UUID) -> HttpResponse:
    """?mode=edit and ?mode=reject are the same page with another form at its foot."""
    approval = access.request_for(request.user, pk)
    mode = request.GET.get("mode", "read")
    pane = contexts.pane(approval, request.user, mode=mode if mode in MODES else "read")
    if request.GET.get("fresh"):
        pane.draft = None
    return show_pane(request, pane)


def show_pane(request: PageRequest, pane: Pane, *, status: int = 200) -> HttpResponse:
    context = {"pane": pane, "approval": pane.request}
    if not request.htmx or request.htmx.history_restore_request:
        context["inbox"] = contexts.inbox(request.user, queue_of(request), current=pane.request.pk)
    return page(request, "inbox/page.html", context, part="panel", status=status)


def open_pane(
    request: PageRequest,
    approval: ApprovalRequest,
    *,
    mode: str,
    typed: Typed | None = None,
    status: int = 200,
) -> HttpResponse:
    return show_pane(request, contexts.pane(approval, request.user, mode=mode, typed=typed), status=status)


def open_evidence(request: PageRequest, approval: ApprovalRequest) -> HttpResponse:
    """What is known of a call whose outcome is not, without the form beside it."""
    context = {"pane": contexts.pane(approval, request.user), "approval": approval}
    return page(request, "inbox/known.html", context)


@require_safe
def notice(request: PageRequest, pk: UUID) -> HttpResponse:
    """What a nudge fetches: the notice and the head, never a form that a person may be typing in."""
    pane = contexts.pane(access.request_for(request.user, pk), request.user)
    shown = request.GET.get("rev", "")
    changed = pane.request.is_pending and shown != "" and shown != str(pane.request.rev)
    context = {
        "pane": pane,
        "approval": pane.request,
        "changed": changed,
        "rev": shown or pane.request.rev,
        "oob": True,
    }
    return page(request, "inbox/page.html", context, part="notice-answer")


@require_safe
def run_card(request: PageRequest, pk: UUID) -> HttpResponse:
    """The run beside the decision, as it is now."""
    pane = contexts.pane(access.request_for(request.user, pk), request.user)
    return page(request, "inbox/page.html", {"pane": pane, "approval": pane.request}, part="run-card")

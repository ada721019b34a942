"""Deciding. 200 or 303 when it worked, 422 when the answer is wrong, 409 when somebody was faster.
With htmx the pane alone is sent, without it the whole page; the rest is the same code."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.http import HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from approvals import access
from approvals.contexts import Typed
from approvals.enums import DecisionType
from approvals.errors import AlreadyClosed, Invalid, KeyReused, TooLate
from approvals.forms import DecisionForm, read_answer, read_edit
from approvals.models import ApprovalRequest, Decision
from approvals.services import decisions, lookups
from approvals.views.common import PageRequest, actor, toast
from approvals.views.inbox import open_evidence, open_pane

MODES = {DecisionType.EDIT: "edit", DecisionType.REJECT: "reject"}
NOT_TYPED = ("csrfmiddlewaretoken", "answer", "rev", "digest", "key")
MAX_DRAFT = 256_000  # characters; the arguments of a call are shorter


@require_POST
def decide(request: PageRequest, pk: UUID) -> HttpResponse:
    """In this order: may they; hidden fields; the same key again; the answer; then the database says who was first."""
    approval = access.request_to_decide(request.user, pk)
    form = DecisionForm(request.POST)
    if not form.is_valid() and form.is_malformed:
        return HttpResponseBadRequest(
            _("This form is damaged. Load the page again."), content_type="text/plain"
        )
    typed = Typed(fields=request.POST.dict(), key=request.POST.get("key", ""))
    if form.errors:
        typed.errors = form.problems
        return open_pane(
            request, approval, mode=_mode(request.POST.get("answer", "")), typed=typed, status=422
        )
    return _answer(request, approval, form, typed)


def _answer(
    request: PageRequest, approval: ApprovalRequest, form: DecisionForm, typed: Typed
) -> HttpResponse:
    is_edit = form.cleaned_data["answer"] == DecisionType.EDIT
    edit = read_edit(approval, dict(typed.fields)) if is_edit else None
    typed.changes = edit.changes if edit else ()
    answer, errors = read_answer(approval, form, edit)
    mode = _mode(answer.type)
    if errors and approval.is_pending:
        typed.errors = errors
        return open_pane(request, approval, mode=mode, typed=typed, status=422)
    undo_for = timedelta(seconds=request.user.undo_seconds)
    try:
        decisions.decide(
            actor=actor(request), request_pk=approval.pk, answer=answer, seen=form.seen, undo_for=undo_for
        )
    except Invalid as error:
        typed.errors = {name: _(text) for name, text in error.errors.items()}
        return open_pane(request, approval, mode=mode, typed=typed, status=422)
    except (AlreadyClosed, KeyReused):
        return open_pane(request, approval, mode="conflict", typed=typed, status=409)
    if not request.htmx:
        return redirect("approvals:request", pk=approval.pk)
    return open_pane(request, approval, mode="read")


def _mode(answer: str) -> str:
    return MODES.get(DecisionType(answer), "read") if answer in DecisionType.values else "read"


@require_POST
def draft(request: PageRequest, pk: UUID) -> HttpResponse:
    """What is typed and not sent yet. Answers nothing."""
    answer, rev = request.POST.get("answer", ""), request.POST.get("rev", "")
    if answer not in DecisionType.values or not (rev.isascii() and rev.isdigit()):
        return HttpResponseBadRequest(content_type="text/plain")
    fields = {
        name: text
        for name, text in request.POST.dict().items()
        if name not in NOT_TYPED and "\x00" not in text
    }
    if sum(map(len, fields.values())) > MAX_DRAFT:
        return HttpResponse(status=413)
    decisions.save_draft(actor=actor(request), request_pk=pk, answer=answer, fields=fields, rev=int(rev[:9]))
    return HttpResponse(status=204)


@require_POST
def look_up(request: PageRequest, pk: UUID) -> HttpResponse:
    """Ask the provider now what became of the call. Keeps what is typed: only the evidence is sent back."""
    try:
        lookups.look_now(actor=actor(request), request_pk=pk)
    except Invalid as error:
        return HttpResponse(
            "; ".join(error.errors.values()), status=422, content_type="text/plain; charset=utf-8"
        )
    if not request.htmx:
        return redirect("approvals:request", pk=pk)
    return open_evidence(request, access.request_for(request.user, pk))


@require_POST
def undo(request: PageRequest, pk: UUID) -> HttpResponse:
    """Take a decision back while it has not been sent."""
    try:
        approval = decisions.undo(actor=actor(request), decision_pk=pk)
    except TooLate:
        decision = Decision.objects.get(pk=pk)
        approval = access.request_for(request.user, decision.request_id)
        return open_pane(request, approval, mode="too-late", status=409)
    if not request.htmx:
        return redirect("approvals:request", pk=approval.pk)
    fresh = access.request_for(request.user, approval.pk)
    return toast(open_pane(request, fresh, mode="read"), _("Taken back. It waits for a decision again."))

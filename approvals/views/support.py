"""Cases: open one, follow it, write to the agent, take a request back."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid4

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import reswap, retarget

from approvals import access, contexts, phrases, queries
from approvals.contexts import CaseRow
from approvals.errors import AlreadyClosed, Invalid, KeyReused, Pending, TooLate
from approvals.forms import CaseForm, MessageForm, ReasonForm
from approvals.models import Thread
from approvals.services import cases, events, requests
from approvals.views.common import PageRequest, actor, page


def _case_list(request: PageRequest) -> dict[str, object]:
    """The list beside every page of this area."""
    search = request.GET.get("q", "").strip()[:100].replace("\x00", "")
    seq = events.current_seq()
    rows = queries.cases(request.user, before=_moment(request.GET.get("before", "")), search=search)
    older = rows[queries.PAGE - 1].updated_at if len(rows) > queries.PAGE else None
    return {
        "cases": [CaseRow(row) for row in rows[: queries.PAGE]],
        "older": older,
        "q": search,
        "is_first": not search and "before" not in request.GET,
        "list_seq": seq,
    }


def _moment(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return timezone.make_aware(found) if found and timezone.is_naive(found) else found


@require_safe
def index(request: PageRequest) -> HttpResponse:
    user = request.user
    access.require(user, access.may_open_cases(user) or access.sees_everything(user), "support")
    context = {**_case_list(request), "may_open": access.may_open_cases(user)}
    return page(request, "support/page.html", context, part="cases")


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: PageRequest) -> HttpResponse:
    access.require(request.user, access.may_open_cases(request.user), "open_case")
    if request.method != "POST":
        return _new_case(request, CaseForm(initial={"key": uuid4()}))
    form = CaseForm(request.POST)
    if not form.is_valid():
        return _new_case(request, form, status=422)
    sent = {name: value for name, value in form.cleaned_data.items() if name != "key"}
    try:
        opened = cases.open_case(
            actor=actor(request), case=cases.NewCase(**sent), key=str(form.cleaned_data["key"])
        )
    except Invalid as error:
        for name, text in error.errors.items():
            form.add_error(name if name in form.fields else None, _(text))
        return _new_case(request, form, status=422)
    except KeyReused:
        form.add_error(None, _("This form was sent before with other words. Load the page again."))
        return _new_case(request, form, status=409)
    return redirect("approvals:case", pk=opened.run.thread_id)


def _new_case(request: PageRequest, form: CaseForm, status: int = 200) -> HttpResponse:
    context = {**_case_list(request), "form": form, "may_open": True}
    return page(request, "support/new.html", context, status=status)


@require_safe
def show(request: PageRequest, pk: UUID) -> HttpResponse:
    """The conversation. `?part=log` is what a nudge fetches: every block with its revision."""
    thread = access.thread_for(request.user, pk)
    if request.GET.get("part") == "log" and request.htmx:
        talk = contexts.conversation(thread, request.user)
        return page(request, "support/page.html", {"talk": talk}, part="log")
    return _conversation(request, thread)


def _conversation(request: PageRequest, thread: Thread, status: int = 200, **more: object) -> HttpResponse:
    talk = contexts.conversation(thread, request.user, **more)
    if wanted := request.GET.get("withdraw"):
        waiting = [card.request for card in talk.pending if card.may_withdraw]
        talk.withdrawing = next((row for row in waiting if str(row.pk) == wanted), None)
    if request.htmx:  # a message that was not taken: the composer again, with what was typed
        answer = page(request, "support/page.html", {"talk": talk}, part="composer", status=status)
        return reswap(retarget(answer, "#composer"), "outerHTML")
    context = {**_case_list(request), "talk": talk, "may_open": access.may_open_cases(request.user)}
    return page(request, "support/page.html", context, status=status)


@require_POST
def post(request: PageRequest, pk: UUID) -> HttpResponse:
    """A message to the agent. While something waits, the person says whether it queues or withdraws the request."""
    thread = access.thread_to_write(request.user, pk)
    form = MessageForm(request.POST)
    if not form.is_valid():
        errors = {name: str(found[0]) for name, found in form.errors.items()}
        return _conversation(request, thread, status=422, errors=errors, typed=request.POST.dict())
    sent, me = form.cleaned_data, actor(request)
    try:
        cases.post_message(
            actor=me,
            thread_pk=thread.pk,
            message=sent["message"],
            while_pending=sent["while_pending"] or None,
            key=str(sent["key"]),
        )
    except Pending:
        errors = {
            "while_pending": _("A request of this case waits for a decision: choose what to do with it.")
        }
        return _conversation(request, thread, status=409, errors=errors, typed=request.POST.dict())
    except Invalid as error:
        errors = {name: _(text) for name, text in error.errors.items()}
        return _conversation(request, thread, status=422, errors=errors, typed=request.POST.dict())
    except (TooLate, KeyReused) as error:
        errors = {"message": _(str(error))}
        return _conversation(request, thread, status=409, errors=errors, typed=request.POST.dict())
    if not request.htmx:
        return redirect("approvals:case", pk=thread.pk)
    talk = contexts.conversation(thread, request.user)
    return page(request, "support/page.html", {"talk": talk, "sent": True}, part="posted")


@require_POST
def withdraw(request: PageRequest, pk: UUID) -> HttpResponse:
    """Take a request back before it is decided. Somebody may have been faster."""
    asked = access.request_to_withdraw(request.user, pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        errors = {"reason": str(form.errors["reason"][0])}
        return _conversation(request, asked.thread, status=422, errors=errors, withdrawing=asked)
    try:
        requests.withdraw(actor=actor(request), request_pk=pk, reason=form.cleaned_data["reason"])
    except Invalid as error:
        errors = {"withdraw": _(next(iter(error.errors.values()), ""))}
        return _conversation(request, asked.thread, status=422, errors=errors)
    except AlreadyClosed as error:
        said = _("%(who)s was faster: %(outcome)s. Nothing was withdrawn.") % {
            "who": error.request.closed_by, "outcome": phrases.outcome(error.request)
        }  # fmt: skip
        return _conversation(request, asked.thread, status=409, errors={"withdraw": said})
    return redirect("approvals:case", pk=asked.thread_id)

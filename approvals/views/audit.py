"""The audit trail: filters in the URL, pages that can be cited, one page for every entry. Read-only for everybody."""

from __future__ import annotations

from datetime import date
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from agents.words import gettext_noop
from approvals import access, queries
from approvals.contexts import Entry
from approvals.contexts.trail import seal_status
from approvals.models import ApprovalRequest, Thread
from approvals.queries import AuditFilter
from approvals.services import audit, chain, downloads, events
from approvals.views.common import PageRequest, actor, number_or_none, page, uuid_or_none

NAMES = ("q", "who", "what", "from", "to", "case", "run")


@require_safe
def index(request: PageRequest) -> HttpResponse:
    access.require(request.user, access.may_see_audit(request.user), "audit")
    return page(request, "audit/page.html", {**_list(request)}, part="list")


@require_safe
def show(request: PageRequest, pk: int) -> HttpResponse:
    event = access.audit_event_for(request.user, pk)
    related = [Entry(other) for other in queries.same_run(event)]
    found = queries.named([event.object_id] if event.object_kind == "approvalrequest" else [])
    asked = found.get(event.object_id)
    context = {
        "entry": Entry(event, _currency(asked)),
        "related": related,
        "asked": asked,
        "case": Thread.objects.filter(pk=event.thread_id).first() if event.thread_id else None,
        "current": event.pk,
    }
    if not request.htmx or request.htmx.history_restore_request:
        context |= _list(request)
    return page(request, "audit/page.html", context, part="entry")


@require_POST
def check(request: PageRequest) -> HttpResponse:
    """Look at the chain now."""
    chain.check_now(actor=actor(request))
    return redirect("approvals:audit")


@require_POST
def download(request: PageRequest, kind: str) -> HttpResponse:
    """The whole trail as JSON lines, for the verifier; or what the filter shows as a table."""
    name = f"audit-{timezone.now():%Y-%m-%d-%H%M}.{kind}"
    if kind == "jsonl":
        answer = HttpResponse(
            downloads.whole(actor=actor(request)), content_type="application/jsonl; charset=utf-8"
        )
    else:
        given = {name: request.GET[name] for name in NAMES if request.GET.get(name)}
        found = queries.audit_events(request.user, _filter(request))
        text = downloads.table(actor=actor(request), entries=found, wanted=given)
        answer = HttpResponse(f"\ufeff{text}", content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _list(request: PageRequest) -> dict[str, object]:
    wanted = _filter(request)
    rows, older, newer = queries.audit_page(request.user, wanted)
    given = {name: request.GET[name] for name in NAMES if request.GET.get(name)}
    return {
        "entries": [Entry(row) for row in rows],
        "wanted": wanted,
        "given": given,
        "query": urlencode(given),
        "total": queries.count_up_to(queries.audit_events(request.user, wanted)),
        "many": queries.MANY,
        "older": rows[-1].pk if older and rows else None,
        "newer": rows[0].pk if newer and rows else None,
        "people": queries.actors(request.user),
        "whos": [(name, _(label)) for name, label in WHO_LABELS.items()],
        "whats": [(name, _(label)) for name, label in WHAT_LABELS.items()],
        "actions": [(name, str(label)) for name, label in audit.ACTIONS.items()],
        "seq": events.current_seq(),
        "seal": seal_status(),
    }


def _currency(asked: ApprovalRequest | None) -> str:
    """Of the call an entry is about: its amounts are shown as money."""
    args = asked.args if asked else None
    return str(args.get("currency") or "") if isinstance(args, dict) else ""


def _filter(request: PageRequest) -> AuditFilter:
    """Whatever cannot be read is left out: a link may be old or shortened."""
    given = request.GET
    return AuditFilter(
        q=given.get("q", "").strip()[:100].replace("\x00", ""),
        who=given.get("who", "")[:150].replace("\x00", ""),
        what=given.get("what", "")[:60].replace("\x00", ""),
        since=_date(given.get("from", "")),
        until=_date(given.get("to", "")),
        case=number_or_none(given.get("case", ""), most=2**31 - 1),
        run=uuid_or_none(given.get("run", "")),
        before=number_or_none(given.get("before", "")),
        after=number_or_none(given.get("after", "")),
    )


def _date(text: str) -> date | None:
    try:
        found = parse_date(text)
    except ValueError:
        return None
    return found if found and 1970 <= found.year <= 9000 else None


WHO_LABELS = {
    "people": gettext_noop("People"),
    "tokens": gettext_noop("API tokens"),
    "agents": gettext_noop("Agents"),
    "rules": gettext_noop("Rules"),
    "system": gettext_noop("System"),
}
WHAT_LABELS = {
    "decisions": gettext_noop("Requests and decisions"),
    "effects": gettext_noop("Calls that change something"),
    "runs": gettext_noop("Cases and runs"),
    "access": gettext_noop("Sign-ins, refusals, tokens"),
    "setup": gettext_noop("Agents and settings"),
}

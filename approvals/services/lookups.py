"""Asking the provider, by the stored key, what became of a call whose answer was lost.

Finding the effect is proof, and settles the call without a person. Not finding it proves nothing: a request may still
be on its way. So "it did not happen" is only believed together with a look-up, and even then the key is looked up
again until the provider forgets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from agents.catalogue import CheckUnavailable, LookupByKey, all_tools
from approvals import access, cleaning
from approvals.actors import LOOK_UP, Actor
from approvals.enums import ExecutionStatus, LookUp, RequestKind
from approvals.enums import RequestStatus as Status
from approvals.errors import Invalid
from approvals.models import OPEN, ApprovalRequest, ToolExecution
from approvals.services import audit, executions, requests, wording

EVERY = timedelta(seconds=60)  # between two look-ups of one key
BY_HAND = timedelta(seconds=5)  # the same, when people press the button


def refuse_denial(request: ApprovalRequest) -> None:
    """Raises `Invalid` if the provider knows the call that somebody is about to say did not happen, or cannot tell."""
    row = executions.of_request(request)
    lookup = _lookup(request.tool)
    if row is None or lookup is None:
        return
    try:
        known = lookup(row.provider_key)
    except CheckUnavailable as error:
        said = _(
            "The provider cannot be asked right now. Nothing was decided: it must be looked up first. Try again soon."
        )
        raise Invalid({"type": said}) from error
    if known is not None:
        said = _("It did happen: the provider knows this call%(reference)s. Answer so.")
        raise Invalid({"type": said % {"reference": _reference(known)}})


def settle_due(*, limit: int = 20) -> int:
    """Look up what nobody knows, and what was said not to have happened; returns how many effects were found.

    Asks the provider outside any transaction. Safe to run twice, beside a person's answer and beside a resend.
    """
    return sum(_settle(row) for row in _claim_due(limit))


def _claim_due(limit: int) -> list[ToolExecution]:
    quiet = Q(status=ExecutionStatus.UNKNOWN, quiet_until__lte=Now())
    denied = Q(status=ExecutionStatus.PLANNED, attempt__gte=1) & ~Q(resolved_by="") & ~Q(run__status__in=OPEN)
    due = ToolExecution.objects.filter(
        quiet | denied & Q(started_at__gt=Now() - executions.KEY_LIFE),
        Q(looked_at=None) | Q(looked_at__lt=Now() - EVERY),
        tool__in=[name for name, facts in all_tools().items() if facts.lookup],
    )
    with transaction.atomic():
        first = F("looked_at").asc(nulls_first=True)
        rows = list(due.order_by(first).select_for_update(skip_locked=True, of=("self",))[:limit])
        ToolExecution.objects.filter(pk__in=[row.pk for row in rows]).update(looked_at=Now())
    return rows


def look_now(*, actor: Actor, request_pk: Any) -> None:
    """Ask the provider because a person wants to know now. A read: safe at any time, and it decides nothing.

    Raises `Invalid` if this tool has no look-up by key.
    """
    request = access.request_to_decide(actor.person, request_pk)
    row = executions.of_request(request)
    if row is None or not can_look(request.tool):
        raise Invalid(
            {"look_up": _("This call cannot be looked up by its key: look in the system it was sent to.")}
        )
    ripe = Q(looked_at=None) | Q(looked_at__lt=Now() - BY_HAND)
    if not request.is_pending or not ToolExecution.objects.filter(ripe, pk=row.pk).update(looked_at=Now()):
        return  # settled, or somebody has just asked: the page shows the answer
    found = _settle(row)
    row.refresh_from_db()
    with transaction.atomic():
        said = "found" if found else row.look_up
        audit.record("execution.looked_up", actor=actor, subject=row, run=row.run, data={"said": said})


def can_look(tool: str) -> bool:
    return _lookup(tool) is not None


def _settle(row: ToolExecution) -> bool:
    lookup = _lookup(row.tool)
    try:
        known = lookup(row.provider_key) if lookup else None
    except CheckUnavailable:
        _note(row, LookUp.NO_ANSWER)
        return False
    if known is None:
        _note(row, LookUp.NOT_FOUND)
        return False
    result = cleaning.json(dict(known))
    with transaction.atomic():
        _close_questions(row)  # the request before the ledger, as in `decisions.decide`
        changed = executions.found(row=row, actor=LOOK_UP, result=result)
        if changed:
            _close_questions(row)  # one that was asked while we waited for the ledger's row
        else:
            transaction.set_rollback(True)  # the row moved on: its question is not ours to close
    return changed


def _note(row: ToolExecution, said: LookUp) -> None:
    ToolExecution.objects.filter(pk=row.pk, attempt=row.attempt).update(look_up=said)


def close_if_settled(request: ApprovalRequest) -> None:
    """A look-up may have found the effect after its answer was lost and before anybody was asked about it.

    Inside the transaction that asks. The ledger's row is locked, so either this sees what was found, or `_settle` sees
    the question.
    """
    if request.kind != RequestKind.UNKNOWN_OUTCOME or not request.is_pending:
        return
    row = executions.of_request(request, lock=True)
    if row is not None and row.status == ExecutionStatus.SUCCEEDED:
        _close(request)


def _close_questions(row: ToolExecution) -> None:
    asked = ApprovalRequest.objects.filter(
        thread_id=row.thread_id,
        ai_message_id=row.ai_message_id,
        tool_call_id=row.tool_call_id,
        kind=RequestKind.UNKNOWN_OUTCOME,
        attempt=row.attempt,
        status=Status.PENDING,
    )
    for request in asked.select_related("run", "run__thread"):
        _close(request)


def _close(request: ApprovalRequest) -> None:
    requests.close(
        request=request,
        event="handle_elsewhere",
        actor=LOOK_UP,
        message=wording.found(),
        action="request.found",
        data={"attempt": request.attempt},
    )


def _lookup(tool: str) -> LookupByKey | None:
    facts = all_tools().get(tool)
    return facts.lookup if facts else None


def _reference(known: Mapping[str, Any]) -> str:
    reference = known.get("refund_id") or known.get("id")
    return f" ({reference})" if reference else ""

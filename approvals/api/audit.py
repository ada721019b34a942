"""The audit trail."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest
from ninja import Query, Router

from approvals import access
from approvals.api import answers
from approvals.api.auth import NO_NUL, caller, needs
from approvals.enums import Scope

router = Router(tags=["audit"])


@router.get("/audit", auth=needs(Scope.AUDIT), response=answers.Page[answers.AuditAnswer])
def list_audit(
    request: HttpRequest,
    thread: Annotated[UUID | None, Query(None)] = None,
    run: Annotated[UUID | None, Query(None)] = None,
    actor: Annotated[
        str | None, Query(None, max_length=150, pattern=NO_NUL, description="User name, or name as shown.")
    ] = None,
    action: Annotated[
        str | None, Query(None, max_length=60, pattern=NO_NUL, description="For example request.approved.")
    ] = None,
    after: Annotated[int, Query(0, ge=0, lt=2**63)] = 0,
    limit: Annotated[int, Query(200, ge=1, le=1_000)] = 200,
) -> answers.Page[answers.AuditAnswer]:
    """Entries in the order they were written, from the id after `after`."""
    user = caller(request).person
    access.require(user, access.may_see_audit(user), "see_audit")
    wanted = {"thread_id": thread, "run_id": run, "action": action}
    rows = access.audit_events(user).filter(pk__gt=after)
    rows = rows.filter(**{name: value for name, value in wanted.items() if value is not None})
    if actor is not None:
        rows = rows.filter(Q(actor_name=actor) | Q(actor__username=actor))
    found = list(rows.select_related("actor").order_by("pk")[: limit + 1])
    return answers.page(found, limit, answers.each(answers.audit_answer), lambda row: row.pk)

"""Opening cases and writing to their agents."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Header, Router, Status
from pydantic import Field

from approvals.api import answers
from approvals.api.auth import caller, needs
from approvals.api.bodies import CaseBody, MessageBody
from approvals.enums import Scope
from approvals.models import Run
from approvals.services import cases

router = Router(tags=["cases"])

IdempotencyKey = Annotated[
    Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x20-\x7e]+$")] | None,
    Header(
        None, alias="Idempotency-Key", description="The same key and body again: the same answer, status 200."
    ),
]


@router.post("/cases", auth=needs(Scope.CASES), response={200: answers.Opened, 201: answers.Opened})
def open_case(request: HttpRequest, case: CaseBody, key: IdempotencyKey = None) -> Status[answers.Opened]:
    """Open a case: a thread and its first run."""
    wanted = cases.NewCase(
        agent=case.agent,
        message=case.message,
        customer_name=case.customer.name,
        customer_id=case.customer.id,
        order_id=case.order_id,
        language=case.language,
        title=case.title,
    )
    done = cases.open_case(actor=caller(request), case=wanted, key=key)
    done.run.refresh_from_db()
    done.run.thread.refresh_from_db()
    return Status(200 if done.is_repeat else 201, answers.opened(done.run))


@router.post(
    "/cases/{uuid:thread_id}/messages",
    auth=needs(Scope.CASES),
    response={200: answers.PostedAnswer, 201: answers.PostedAnswer},
)
def post_message(
    request: HttpRequest, thread_id: UUID, message: MessageBody, key: IdempotencyKey = None
) -> Status[answers.PostedAnswer]:
    """Say something to the agent: a new run at the end of the case's queue. Never an answer to a pending request."""
    actor = caller(request)
    posted = cases.post_message(
        actor=actor,
        thread_pk=thread_id,
        message=message.message,
        while_pending=message.while_pending,
        key=key,
    )
    fresh = Run.objects.select_related("thread", "version", "requested_by").get(pk=posted.run.pk)
    return Status(200 if posted.is_repeat else 201, answers.posted(actor.person, fresh))

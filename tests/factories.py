"""Rows without the engine: people, cases and requests, made through the services that make them in the product.

    rita = make_user("rita", "refund-reviewers")
    run = make_case()                          # opened by sam, who is made if missing
    request = make_request(run)                # waits for refund-reviewers; the run is interrupted
    request = make_request(status="rejected")  # and what happened to it

Hints to workers and nudges go out after commit as always: fixtures decide whether anybody listens.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import transaction

from agents.canonical import call_digest, canonical
from agents.catalogue import all_tools, shipped_specs
from approvals.actors import SYSTEM, Actor
from approvals.models import ApprovalRequest, Decision, Run, User
from approvals.services import agents, cases, decisions, requests, runs, tokens

PASSWORD = "counterseal"
REFUND = {"order_id": "A-20931", "amount": 1280, "currency": "CNY", "reason": "arrived broken"}
ALLOWED = {
    "tool_call": ("approve", "edit", "reject"),
    "question": ("respond",),
    "limit": ("grant", "stop"),
    "unknown_outcome": ("happened", "did_not_happen", "still_unknown"),
}
DECIDED_BY = {"approved": "approve", "edited": "edit", "rejected": "reject", "responded": "respond"}


def make_user(username: str, *groups: str, **fields: Any) -> User:
    """The user of that name, with exactly these groups. Password: `PASSWORD`."""
    defaults = {"password": _hashed(), **fields}
    user, _ = User.objects.update_or_create(username=username, defaults=defaults)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return User.objects.get(pk=user.pk)  # rights are remembered on the object


@cache
def _hashed() -> str:
    """Once: hashing a password is slow on purpose."""
    return make_password(PASSWORD)


def make_token(user: User, *scopes: str, days: int = 30) -> str:
    """The secret text of a new token."""
    _token, text = tokens.create(actor=SYSTEM, user=user, scopes=scopes, days=days)
    return text


def make_case(by: User | None = None, message: str = "Please refund order A-20931.", **fields: str) -> Run:
    """A case of the shipped refund agent: its first run, pending."""
    agents.publish(actor=SYSTEM, spec=shipped_specs()[0])
    by = by or make_user("sam", "support")
    case = cases.NewCase(agent="refunds", message=message, **fields)
    return cases.open_case(actor=Actor.of(by), case=case).run


def make_request(
    run: Run | None = None,
    *,
    args: Mapping[str, Any] = REFUND,
    kind: str = "tool_call",
    tool: str = "issue_refund",
    status: str = "pending",
    expires_in: timedelta | None = timedelta(minutes=30),
    by: User | None = None,
    **ask: Any,
) -> ApprovalRequest:
    """A request as the worker projects it; its run waits. `status`: what became of it (`by` decides, else chen)."""
    run = run or make_case()
    claimed = runs.claim_next(thread_pk=run.thread_id)
    assert claimed is not None
    ai_message_id = ask.pop("ai_message_id", f"ai-{uuid.uuid4().hex[:8]}")
    tool_call_id = ask.pop("tool_call_id", f"call-{uuid.uuid4().hex[:8]}")
    facts = all_tools().get(tool)
    question = requests.Ask(
        kind=kind,
        ai_message_id=ai_message_id,
        tool_call_id=tool_call_id,
        attempt=ask.pop("attempt", 0),
        interrupt_id=uuid.uuid4().hex,
        tool=tool,
        title=ask.pop("title", f"Refund {args.get('currency')} {args.get('amount')}"),
        canonical=canonical(dict(args)),
        digest=call_digest(
            thread_id=str(run.thread_id),
            ai_message_id=ai_message_id,
            tool_call_id=tool_call_id,
            tool=tool,
            args=dict(args),
            policy=claimed.version.fingerprint,
        ),
        allowed_decisions=ask.pop("allowed_decisions", ALLOWED[kind]),
        queue=ask.pop("queue", "support" if kind == "question" else "refund-reviewers"),
        args_schema=ask.pop("args_schema", facts.schema() if facts else {}),
        locked=ask.pop("locked", facts.locked if facts and kind == "tool_call" else ()),
        expires_in=expires_in,
        **ask,
    )
    with transaction.atomic():
        row = requests.ask(run=claimed, ask=question, actor=Actor.agent("Refund agent"), checks=[])
    runs.pause(run=claimed, fence=claimed.thread.fence)
    if status != "pending":
        _end(row, status, by)
    return ApprovalRequest.objects.get(pk=row.pk)


def decide(request: ApprovalRequest, type: str, by: User | None = None, **answer: Any) -> Decision:
    """A person's decision on what the row says now, sent at once."""
    by = by or make_user("chen", "refund-reviewers")
    seen = decisions.Seen(request.rev, request.digest, answer.pop("key", uuid.uuid4().hex))
    undo_for = answer.pop("undo_for", timedelta())
    given = decisions.Answer(type=decisions.Type(type), **answer)
    return decisions.decide(
        actor=Actor.of(by), request_pk=request.pk, answer=given, seen=seen, undo_for=undo_for
    ).decision


def _end(row: ApprovalRequest, status: str, by: User | None) -> None:
    if status == "withdrawn":
        requests.withdraw(actor=Actor.of(row.run.requested_by), request_pk=row.pk, reason="not needed")
    elif status == "expired":
        ApprovalRequest.objects.filter(pk=row.pk).update(expires_at=row.created_at)
        requests.expire_due()
    else:
        message = "Yes." if status == "responded" else ""
        decide(
            row,
            DECIDED_BY[status],
            by,
            message=message,
            args={**row.args, "reason": "as agreed"} if status == "edited" else None,
        )

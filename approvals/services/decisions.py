"""Decisions of people: give, undo, hand to the engine. The database decides who was first, by its own clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from agents.canonical import call_digest, canonical
from approvals import access, dispatch, transitions
from approvals.actors import Actor
from approvals.enums import DecisionType as Type
from approvals.enums import RequestKind as Kind
from approvals.enums import RequestStatus as Status
from approvals.enums import RunStatus
from approvals.errors import AlreadyClosed, Invalid, KeyReused, TooLate
from approvals.models import OPEN, ApprovalRequest, Decision, DecisionDraft, Run
from approvals.services import audit, edits, executions, lookups, requests, runs, wording

ACTION = {
    Type.APPROVE: "request.approved",
    Type.EDIT: "request.edited",
    Type.REJECT: "request.rejected",
    Type.RESPOND: "request.responded",
    Type.GRANT: "request.granted",
    Type.STOP: "request.stopped",
    Type.HAPPENED: "request.settled",
    Type.DID_NOT_HAPPEN: "request.settled",
    Type.STILL_UNKNOWN: "request.still_unknown",
}
ASK_AGAIN = timedelta(minutes=15)
UNDOABLE = (Type.APPROVE, Type.EDIT, Type.REJECT, Type.RESPOND, Type.GRANT, Type.STOP)


@dataclass(frozen=True)
class Seen:
    """What the form was rendered from; it comes back with the answer."""

    rev: int
    digest: str
    key: str


@dataclass(frozen=True)
class Answer:
    """What the person sent. `args` only with `edit`."""

    type: Type
    args: Any = None
    message: str = ""
    grant: int | None = None
    reference: str = ""

    @property
    def digest(self) -> str:
        """Of the whole answer: the same key with another answer is refused."""
        parts = [self.type, self.message, self.grant, self.reference]
        return sha256(repr(parts).encode() + (b"" if self.args is None else canonical(self.args))).hexdigest()


@dataclass(frozen=True)
class Result:
    decision: Decision
    is_repeat: bool = False


def decide(*, actor: Actor, request_pk: Any, answer: Answer, seen: Seen, undo_for: timedelta) -> Result:
    """Record the first decision on what the person saw.

    In this order: authorise; the same key again gets the same answer; check the answer (`Invalid`, names the field);
    then in one transaction: a conditional UPDATE on status, rev, digest and time (`AlreadyClosed` if it matches no
    row), the decision, the ledger for an unknown outcome, the event, the audit entry; after commit a hint.
    """
    request = access.request_to_decide(actor.person, request_pk)
    if repeat := _repeat(actor, request, answer, seen):
        return repeat
    if not request.is_pending or request.rev != seen.rev or request.digest != seen.digest:
        raise AlreadyClosed(request)
    final = _check(request, answer)
    try:
        return _record_first(actor, request, answer, seen, final, undo_for)
    except IntegrityError:  # the same key came in twice at once: the other one was faster
        if repeat := _repeat(actor, request, answer, seen):
            return repeat
        raise


def _record_first(
    actor: Actor,
    request: ApprovalRequest,
    answer: Answer,
    seen: Seen,
    final: bytes | None,
    undo_for: timedelta,
) -> Result:
    with transaction.atomic():
        if not _claim(actor, request, answer, seen, final):
            request.refresh_from_db()
            if repeat := _repeat(actor, request, answer, seen):
                return repeat
            raise AlreadyClosed(request)
        decision = _store(actor, request, answer, seen, final, undo_for)
        _settle(actor, request, answer)
        DecisionDraft.objects.filter(user=actor.person, request=request).delete()
        request.refresh_from_db()
        requests.announce(request, kind="decided")
        audit.record(
            ACTION[answer.type],
            actor=actor,
            subject=request,
            run=request.run,
            data=_told(request, answer, seen),
        )
        if not request.is_pending:
            dispatch.resume_on_commit(request.thread_id, delay=_seconds_until_sent(answer, undo_for))
    return Result(decision)


def undo(*, actor: Actor, decision_pk: Any) -> ApprovalRequest:
    """Take back a decision that has not been sent. This and `claim_due` update the same row under conditions that
    exclude each other, so exactly one of them wins. Raises `TooLate`."""
    decision = Decision.objects.select_related("request", "request__run").filter(pk=decision_pk).first()
    if decision is None or decision.actor_id != actor.person.pk:
        raise access.refuse(actor.person, "undo", decision.request if decision else None, hidden=True)
    request = decision.request
    with transaction.atomic():
        locked = ApprovalRequest.objects.select_for_update().get(pk=request.pk)
        waiting = ApprovalRequest.objects.filter(  # else the run has gone on, or was stopped, without it
            pk=OuterRef("request_id"), applied_at=None, run__cancel_reason=None
        )
        unsent = Decision.objects.filter(
            pk=decision.pk,
            sent_at=None,
            undone_at=None,
            send_at__gt=Now(),
        ).filter(Exists(waiting))
        if not unsent.update(undone_at=Now()):
            raise TooLate
        ApprovalRequest.objects.filter(pk=request.pk).update(
            status=transitions.target("request", locked.status, "undo"),
            rev=F("rev") + 1,
            final=None,
            final_digest=None,
            message="",
            closed_by="",
            closed_at=None,
        )
        request.refresh_from_db()
        requests.announce(request, kind="reopened")
        audit.record(
            "request.undone", actor=actor, subject=request, run=request.run, data={"was": locked.status}
        )
    return request


def claim_due(request: ApprovalRequest) -> Decision | None:
    """The decision to hand to the engine, if its time to undo is over. From then on it cannot be undone."""
    standing = Decision.objects.filter(request=request, undone_at=None).exclude(type=Type.STILL_UNKNOWN)
    standing.filter(sent_at=None, send_at__lte=Now()).update(sent_at=Now())
    return standing.filter(sent_at__isnull=False).first()


def save_draft(*, actor: Actor, request_pk: Any, answer: str, fields: Mapping[str, str], rev: int) -> None:
    """Keep what a person has typed; the last one wins. Not an act: no audit entry."""
    request = access.request_to_decide(actor.person, request_pk)
    if request.is_pending:
        DecisionDraft.objects.update_or_create(
            user=actor.person,
            request=request,
            defaults={"answer": answer, "fields": dict(fields), "rev": rev, "updated_at": Now()},
        )


def _repeat(actor: Actor, request: ApprovalRequest, answer: Answer, seen: Seen) -> Result | None:
    known = Decision.objects.filter(actor=actor.person, key=seen.key).select_related("request").first()
    if known is None:
        return None
    if known.request_id != request.pk or known.key_digest != answer.digest:
        raise KeyReused("This key was used for another decision: send a new one.")
    return Result(known, is_repeat=True)


def _check(request: ApprovalRequest, answer: Answer) -> bytes | None:
    """Canonical bytes that may run after this answer, or None if nothing will."""
    if answer.type not in request.allowed_decisions:
        allowed = ", ".join(request.allowed_decisions)
        raise Invalid({"type": f"{answer.type!s} is not possible here; allowed: {allowed}."})
    if answer.args is not None and answer.type != Type.EDIT:
        raise Invalid({"args": "Only an edit carries arguments: leave them out or send type edit."})
    match answer.type:
        case Type.APPROVE:
            return bytes(request.canonical)
        case Type.EDIT:
            return edits.checked(request, answer.args, runs.context_of(request.run))
        case Type.RESPOND if not answer.message.strip():
            raise Invalid({"message": "Write the answer."})
        case Type.HAPPENED if not answer.reference.strip():
            raise Invalid({"reference": "Enter the provider's reference, so that the record can be checked."})
        case Type.DID_NOT_HAPPEN:
            lookups.refuse_denial(request)
        case Type.GRANT:
            _check_grant(request, answer)
    return None


def _check_grant(request: ApprovalRequest, answer: Answer) -> None:
    most = int(request.value.get("max_extra", 0))
    if answer.grant is None or not 1 <= answer.grant <= most:
        raise Invalid({"grant": f"Enter a whole number from 1 to {most}."})


def _claim(actor: Actor, request: ApprovalRequest, answer: Answer, seen: Seen, final: bytes | None) -> bool:
    """The one conditional UPDATE that decides who was first."""
    # EXISTS, not a join: Django writes a join as `id IN (SELECT ...)`, and Postgres does not look again at conditions in
    # there when it has waited for the row, so two people would both be first.
    running = Run.objects.filter(pk=OuterRef("run_id"), status__in=(*OPEN, RunStatus.PARKED))
    going_on = running.filter(cancel_reason=None)
    open_row = ApprovalRequest.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        Exists(going_on)
        | Q(kind=Kind.UNKNOWN_OUTCOME) & Exists(running),  # what may have happened is always asked
        pk=request.pk,
        status=Status.PENDING,
        rev=seen.rev,
        digest=seen.digest,
    )
    status = transitions.target("request", Status.PENDING, answer.type)
    columns: dict[str, Any] = {"rev": F("rev") + 1, "status": status}
    if status == Status.PENDING:  # still unknown: ask again later
        columns |= {"remind_at": Now() + ASK_AGAIN, "reminded_at": None}
    else:
        columns |= {"closed_at": Now(), "closed_by": actor.name, "message": _sentence(answer)}
    if final is not None and request.kind == Kind.TOOL_CALL:
        columns |= {"final": final, "final_digest": digest_of(request, final)}
    return bool(open_row.update(**columns))


def digest_of(request: ApprovalRequest, args: bytes) -> str:
    """The digest that the gate inside the tool will compute for these arguments."""
    return call_digest(
        thread_id=str(request.thread_id),
        ai_message_id=request.ai_message_id,
        tool_call_id=request.tool_call_id,
        tool=request.tool,
        args=edits.parsed(args),
        policy=request.run.version.fingerprint,
    )


def _sentence(answer: Answer) -> str:
    return wording.rejected(answer.message) if answer.type == Type.REJECT else answer.message


def _store(
    actor: Actor,
    request: ApprovalRequest,
    answer: Answer,
    seen: Seen,
    final: bytes | None,
    undo_for: timedelta,
) -> Decision:
    wait = undo_for if answer.type in UNDOABLE else timedelta()
    return Decision.objects.create(
        request=request,
        type=answer.type,
        actor=actor.person,
        token=actor.token,
        actor_name=actor.name,
        args=final if answer.type == Type.EDIT else None,
        message=answer.message,
        grant=answer.grant,
        reference=answer.reference,
        seen_rev=seen.rev,
        seen_digest=seen.digest,
        key=seen.key,
        key_digest=answer.digest,
        send_at=Now() + wait,
    )


def _settle(actor: Actor, request: ApprovalRequest, answer: Answer) -> None:
    if answer.type not in (Type.HAPPENED, Type.DID_NOT_HAPPEN):
        return
    happened = answer.type == Type.HAPPENED
    if not executions.resolve(request=request, actor=actor, happened=happened, reference=answer.reference):
        raise Invalid(
            {"type": "Too early: an answer of the provider may still arrive. Look again in a moment."}
        )


def _seconds_until_sent(answer: Answer, undo_for: timedelta) -> float:
    return undo_for.total_seconds() + 0.2 if undo_for and answer.type in UNDOABLE else 0


def _told(request: ApprovalRequest, answer: Answer, seen: Seen) -> dict[str, Any]:
    data: dict[str, Any] = {"shown": seen.digest, "rev": seen.rev, "message": answer.message}
    if answer.type == Type.EDIT:
        data["final"] = request.final_digest
        data["changes"] = [
            {"field": change.pointer, "old": change.old, "new": change.new}
            for change in edits.changes(request.args, request.final_args)
        ]
    if answer.type in (Type.HAPPENED, Type.DID_NOT_HAPPEN, Type.STILL_UNKNOWN):
        data |= {"answer": str(answer.type), "reference": answer.reference, "attempt": request.attempt}
    if answer.grant is not None:
        data["grant"] = answer.grant
    return data

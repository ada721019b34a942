"""The audit trail: registered actions only, in the transaction of the act, last statement of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.utils.translation import gettext_lazy as _

from agents import faults
from approvals import cleaning
from approvals.actors import Actor
from approvals.models import AuditEvent, Run, Thread

# action -> what the trail says. An action that is not here cannot be written.
ACTIONS: dict[str, Any] = {
    "case.opened": _("Opened the case"),
    "message.posted": _("Wrote to the agent"),
    "run.finished": _("Finished the run"),
    "run.failed": _("The run failed"),
    "run.cancel_requested": _("Stopped the run"),
    "run.cancelled": _("The run ended, stopped by a person"),
    "run.parked": _("Parked the run"),
    "run.freed": _("Took the run from a worker that no longer moved"),
    "run.unparked": _("Put the run back to work"),
    "request.asked": _("Asked for a decision"),
    "request.approved": _("Approved"),
    "request.edited": _("Approved with an edit"),
    "request.rejected": _("Rejected"),
    "request.responded": _("Answered"),
    "request.granted": _("Granted more"),
    "request.stopped": _("Refused more"),
    "request.settled": _("Settled an unknown outcome"),
    "request.still_unknown": _("Outcome still unknown"),
    "request.found": _("Settled by a look-up"),
    "request.undone": _("Took the decision back"),
    "request.withdrawn": _("Withdrew the request"),
    "request.expired": _("Nobody decided in time"),
    "request.reminded": _("Reminded the group"),
    "request.escalated": _("Passed on to another group"),
    "request.superseded": _("Superseded"),
    "execution.planned": _("Planned the call"),
    "execution.started": _("Sent the call"),
    "execution.not_sent": _("Took back a call that was not sent"),
    "execution.succeeded": _("The call went through"),
    "execution.failed": _("The provider refused the call"),
    "execution.unknown": _("No answer: outcome unknown"),
    "execution.looked_up": _("Looked the call up by its key"),
    "execution.found": _("Found by its key: it did happen"),
    "gate.refused": _("The gate refused a call"),
    "access.refused": _("Was refused access"),
    "session.signed_in": _("Signed in"),
    "session.signed_out": _("Signed out"),
    "session.failed": _("Failed to sign in"),
    "session.throttled": _("Had to wait before signing in"),
    "person.added": _("Added a person"),
    "person.changed": _("Changed a person"),
    "person.password_set": _("Set the password of a person"),
    "role.added": _("Added a role"),
    "role.changed": _("Changed a role"),
    "role.removed": _("Removed a role"),
    "token.created": _("Created an API token"),
    "token.refused": _("Refused an API token"),
    "token.revoked": _("Revoked an API token"),
    "settings.changed": _("Changed settings"),
    "agent.published": _("Published an agent version"),
    "agent.paused": _("Paused an agent"),
    "agent.resumed": _("Let an agent take work again"),
    "draft.begun": _("Began a draft of an agent"),
    "draft.changed": _("Changed the draft of an agent"),
    "draft.discarded": _("Discarded the draft of an agent"),
    "audit.exported": _("Exported the audit trail"),
    "trial.started": _("Tried an agent on a message"),
    "work.drained": _("Stopped all work"),
    "work.resumed": _("Let work go on"),
    "work.pruned": _("Dropped old checkpoints and live updates"),
}


def record(
    action: str,
    *,
    actor: Actor,
    subject: models.Model | None,
    run: Run | None = None,
    thread: Thread | None = None,
    data: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Append an entry. Raises `KeyError` for an action nobody registered."""
    if action not in ACTIONS:
        raise KeyError(f"audit action {action!r} is not registered in services.audit.ACTIONS")
    if not connection.in_atomic_block:
        raise RuntimeError("audit.record() belongs inside the transaction of the act")
    thread_id: UUID | None = run.thread_id if run else thread.pk if thread else None
    entry = AuditEvent.objects.create(
        action=action,
        actor_kind=actor.kind,
        actor=actor.user,
        actor_name=actor.name,
        object_kind=subject._meta.model_name or "" if subject else "",
        object_id=str(subject.pk) if subject else "",
        object_name=str(subject)[:300] if subject else "",
        thread_id=thread_id,
        run_id=run.pk if run else None,
        data=cleaning.json({**(data or {}), **({"token": actor.token.prefix} if actor.token else {})}),
    )
    faults.point(action, str(thread_id))  # written, not committed: nothing of this change may remain
    return entry


def label(action: str) -> str:
    """What the trail says, in the reader's language."""
    return str(ACTIONS.get(action, action))

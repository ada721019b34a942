"""An approval request: one interrupt that waits for a person. And the decisions on it."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.enums import DecisionType, RequestKind, RequestStatus
from approvals.models.people import ApiToken
from approvals.models.run import Run
from approvals.models.thread import Thread


class ApprovalRequest(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.PROTECT, related_name="requests")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="requests")
    kind = models.CharField(max_length=16, choices=RequestKind)
    status = models.CharField(max_length=20, choices=RequestStatus, default=RequestStatus.PENDING)
    rev = models.PositiveIntegerField(default=1)  # +1 with every change; the form sends back what it showed
    # The call is the identity of a question, the interrupt id only its address of today.
    ai_message_id = models.CharField(max_length=120)
    tool_call_id = models.CharField(max_length=200)
    attempt = models.PositiveIntegerField(default=0)  # unknown_outcome: of the ledger row; limit: calls used
    interrupt_id = models.CharField(max_length=80)
    path = models.JSONField(default=list)  # sub-agents it passed through
    tool = models.CharField(max_length=120)
    title = models.CharField(max_length=300)
    canonical = (
        models.BinaryField()
    )  # exactly what is shown; bytea, because jsonb refuses NUL and rewrites 1e3
    digest = models.CharField(max_length=64)
    value = models.JSONField(
        default=dict
    )  # cleaned copy of the interrupt's value, for limits and unknown outcomes
    args_schema = models.JSONField(default=dict)  # as it was when the call was made
    allowed_decisions = ArrayField(models.CharField(max_length=16))
    locked = models.JSONField(default=list)  # JSON pointers
    queue = models.CharField(max_length=150)  # the group that decides
    rule = models.CharField(max_length=200, blank=True)  # why a person is asked, in words
    checks = models.JSONField(
        default=list
    )  # [{"level", "text", "params", "field"}], run by the server at the ask
    checked_at = models.DateTimeField(null=True)
    final = models.BinaryField(null=True)  # canonical arguments that may run: as proposed, or as edited
    final_digest = models.CharField(max_length=64, null=True)  # noqa: DJ001
    message = models.TextField(blank=True)  # the sentence the model reads, for every ending but approval
    closed_by = models.CharField(max_length=150, blank=True)  # frozen name of the actor who ended it
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    remind_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    # Database defaults: during a deploy workers of the old version still insert.
    escalate_to = models.CharField(max_length=150, db_default="")  # the group that is asked when time is over
    escalated_from = models.CharField(
        max_length=150, db_default=""
    )  # the group whose time is over: it may read on
    default_answer = models.TextField(db_default="")  # of a question that nobody answered in time
    quiet_until = models.DateTimeField(null=True)  # unknown_outcome: "it did not happen" not before this
    closed_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True)  # the graph has durably taken the answer

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "ai_message_id", "tool_call_id", "kind", "attempt"],
                name="one_request_per_question",
            ),
            models.CheckConstraint(
                condition=(
                    Q(status="pending", closed_at=None) | (~Q(status="pending") & Q(closed_at__isnull=False))
                ),
                name="closed_iff_not_pending",
            ),
            models.CheckConstraint(
                condition=Q(
                    kind="tool_call",
                    status__in=["approved", "edited"],
                    final__isnull=False,
                    final_digest__isnull=False,
                )
                | (
                    ~Q(kind="tool_call", status__in=["approved", "edited"]) & Q(final=None, final_digest=None)
                ),
                name="final_iff_approved",
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(status="pending"), name="request_expiry"),
            models.Index(
                fields=["remind_at"],
                condition=Q(status="pending", reminded_at=None, remind_at__isnull=False),
                name="request_reminder",
            ),
            models.Index(
                fields=["queue", "expires_at", "id"], condition=Q(status="pending"), name="request_queue"
            ),
            models.Index(
                fields=["thread"],
                condition=~Q(status="pending") & Q(applied_at=None),
                name="request_unapplied",
            ),
            models.Index(fields=["-closed_at"], condition=~Q(status="pending"), name="request_closed"),
            models.Index(fields=["run"], name="request_run"),
            models.Index(fields=["run"], condition=Q(applied_at=None), name="request_open"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def topic(self) -> str:
        return f"request:{self.pk}"

    @property
    def args(self) -> Any:
        """The arguments as proposed, parsed from the bytes that were shown."""
        return json.loads(bytes(self.canonical))

    @property
    def final_args(self) -> Any:
        return None if self.final is None else json.loads(bytes(self.final))

    @property
    def is_pending(self) -> bool:
        return self.status == RequestStatus.PENDING

    @property
    def standing(self) -> Decision | None:
        """The decision that counts, if a person gave one."""
        return (
            self.decisions.filter(undone_at=None)
            .exclude(type=DecisionType.STILL_UNKNOWN)
            .select_related("actor")
            .first()
        )


class Decision(models.Model):
    """One answer of one person. Stored at once, sent when `send_at` is over, undone before that or never."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="decisions")
    type = models.CharField(max_length=16, choices=DecisionType)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="decisions")
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(max_length=150)  # frozen
    args = models.BinaryField(null=True)  # canonical, of an edit
    message = models.TextField(blank=True)
    grant = models.PositiveIntegerField(null=True)
    reference = models.CharField(max_length=200, blank=True)
    seen_rev = models.PositiveIntegerField()
    seen_digest = models.CharField(max_length=64)
    key = models.CharField(max_length=200)  # one per rendered form: the same press sent twice is one decision
    key_digest = models.CharField(max_length=64)
    decided_at = models.DateTimeField(db_default=Now())
    send_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["request"],
                condition=Q(undone_at=None) & ~Q(type="still_unknown"),
                name="one_standing_decision",
            ),
            models.UniqueConstraint(fields=["actor", "key"], name="one_decision_per_key"),
            models.CheckConstraint(
                condition=Q(sent_at=None) | Q(undone_at=None), name="not_both_sent_and_undone"
            ),
        ]
        indexes = [
            models.Index(
                fields=["send_at"], condition=Q(sent_at=None, undone_at=None), name="decision_unsent"
            ),
            models.Index(fields=["-sent_at"], condition=Q(sent_at__isnull=False), name="decision_sent"),
        ]

    def __str__(self) -> str:
        return f"{self.type} by {self.actor_name}"


class DecisionDraft(models.Model):
    """What a reviewer has typed and not sent: survives a closed tab and a restart."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="drafts")
    request = models.ForeignKey(ApprovalRequest, on_delete=models.CASCADE, related_name="drafts")
    answer = models.CharField(max_length=16)  # edit, reject, respond
    fields = models.JSONField(default=dict)  # names of form controls -> text
    rev = models.PositiveIntegerField()
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "request"], name="one_draft_per_person")]

    def __str__(self) -> str:
        return f"draft of {self.user_id}"

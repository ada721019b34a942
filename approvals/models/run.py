"""A run: one turn of an agent on a thread; its steps; the verdicts of the rules."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.enums import RunStatus, StepKind
from approvals.models.agent import AgentVersion
from approvals.models.people import ApiToken
from approvals.models.thread import Thread

OPEN = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.INTERRUPTED)
ENDED = (RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.CANCELLED, RunStatus.PARKED)


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.PROTECT, related_name="runs")
    number = models.PositiveIntegerField()  # order on the thread
    version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="runs")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="runs")
    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="+")
    message = models.TextField()
    status = models.CharField(max_length=12, choices=RunStatus, default=RunStatus.PENDING)
    error = models.TextField(blank=True)  # why it failed or was parked, for people
    answer = models.TextField(blank=True)  # the agent's last words
    usage = models.JSONField(default=dict)  # input_tokens, output_tokens, model_calls
    attempts = models.PositiveIntegerField(
        default=0
    )  # drives since the last clean end; counted before the work
    last_error = models.TextField(blank=True)  # of the last attempt that ended with an exception
    hints = models.PositiveIntegerField(default=0)  # re-sent since the last drive: they get rarer
    cancel_reason = models.TextField(null=True)  # not null: stop at the next safe point  # noqa: DJ001
    key = models.CharField(max_length=200, null=True)  # the caller's Idempotency-Key  # noqa: DJ001
    key_digest = models.CharField(max_length=64, blank=True)  # of the body sent with it
    created_at = models.DateTimeField(db_default=Now())
    touched_at = models.DateTimeField(db_default=Now())  # last drive or hint; the sweep looks at it
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="one_run_per_number"),
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(status__in=[RunStatus.RUNNING, RunStatus.INTERRUPTED]),
                name="one_active_run_per_thread",
            ),
            models.UniqueConstraint(fields=["requested_by", "key"], name="one_run_per_key"),
        ]
        indexes = [
            models.Index(fields=["touched_at"], condition=Q(status__in=OPEN), name="run_open"),
            models.Index(fields=["-finished_at"], condition=Q(status=RunStatus.PARKED), name="run_parked"),
            models.Index(fields=["-created_at"], name="run_created"),
            models.Index(fields=["-created_at"], condition=Q(status__in=OPEN), name="run_open_created"),
        ]

    def __str__(self) -> str:
        return f"run {self.short_id}"

    @property
    def short_id(self) -> str:
        return str(self.pk)[:4]

    @property
    def topic(self) -> str:
        return f"run:{self.pk}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN


class Step(models.Model):
    """One finished block of a run's timeline: a projection of the thread's messages."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=StepKind)
    message_id = models.CharField(max_length=120)
    tool = models.CharField(max_length=120, blank=True)
    tool_call_id = models.CharField(max_length=200, blank=True)
    text = models.TextField(blank=True)
    is_error = models.BooleanField(default=False)
    tool_calls = models.JSONField(default=list)  # [{"id", "name", "args"}] of a model step
    usage = models.JSONField(default=dict)
    notes = models.JSONField(default=list)  # which middleware touched it
    is_confirmed = models.BooleanField(default=False)  # seen in a checkpoint, not only in the stream
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["run", "position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="one_step_per_position"),
            models.UniqueConstraint(fields=["run", "message_id"], name="one_step_per_message"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.position}"


class Verdict(models.Model):
    """What the rules said when a call was proposed. Written once, never again."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="verdicts")
    ai_message_id = models.CharField(max_length=120)
    tool_call_id = models.CharField(max_length=200)
    tool = models.CharField(max_length=120)
    asks = models.BooleanField()
    rule = models.CharField(max_length=200)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "ai_message_id", "tool_call_id"], name="one_verdict_per_call"
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool}: {self.rule}"

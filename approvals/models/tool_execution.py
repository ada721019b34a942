"""The effect ledger: one row per write call."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.enums import ExecutionStatus, LookUp
from approvals.models.run import Run
from approvals.models.thread import Thread

IN_FLIGHT = (ExecutionStatus.STARTED, ExecutionStatus.UNKNOWN)  # it may have happened and nobody knows


class ToolExecution(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.PROTECT, related_name="executions")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="executions")
    ai_message_id = models.CharField(max_length=120)
    tool_call_id = models.CharField(max_length=200)
    tool = models.CharField(max_length=120)
    digest = models.CharField(max_length=64)
    provider_key = models.CharField(max_length=64, unique=True)  # made once, stored, never derived again
    status = models.CharField(max_length=12, choices=ExecutionStatus, default=ExecutionStatus.PLANNED)
    attempt = models.PositiveIntegerField(default=0)
    fence = models.BigIntegerField()
    result = models.JSONField(null=True)
    error = models.TextField(blank=True)
    resolved_by = models.CharField(max_length=150, blank=True)  # the person who answered "did it go through?"
    planned_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    retry_until = models.DateTimeField(null=True)  # the provider forgets keys after this
    quiet_until = models.DateTimeField(null=True)  # "it did not happen" may not be said before this
    looked_at = models.DateTimeField(null=True)  # last look-up by key
    look_up = models.CharField(max_length=12, choices=LookUp, blank=True, db_default="")  # what it said
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "ai_message_id", "tool_call_id"], name="one_execution_per_call"
            )
        ]
        indexes = [
            models.Index(fields=["started_at"], condition=Q(status="unknown"), name="execution_unknown"),
            models.Index(fields=["run"], name="execution_run"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.status}"

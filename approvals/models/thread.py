"""A thread: one case, one conversation with an agent."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from approvals.enums import ThreadStatus
from approvals.models.agent import Agent

NEXT_NUMBER = models.Func(
    models.Value("approvals_case_number"), function="nextval", output_field=models.BigIntegerField()
)


class Thread(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    number = models.BigIntegerField(
        unique=True, editable=False, db_default=NEXT_NUMBER
    )  # for people: "Case 1042"
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="threads")
    requester = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="threads")
    title = models.CharField(max_length=200)
    customer_name = models.CharField(max_length=120, blank=True)
    customer_id = models.CharField(max_length=80, blank=True)
    order_id = models.CharField(max_length=80, blank=True)
    language = models.CharField(max_length=12, blank=True)  # of the customer
    status = models.CharField(max_length=12, choices=ThreadStatus, default=ThreadStatus.IDLE)
    fence = models.BigIntegerField(
        default=0
    )  # +1 whenever its lock is taken; a lower fence may not touch the ledger
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    pruned_at = models.DateTimeField(null=True)  # its checkpoints, by `manage.py prune`

    class Meta:
        indexes = [
            models.Index(fields=["requester", "-updated_at"], name="thread_requester"),
            models.Index(fields=["-updated_at"], name="thread_updated"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def topic(self) -> str:
        return f"thread:{self.pk}"

"""The outbox of live updates, and the audit trail."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from approvals.enums import ActorKind


class EventCounter(models.Model):
    """One row. Its lock makes numbers follow commit order; a database sequence would not."""

    seq = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.seq)


class Event(models.Model):
    """A numbered nudge: ids only."""

    seq = models.BigIntegerField(primary_key=True)
    topic = models.CharField(max_length=80)
    kind = models.CharField(max_length=40)
    object_id = models.CharField(max_length=40)
    rev = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["topic", "seq"], name="event_topic_seq")]

    def __str__(self) -> str:
        return f"{self.seq} {self.topic} {self.kind}"

    def as_nudge(self) -> dict[str, object]:
        return {
            "seq": self.seq,
            "topic": self.topic,
            "type": self.kind,
            "id": self.object_id,
            "rev": self.rev,
        }


class AuditEvent(models.Model):
    """An act by someone. Appended in the transaction of the act, never changed."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    act = models.UUIDField(default=uuid.uuid4)  # groups the entries of one act
    action = models.CharField(max_length=60)  # registered in services.audit: "request.approved"
    actor_kind = models.CharField(max_length=8, choices=ActorKind)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    actor_name = models.CharField(max_length=150)  # frozen; never empty
    object_kind = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    object_name = models.CharField(max_length=300)  # frozen
    thread_id = models.UUIDField(null=True)  # plain values: an entry outlives what it is about
    run_id = models.UUIDField(null=True)
    data = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["thread_id", "id"], name="audit_thread"),
            models.Index(fields=["run_id", "id"], name="audit_run"),
            models.Index(fields=["object_id", "id"], name="audit_object"),
            models.Index(fields=["action", "id"], name="audit_action"),
            models.Index(fields=["actor_name", "id"], name="audit_actor"),
        ]
        constraints = [
            models.CheckConstraint(condition=~models.Q(actor_name=""), name="audit_actor_never_empty")
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.action}"


class AuditSeal(models.Model):
    """The place of an entry in the chain. Written by the database itself when the act commits (migration 0014)."""

    seq = models.BigIntegerField(primary_key=True)
    event = models.OneToOneField(AuditEvent, on_delete=models.PROTECT, related_name="seal")
    prev = models.BinaryField()  # hash of the entry before
    hash = models.BinaryField()  # sha256(prev || canonical text of the entry)

    def __str__(self) -> str:
        return str(self.seq)

    @property
    def digest(self) -> str:
        return bytes(self.hash).hex()


class AuditHead(models.Model):
    """The end of the chain. Its row is locked from the sealing of an act to its commit, so there is no fork and no gap."""

    chain = models.CharField(max_length=20, primary_key=True)
    seq = models.BigIntegerField()
    hash = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.chain} {self.seq}"

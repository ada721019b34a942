"""Agents and their immutable, numbered versions."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Now

from approvals.enums import TrialStatus


class Agent(models.Model):
    slug = models.CharField(max_length=40, primary_key=True)
    title = models.CharField(max_length=120)
    description = models.TextField(blank=True)
    is_paused = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.title

    @property
    def current(self) -> AgentVersion | None:
        return self.versions.order_by("-number").first()


class AgentVersion(models.Model):
    """Never updated. A run keeps the version it started with."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    fingerprint = models.CharField(max_length=64)
    tools = models.JSONField(db_default={})  # as the code had them: what differs later can be named
    published_by = models.CharField(max_length=120)
    published_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "number"], name="one_version_per_number")]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.number}"


class AgentDraft(models.Model):
    """What the next version of an agent may become. Anybody with the right edits it; `rev` says on which state."""

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, related_name="draft", primary_key=True)
    base = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, null=True)  # null: never published yet
    spec = models.JSONField()  # like AgentVersion.spec, but it may be wrong or unfinished
    rev = models.PositiveIntegerField(default=1)
    edited_by = models.CharField(max_length=120)
    edited_at = models.DateTimeField(db_default=Now())
    undo = models.JSONField(
        default=dict
    )  # {"spec": before the last change, "said": what it was}; {}: nothing to undo

    def __str__(self) -> str:
        return f"draft of {self.agent_id}, {self.rev}"


class StackPicture(models.Model):
    """What a worker found when it built a stack: the hooks that its classes really have. Never updated once it is made."""

    key = models.CharField(
        max_length=64, primary_key=True
    )  # of the list and of the installed code: services.pictures
    middleware = models.JSONField()
    tools = models.JSONField(default=list)  # names of the agent's tools
    entries = models.JSONField(
        null=True
    )  # [{"use", "hooks", "error"}], outermost first; null: nobody has looked yet
    asked_at = models.DateTimeField(db_default=Now())
    made_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.key[:12]


class Trial(models.Model):
    """A spec tried on one message with its tools emulated: nothing outside changes, no thread, no ledger."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="trials")
    spec = models.JSONField()
    message = models.TextField()
    says_yes = models.BooleanField(default=False)  # what a person would be asked is answered with yes
    status = models.CharField(max_length=8, choices=TrialStatus, default=TrialStatus.WAITING)
    trace = models.JSONField(default=list)  # one entry per hook and step, in the order they happened
    error = models.TextField(blank=True)
    started_by = models.CharField(max_length=120)
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["agent", "-created_at"], name="trial_newest")]

    def __str__(self) -> str:
        return f"trial of {self.agent_id}: {self.status}"

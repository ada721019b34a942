"""Agents and their immutable, numbered versions."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


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

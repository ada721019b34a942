"""How the installation itself is doing."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Pulse(models.Model):
    """When something that must happen again and again last happened: a sweep, a canary of a queue."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField(db_default=Now())
    data = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.name


class Drain(models.Model):
    """Its one row exists while no worker may take work."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    since = models.DateTimeField(db_default=Now())
    by = models.CharField(max_length=150)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="one_drain")]

    def __str__(self) -> str:
        return f"drained by {self.by}"

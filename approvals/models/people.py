"""People, their settings, and the tokens that act for them."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class User(AbstractUser):
    """Groups carry rights: see `enums.Role` and `access`."""

    class Theme(models.TextChoices):
        SYSTEM = "system", "System"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    language = models.CharField(max_length=12, blank=True)  # "": as the browser asks
    time_zone = models.CharField(max_length=40, blank=True)  # "": UTC
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    single_keys = models.BooleanField(default=True)
    undo_seconds = models.PositiveSmallIntegerField(default=5)

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return self.get_full_name() or self.username

    @property
    def initials(self) -> str:
        words = self.name.split()
        return "".join(word[0] for word in words[:2]).upper() if len(words) > 1 else self.name[:2].upper()


class SignIn(models.Model):
    """One attempt to sign in whose password was looked at. Kept for a day, to slow down guessing."""

    account = models.CharField(max_length=150)  # as typed, in lower case: it need not exist
    address = models.CharField(max_length=45)
    succeeded = models.BooleanField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["account", "at"], name="sign_in_account"),
            models.Index(fields=["address", "at"], name="sign_in_address"),
        ]

    def __str__(self) -> str:
        return f"{self.account} from {self.address}"


class ApiToken(models.Model):
    """Acts as its user, never wider. Only the sha256 of the secret is stored."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80, blank=True)
    prefix = models.CharField(max_length=12, unique=True)  # in clear: finds the row, lets scanners find leaks
    secret_sha256 = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=16))
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.user}"

"""What every test needs."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Hashing a password takes half a second with the real hasher; nothing here is about its strength."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

"""Delete the data of the one-machine mode and start empty next time."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string


class Command(BaseCommand):
    help = "Delete the own Postgres, Valkey and demo shop data. Servers given by URL are not touched."
    requires_system_checks = []

    def handle(self, *_: Any, **__: Any) -> None:
        # Named, not imported: nothing below config may depend on config.
        sys.exit(import_string("config.reset.main")())

"""Run everything on this machine: servers, web, workers, beat and, in demo mode, the shop."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils.module_loading import import_string


class Command(BaseCommand):
    help = "Run everything on this machine until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument(
            "--port", default=os.environ.get("PORT") or "8000", help="default: PORT, else 8000"
        )

    def handle(self, *_: Any, host: str, port: str, **__: Any) -> None:
        # Named, not imported: nothing below config may depend on config.
        sys.exit(import_string("config.supervisor.main")(host, port))

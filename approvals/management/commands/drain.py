"""`manage.py drain`: no worker takes new work, and what runs ends at its next safe point. `--off` lets it go on."""

from __future__ import annotations

import sys
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from approvals.actors import Actor
from approvals.enums import ActorKind
from approvals.services import work

ACTOR = Actor(ActorKind.SYSTEM, "Command line")


class Command(BaseCommand):
    help = "Stop all work at the next safe point, for an upgrade; people can go on deciding."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--off", action="store_true", help="let work go on")
        parser.add_argument(
            "--wait", type=float, default=120, help="seconds to wait for what runs (default 120)"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        if options["off"]:
            said = "Work goes on." if work.resume(actor=ACTOR) else "Work was not stopped."
            self.stdout.write(said)
            return
        work.drain(actor=ACTOR)
        left = self.wait(options["wait"])
        if left:
            self.stderr.write(
                f"{len(left)} still at work after {options['wait']:g} s: {', '.join(left)}. They stop at their next "
                "safe point; `manage.py drain` waits again, `manage.py drain --off` takes it back."
            )
            sys.exit(1)
        self.stdout.write("Nothing is at work. `manage.py drain --off` lets work go on.")

    def wait(self, seconds: float) -> list[str]:
        """Until nothing is driven; returns what still is."""
        deadline = time.monotonic() + seconds
        while (left := work.in_flight()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

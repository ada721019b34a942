"""`manage.py versions`: can the installed code go on with everything that is open? Ask it before a deploy."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from approvals.services import agents


class Command(BaseCommand):
    help = "List agent versions with open or parked runs, and what keeps this code from going on with them."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        stuck = 0
        for use in agents.in_use():
            if not use.differences:
                self.stdout.write(f"{use.version}: {use.open} open, {use.parked} parked; can be rebuilt")
                continue
            stuck += use.open
            what = "; ".join(str(difference) for difference in use.differences)
            self.stdout.write(f"{use.version}: {use.open} open, {use.parked} parked; changed: {what}")
        if stuck:
            self.stderr.write(
                f"{stuck} open runs would be parked under this code. Let them finish on the old one first, or keep "
                "what they need."
            )
            sys.exit(1)

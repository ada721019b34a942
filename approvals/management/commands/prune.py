"""`manage.py prune`: drop what nobody needs any more of cases at rest. Audit trail, decisions and ledger are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from approvals import wiring
from approvals.actors import Actor
from approvals.enums import ActorKind
from approvals.services import retention

ACTOR = Actor(ActorKind.SYSTEM, "Command line")


class Command(BaseCommand):
    help = (
        "Prune the checkpoints of cases at rest: only the last one is needed to go on. Also drops old live updates, "
        "trials of agents and ended sessions. Safe to run at any time, also twice at once."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=30, help="at rest for so many days (default 30)")
        parser.add_argument(
            "--forget",
            action="store_true",
            help="drop the last checkpoint too: a later message begins without memory of the conversation",
        )
        parser.add_argument("--event-days", type=int, default=7, help="live updates to keep (default 7)")

    def handle(self, *_: Any, **options: Any) -> None:
        age, forget = timedelta(days=options["days"]), options["forget"]
        found = list(retention.prunable(age).values_list("pk", flat=True))
        pruned = sum(wiring.prune_thread(str(pk), age, forget=forget) for pk in found)
        dropped = retention.drop_events(timedelta(days=options["event_days"]))
        retention.drop_trials(age)
        call_command("clearsessions")
        if pruned or dropped:
            retention.record(actor=ACTOR, threads=pruned, events=dropped, days=options["days"], forgot=forget)
        self.stdout.write(f"Pruned {pruned} cases and {dropped} live updates.")
        if len(found) > pruned:
            self.stdout.write(f"{len(found) - pruned} were being worked on; the next time will do.")

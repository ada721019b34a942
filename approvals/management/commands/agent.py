"""`manage.py agent check FILE... | publish FILE... | catalogue [--json] | docs [--check]`: agents and middleware as data."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agents.exchange import BadSpec, examine, read
from approvals.actors import COMMAND_LINE
from approvals.services import agents
from middleware import catalogue, handbook


class Command(BaseCommand):
    help = "Look at the spec of an agent, list the middleware, write its handbook."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        check = acts.add_parser("check", help="say what is wrong or doubtful about a spec")
        check.add_argument("files", nargs="+", help="JSON files")
        publish = acts.add_parser(
            "publish", help="make the next version of each, unless something is wrong with it"
        )
        publish.add_argument("files", nargs="+", help="JSON files")
        listing = acts.add_parser("catalogue", help="list every middleware that a spec may name")
        listing.add_argument("--json", action="store_true", help="with options as JSON schema")
        docs = acts.add_parser("docs", help="write docs/middleware.md from the catalogue")
        docs.add_argument("--check", action="store_true", help="only say whether it is up to date")

    def handle(self, *args: Any, **options: Any) -> None:
        {
            "check": self.check_files,
            "publish": self.publish_files,
            "catalogue": self.catalogue,
            "docs": self.docs,
        }[options["act"]](options)

    def publish_files(self, options: dict[str, Any]) -> None:
        self.check_files(options)
        for name in options["files"]:
            spec = read(json.loads(Path(name).read_text(encoding="utf-8"))).spec
            version = agents.publish(actor=COMMAND_LINE, spec=spec)
            self.stdout.write(self.style.SUCCESS(f"{version} is in force."))

    def check_files(self, options: dict[str, Any]) -> None:
        refused = [name for name in options["files"] if not self._passes(Path(name))]
        if refused:
            raise CommandError(f"{len(refused)} of {len(options['files'])} must not be published.")

    def _passes(self, path: Path) -> bool:
        try:
            found = read(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, BadSpec) as error:
            self.stdout.write(self.style.ERROR(f"{path.name}: {error}"))
            return False
        for note in found.notes:
            self.stdout.write(f"{path.name}: note: {note}")
        lints = examine(found.spec)
        for lint in lints:
            style = self.style.ERROR if lint.level == "error" else self.style.WARNING
            self.stdout.write(style(f"{path.name}: {lint.level}: {lint.text} [{lint.code}]"))
        whole = all(lint.level != "error" for lint in lints)
        if whole:
            self.stdout.write(self.style.SUCCESS(f"{path.name}: {found.spec.title} can be published."))
        return whole

    def catalogue(self, options: dict[str, Any]) -> None:
        listed = catalogue.describe()
        if options["json"]:
            self.stdout.write(json.dumps(listed, indent=2, ensure_ascii=False))
            return
        for entry in listed:
            why = "" if entry["available"] else f" (unavailable: {entry['reason']})"
            self.stdout.write(f"{entry['name']:26} {entry['summary']}{why}")

    def docs(self, options: dict[str, Any]) -> None:
        path = Path(settings.BASE_DIR) / "docs" / "middleware.md"
        text = handbook.page()
        if not options["check"]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise CommandError("docs/middleware.md is not up to date: run `manage.py agent docs`.")

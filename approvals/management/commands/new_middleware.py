"""`manage.py new_middleware NAME`: a file of your own with its unit test. The catalogue finds it by itself."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from middleware.catalogue import ENTRIES
from middleware.own import HELPERS, template

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class Command(BaseCommand):
    help = "Make an own middleware from the template, with its unit test."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="small letters and underscores: quiet_hours")
        parser.add_argument("--into", default="", help="folder that stands for the repository")

    def handle(self, *args: Any, **options: Any) -> None:
        name, root = options["name"], Path(options["into"] or settings.BASE_DIR)
        if not NAME.fullmatch(name) or len(name) > 40 or name in HELPERS:
            raise CommandError("A name has small letters, digits and underscores: quiet_hours.")
        if name in ENTRIES:
            raise CommandError(f"{name} is in the catalogue already.")
        said = {**template.names(name), "package": "middleware.own"}
        module = root / "middleware" / "own" / f"{name}.py"
        test = root / "tests" / "unit" / "middleware" / "own" / f"test_{name}.py"
        for path, text in ((module, template.MODULE), (test, template.TEST)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(**said), encoding="utf-8")
            self.stdout.write(f"wrote {path.relative_to(root)}")
        self.stdout.write(f'Put {{"use": "{name}"}} into an agent, then `manage.py agent docs`.')

"""`manage.py audit verify|export|anchor|key`: the proof that the trail is whole, and what of it is kept elsewhere."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals.actors import Actor
from approvals.enums import ActorKind
from approvals.services import chain

ACTOR = Actor(ActorKind.SYSTEM, "Command line")
KEY = "COUNTERSEAL_ANCHOR_KEY"


class Command(BaseCommand):
    help = "Check, export and anchor the audit trail."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        verify = acts.add_parser("verify", help="is the chain whole? Ends with 1 if not, and says where")
        verify.add_argument("--anchors", help="file of anchors that were kept elsewhere")
        verify.add_argument("--public-key", default="", help=f"their key; by default that of {KEY}")
        export = acts.add_parser("export", help="the whole trail as JSON lines, for tools/verify_audit.py")
        export.add_argument("file", help="- for standard output")
        anchor = acts.add_parser(
            "anchor", help="append the signed end of the chain to a file; run it every hour"
        )
        anchor.add_argument(
            "file", help="on a place that nobody who can write the database can write; - prints it"
        )
        acts.add_parser(
            "key", help=f"print a new key pair; the private half goes into {KEY} of the one who anchors"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        {"verify": self.verify, "export": self.export, "anchor": self.anchor, "key": self.key}[
            options["act"]
        ](options)

    def verify(self, options: dict[str, Any]) -> None:
        anchors = []
        if options["anchors"]:
            anchors = [json.loads(line) for line in Path(options["anchors"]).read_text().splitlines() if line]
        public = options["public_key"] or (chain.public_of(_key()) if anchors else "")
        wrong = chain.first_wrong(anchors, public)
        if wrong is not None:
            where = f"place {wrong.seq}" if wrong.seq else "outside the chain"
            raise CommandError(f"{where}{f', entry {wrong.entry}' if wrong.entry else ''}: {wrong.what}")
        seq, digest = chain.head()
        self.stdout.write(f"whole: {seq} entries, {len(anchors)} anchors agree, ends with {digest}")

    def export(self, options: dict[str, Any]) -> None:
        if options["file"] == "-":
            for line in chain.export(actor=ACTOR):
                sys.stdout.write(f"{line}\n")
            return
        with Path(options["file"]).open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in chain.export(actor=ACTOR))

    def anchor(self, options: dict[str, Any]) -> None:
        line = json.dumps(chain.anchor(_key()))
        if options["file"] == "-":
            self.stdout.write(line)
            return
        with Path(options["file"]).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def key(self, options: dict[str, Any]) -> None:
        private, public = chain.new_key()
        self.stdout.write(f"{KEY}={private}\npublic key: {public}")


def _key() -> str:
    given = os.environ.get(KEY, "")
    if len(given) != 64:
        raise CommandError(f"{KEY} is not set: `manage.py audit key` makes one.")
    return given

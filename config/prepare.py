"""Tables, then agents and demo data, in one process (`python -m config.prepare`): starting Django twice costs a second."""

from __future__ import annotations

import os

import django
from django.core.management import CommandError, call_command


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for command, options in (("migrate", {"interactive": False, "verbosity": 0}), ("prepare", {})):
        try:
            call_command(command, **options)
        except CommandError as error:
            raise SystemExit(f"{command}: {error}") from None


if __name__ == "__main__":
    main()

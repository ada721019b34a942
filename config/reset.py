"""Deletes what one-machine mode keeps (`manage.py reset`): only folders by name, only while nothing runs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from config import embedded, preflight, servers
from config.servers import Problem

FOLDERS = ("pg", "pg.tmp", "pgbin", "valkey", "shop", "sock", "static")  # `uv` stays: it is no data
FILES = ("secret_key",)


def doomed() -> list[Path]:
    """What would be deleted, of what exists."""
    places = dict.fromkeys((embedded.state_dir(), embedded.service_dir()))
    named = [place / name for place in places for name in (*FOLDERS, *FILES)]
    return [path for path in dict.fromkeys((*named, embedded.socket_dir())) if path.exists()]


def agreed(environ: dict[str, str], interactive: bool) -> bool:
    """Ask a person; a script has said what it wants by calling us."""
    if environ.get("YES") == "1" or not interactive:
        return True
    try:
        return input("Delete all of this? Type yes: ").strip().lower() == "yes"
    except EOFError:  # Ctrl-D
        return False


def main() -> int:
    """Refuse while it runs, say what goes, delete it."""
    state = embedded.state_dir()
    try:
        if not state.exists():
            sys.stdout.write(f"Nothing to delete: {state} does not exist.\n")
            return 0
        folder = state / "run"
        folder.mkdir(exist_ok=True)
        with preflight.take_lock(folder / "lock", "(being reset)"):
            preflight.end_leftovers(folder / "children.json")
            return _delete(doomed(), state)
    except Problem as problem:
        sys.stderr.write(f"Nothing was deleted: {problem}\n")
    except OSError as error:
        sys.stderr.write(f"Stopped half-way: {servers.sentence(error, state)}\n")
    return 1


def _delete(paths: list[Path], state: Path) -> int:
    if not paths:
        sys.stdout.write(f"Nothing to delete in {state}.\n")
        return 0
    sys.stdout.write("This deletes every case, decision and audit entry kept on this machine:\n")
    sys.stdout.writelines(f"  {path}\n" for path in paths)
    if os.environ.get("DATABASE_URL"):
        sys.stdout.write("The database of DATABASE_URL is not touched.\n")
    if not agreed(dict(os.environ), sys.stdin.isatty()):
        sys.stdout.write("Nothing was deleted.\n")
        return 1
    for path in paths:
        if path.is_file():
            path.unlink()
        elif path.exists():  # the sockets may lie inside another folder of the list
            shutil.rmtree(path)
    sys.stdout.write("Deleted. The next start begins empty.\n")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    sys.exit(main())

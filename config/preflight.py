"""What `manage.py up` checks and cleans up before it starts anything: ports, the lock, leftovers of a killed start."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import IO

from django.conf import settings

from config import embedded, servers, tether
from config.servers import Problem


def check_host(host: str) -> None:
    """Demo accounts have known passwords: they must not be reachable from elsewhere."""
    if settings.DEMO and host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        raise Problem(
            "Demo mode has known passwords and listens on 127.0.0.1 only: set COUNTERSEAL_DEMO=0 first."
        )


def wanted_port(raw: str) -> int:
    if not raw.isdigit() or not 1 <= int(raw) <= 65535:
        raise Problem(f"PORT={raw!r} is not a port: give a number from 1 to 65535, for example PORT=8001.")
    return int(raw)


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError:
            raise Problem(f"Port {port} needs more rights than we have: set PORT to 1024 or more.") from None
        except OSError:
            return False
    return True


def shop_port(after: int) -> int:
    """The next free port after the application's."""
    for port in range(after + 1, min(after + 51, 65536)):
        if port_is_free("127.0.0.1", port):
            return port
    raise Problem(
        f"No free port for the demo shop between {after + 1} and {after + 50}: set PORT to another range."
    )


def take_lock(path: Path, url: str) -> IO[str]:
    """Hold the state folder. The kernel frees the lock when we die, so it can never be stale."""
    try:
        lock = path.open("a+")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        pid, _, running_at = lock.read().strip().partition(" ")
        raise Problem(
            f"Counterseal already runs at {running_at or 'another port'} (process {pid or 'unknown'}) with the data in "
            f"{embedded.state_dir()}: stop that one, or set COUNTERSEAL_STATE_DIR and PORT to run a second."
        ) from None
    except OSError as error:
        raise Problem(servers.sentence(error, path)) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()} {url}\n")
    lock.flush()
    return lock


def end_leftovers(record: Path) -> None:
    """End what a killed supervisor left behind where the kernel does not do it for us (no PDEATHSIG on macOS)."""
    try:
        children = json.loads(record.read_text())
    except (OSError, ValueError):
        children = {}
    marks = (sys.executable, str(embedded.valkey_socket()), str(servers.data_dir()))
    for name, pid in children.items():
        if any(mark in servers.command_line(pid) for mark in marks):
            gentle = name in ("postgres", "valkey")
            servers.end_process(pid, signal.SIGINT if gentle else signal.SIGKILL, seconds=15)
    servers.stop_stale_postgres()


def follow_make() -> None:
    """Under make, end when make is killed: it cannot tell us any more. Otherwise our parent may go."""
    parent = os.getppid()
    name = Path(servers.command_line(parent).split(" ")[0]).name
    if os.environ.get("MAKELEVEL") and name in ("make", "gmake"):
        tether.die_with_parent(signal.SIGTERM, parent)

"""Real processes for tests: Postgres and Valkey of the test run, shops, workers, web servers, and the browser.

Each dies with the test process, writes its log to a file, and shows it when the test fails (see tests.plugin).
Start them in the main thread: the kernel ties a process to the thread that started it.
"""

from __future__ import annotations

import functools
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import quote

from config import embedded, readiness, servers
from config.plan import CELERY, UVICORN, WARNINGS, http_ok

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "counterseal-test-"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUEUES = "resume,start,default"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(what: Callable[[], object], seconds: float = 30, saying: str = "it did not happen") -> None:
    """Look again every few milliseconds; never a fixed sleep."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"{saying} within {seconds} s"
        time.sleep(0.02)


def current_database_url() -> str:
    """The database this test uses (pytest-django made `test_app`), for child processes."""
    from django.db import connection

    given = connection.settings_dict
    host, port = quote(str(given["HOST"]), safe=""), given["PORT"] or 5432
    return f"postgresql://{given['USER']}@/{given['NAME']}?host={host}&port={port}"


class Process:
    """A child process with a log file."""

    name = "process"
    started: ClassVar[list[Process]] = []  # of this test run, for the logs in failure reports
    before_test: ClassVar[int] = 0  # how many of them were there when the test began
    folder: ClassVar[str] = ""  # of the test that runs
    ready_seconds = 60.0
    stop_signal: int = signal.SIGTERM

    def __init__(self, argv: list[str], env: Mapping[str, str] | None = None) -> None:
        self.argv, self.env = argv, dict(env if env is not None else os.environ)
        self.made_in = Process.folder
        self.user: tuple[int, int] | None = None
        self.cwd = str(ROOT)
        self.popen: subprocess.Popen[bytes] | None = None
        folder = embedded.state_dir() / "logs"
        folder.mkdir(exist_ok=True)
        self.log = folder / f"{self.name}-{len(Process.started) + 1}.log"
        Process.started.append(self)

    def start(self) -> Self:
        """Start it (again) without waiting; its log goes on in the same file."""
        orphan_signal = self.stop_signal if self.user else signal.SIGKILL
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(
                servers.tethered(self.argv, die_by=orphan_signal, user=self.user),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.cwd,
                env=self.env,
                start_new_session=True,
            )
        return self

    def is_ready(self) -> bool:
        return True

    def wait_ready(self, seconds: float | None = None) -> Self:
        """Return when it does its work; fail with its log when it ended or takes too long."""
        deadline = time.monotonic() + (seconds or self.ready_seconds)
        while not self.is_ready():
            assert self.running, f"{self.name} ended with status {self.status}:\n{self.output()}"
            assert time.monotonic() < deadline, f"{self.name} is not ready:\n{self.output()}"
            time.sleep(0.02)
        return self

    @property
    def running(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    @property
    def status(self) -> int | None:
        return self.popen and self.popen.poll()

    @property
    def pid(self) -> int:
        assert self.popen, f"{self.name} was not started"
        return self.popen.pid

    def signal(self, number: int) -> None:
        """To the whole session: a prefork worker has children."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def signal_first(self, number: int) -> None:
        """To the process itself, which tells its children."""
        assert self.popen, f"{self.name} was not started"
        self.popen.send_signal(number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def kill9(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait(10)

    def wait(self, seconds: float) -> int:
        assert self.popen, f"{self.name} was not started"
        return self.popen.wait(seconds)

    def stop(self, seconds: float = 15) -> int:
        """Ask it to end, kill it when it takes too long; its exit status."""
        if self.popen is None:
            return 0
        self.popen.send_signal(self.stop_signal)
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
        self.signal(signal.SIGKILL)
        return self.popen.wait(10)

    def output(self, limit: int = 8_000) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-limit:] if self.log.exists() else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Postgres(Process):
    """The own Postgres of the test run, without fsync."""

    name = "postgres"
    stop_signal = signal.SIGINT

    def __init__(self) -> None:
        program = servers.postgres_program(durable=False)
        super().__init__(program.argv, program.env)
        self.user, self.cwd = program.user, program.cwd

    def is_ready(self) -> bool:
        return servers.postgres_ready()

    def crash(self) -> None:
        """An immediate shutdown, as when the power fails, and a start."""
        self.signal_first(signal.SIGQUIT)
        self.wait(30)
        self.start().wait_ready()


class Valkey(Process):
    """The own Valkey of the test run."""

    name = "valkey"

    def __init__(self) -> None:
        program = servers.valkey_program()
        super().__init__(program.argv, program.env)
        self.cwd = program.cwd

    def is_ready(self) -> bool:
        return servers.valkey_ready()


class Shop(Process):
    """A demo shop on a free port, ready when constructed; `data` survives a `kill9()` and a new `start()`."""

    name = "shop"

    def __init__(
        self, data: Path | None = None, port: int = 0, env: Mapping[str, str] | None = None, more: int = 0
    ) -> None:
        self.data = data or Path(tempfile.mkdtemp(prefix="shop-", dir=embedded.state_dir()))
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        argv = [sys.executable, "-m", "examples.shop", "--port", str(self.port), "--data", str(self.data)]
        argv += ["--more", str(more)]
        super().__init__(argv, {**os.environ, **(env or {})})
        self.start().wait_ready()

    def is_ready(self) -> bool:
        return http_ok("127.0.0.1", self.port)


class Worker(Process):
    """A real Celery worker against the test database. Started when constructed; `wait_ready()` before counting on it.

    `database_url` defaults to the database of the running test, which must commit (`transaction=True`).
    """

    name = "worker"

    def __init__(
        self,
        database_url: str | None = None,
        *,
        pool: str = "threads",
        concurrency: int = 2,
        queues: str = QUEUES,
        env: Mapping[str, str] | None = None,
    ) -> None:
        handle, ready = tempfile.mkstemp(prefix="worker-", suffix=".ready", dir=embedded.state_dir())
        os.close(handle)
        self.ready_file = Path(ready)
        name = f"test{len(Process.started) + 1}@%h"
        argv = [sys.executable, "-m", *CELERY, "worker", "-n", name, "-P", pool, "-c", str(concurrency)]
        argv += ["-Q", queues, "-I", "config.readiness", "-l", "INFO", "--without-gossip", "--without-mingle"]
        super().__init__(argv, child_environment("worker", database_url, env))
        self.env[readiness.READY_FILE] = ready
        self.start()

    def start(self) -> Self:
        self.ready_file.unlink(missing_ok=True)
        return super().start()

    def is_ready(self) -> bool:
        return self.ready_file.exists()


class Web(Process):
    """A real web process on a free port against the test database, ready when constructed."""

    name = "web"

    def __init__(
        self, database_url: str | None = None, *, port: int = 0, env: Mapping[str, str] | None = None
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        argv = [sys.executable, "-m", "uvicorn", "config.asgi:application", "--host", "127.0.0.1"]
        argv += ["--port", str(self.port), *UVICORN]
        super().__init__(argv, child_environment("web", database_url, env))
        self.start().wait_ready()

    def is_ready(self) -> bool:
        return http_ok("127.0.0.1", self.port)


def child_environment(
    process: str, database_url: str | None, more: Mapping[str, str] | None
) -> dict[str, str]:
    """Ours, with the test database in place of the one that the plugin named."""
    given = {"COUNTERSEAL_PROCESS": process, "DATABASE_URL": database_url or current_database_url()}
    return {"PYTHONWARNINGS": WARNINGS, **os.environ, "PYTHONUNBUFFERED": "1", **given, **(more or {})}


# --- The browser ------------------------------------------------------------------------------------------------------
class NoBrowser(AssertionError):
    """Fails a test (never skips it) and says what to install."""


@functools.cache
def chromium_path() -> str:
    """A Chromium that starts: CHROMIUM, one on PATH, or Playwright's own."""
    on_path = [shutil.which(name) for name in BROWSERS]
    for path in (os.environ.get("CHROMIUM"), *on_path, *playwright_browsers()):
        if path and _starts(path):
            return path
    raise NoBrowser(
        "The browser tests need Chromium: `apt-get install chromium` or `.venv/bin/playwright install chromium`, "
        "or name one with CHROMIUM=/path/to/chromium."
    )


def playwright_browsers() -> list[str]:
    """Where `playwright install chromium` puts it, the newest first."""
    folders = [os.environ.get("PLAYWRIGHT_BROWSERS_PATH", ""), os.path.expanduser("~/.cache/ms-playwright")]
    folders.append(os.path.expanduser("~/Library/Caches/ms-playwright"))
    patterns = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")
    return [
        path
        for folder in folders
        if folder
        for pattern in patterns
        for path in sorted(glob.glob(os.path.join(folder, pattern)), reverse=True)
    ]


def _starts(path: str) -> bool:
    """Some systems put a stub on PATH that only asks for another installer."""
    try:
        shown = [path, "--no-sandbox", "--version"]
        return subprocess.run(shown, capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False

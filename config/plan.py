"""What one machine runs (`manage.py up`): each process with its command, environment and sign of readiness."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from shlex import split

from django.conf import settings

from config import embedded, preflight, readiness, servers
from config.servers import Program

WORKERS, THREADS = 2, 4  # two processes of four threads: measured as the fastest on a small machine
GRACE_SECONDS = 5.0
# Known and meant: a container may be root, the flag's new name is not in every uvicorn, the files are found without
# `collectstatic`, and they are read from the disk, which is not asynchronous.
WARNINGS = ",".join(
    f"ignore:{start}"
    for start in (
        "You're running the worker with superuser",
        "The `websockets` implementation is deprecated",
        "No directory at",
        "StreamingHttpResponse must consume synchronous",
    )
)
UVICORN = split(
    "--lifespan off --log-level warning --no-use-colors --timeout-graceful-shutdown 3 "
    "--ws websockets --ws-ping-interval 20 --ws-ping-timeout 40 --ws-max-size 65536"
)
CELERY = split("celery -q -A config.celery")
WORKER = split(
    "-P threads -Q resume,start,default -I config.readiness -l WARNING --without-gossip --without-mingle"
)
BEAT = split("beat -S celery.beat:Scheduler --pidfile= -l WARNING")


@dataclass
class Child:
    """One process that is kept running."""

    name: str
    program: Program
    ready: Callable[[], bool] | None = None
    before: Callable[[], object] | None = None  # what must be cleaned up before each start
    grace: float = GRACE_SECONDS
    process: asyncio.subprocess.Process | None = None
    failures: list[float] = field(default_factory=list)
    came_up: bool = False  # its last start got ready: what ended it may pass
    last_line: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    @property
    def orphan_signal(self) -> int:
        """What it gets when the supervisor is killed: the servers close their files, the others end at once."""
        return self.program.stop_signal if self.name in ("postgres", "valkey") else signal.SIGKILL

    def kill(self) -> None:
        """End whatever is left of its session."""
        if not self.pid:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return


class Plan:
    """The processes of one start, for one address."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.folder = settings.STATE_DIR / "run"
        self.gate = self.folder / "gate"
        self.shop_url = os.environ.get("COUNTERSEAL_SHOP_URL", "")
        self.shop_port = 0 if self.shop_url or not settings.DEMO else preflight.shop_port(port)
        if self.shop_port:
            self.shop_url = f"http://127.0.0.1:{self.shop_port}"

    def servers(self) -> list[Child]:
        """The own Postgres and Valkey, each unless a URL names another one."""
        children = []
        if settings.EMBEDDED_POSTGRES:
            program, clean = servers.postgres_program(), servers.stop_stale_postgres
            children.append(Child("postgres", program, servers.postgres_ready, clean, grace=15))
        if settings.EMBEDDED_REDIS:
            children.append(Child("valkey", servers.valkey_program(), servers.valkey_ready))
        return children

    def prepare(self) -> Child:
        return self.module("prepare", "command", ["config.prepare"])

    def application(self) -> list[Child]:
        """Web and, in demo mode, the shop."""
        web = ["uvicorn", "config.asgi:application", "--host", self.host, "--port", str(self.port), *UVICORN]
        children = [self.module("web", "web", web, lambda: http_ok(self.host, self.port))]
        if self.shop_port:
            data = str(settings.STATE_DIR / "shop")
            shop = ["examples.shop", "--port", str(self.shop_port), "--data", data]
            children.append(
                self.module("shop", "command", shop, lambda: http_ok("127.0.0.1", self.shop_port))
            )
        return children

    def more_workers(self) -> list[Child]:
        return [self.worker(number) for number in range(2, WORKERS + 1)]

    def worker(self, number: int) -> Child:
        ready = self.folder / f"worker-{number}.ready"
        argv = [*CELERY, "worker", "-n", f"worker{number}@%h", "-c", str(THREADS), *WORKER]
        child = self.module(f"worker-{number}", "worker", argv, ready.exists)
        child.before = lambda: ready.unlink(missing_ok=True)
        child.program.env.update({readiness.READY_FILE: str(ready), readiness.GATE_FILE: str(self.gate)})
        return child

    def beat(self) -> Child:
        return self.module("beat", "beat", [*CELERY, *BEAT])

    def module(
        self, name: str, process: str, argv: list[str], ready: Callable[[], bool] | None = None
    ) -> Child:
        env = (
            {"PYTHONWARNINGS": WARNINGS}
            | os.environ
            | {"COUNTERSEAL_PROCESS": process, "PYTHONUNBUFFERED": "1"}
        )
        if self.shop_url:
            env["COUNTERSEAL_SHOP_URL"] = self.shop_url
        return Child(name, Program([sys.executable, "-m", *argv], env=env, cwd=str(embedded.BASE_DIR)), ready)


def http_ok(host: str, port: int) -> bool:
    """Whether its health page answers 200."""
    link = http.client.HTTPConnection(host, port, timeout=2)
    try:
        link.request("GET", "/healthz")
        return link.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        link.close()

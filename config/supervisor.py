"""Runs everything on one machine: starts in order, restarts what crashes, leaves no process behind.

`make run` calls this module and not `manage.py up`, which loads every model first and so starts seconds later.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine
from typing import Any

from django.conf import settings

from config import preflight, servers
from config.console import Console
from config.plan import Child, Plan
from config.servers import Problem

START_SECONDS = 90.0
FAILURES, WINDOW_SECONDS = 5, 60.0
LONG_PAUSE = 15.0  # after so many failures of a process that works in between
LINE_LIMIT = 8_000
NOISE = {  # what the servers say when all is well, or as advice for large machines
    "postgres": (
        "system is starting up",
        "not yet accepting",
        "Consistent recovery state",
        "system is shutting down",
        "due to administrator command",
    ),
    "worker": ("Warm shutdown",),
    "valkey": ("Memory overcommit", "scheduling shutdown", "ready to exit"),
}
LAST_TO_STOP = ("valkey", "postgres")
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEMO_ACCOUNTS = "(demo accounts: rita, sam, ada, otto; password: counterseal)"


class Supervisor:
    """Starts the children in order, watches them, stops them in reverse order."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self.plan, self.console = plan, console
        self.children: list[Child] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.status = 0

    async def run(self) -> int:
        """Everything from the first process to the last; the result is the exit status."""
        self.stopping, self.hurry = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOPPING_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # `nohup`
                loop.add_signal_handler(number, self.on_signal)
        await self.guarded(self.start_all())
        await self.stopping.wait()
        await self.stop_all()
        return self.status

    async def guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do a part of the start; what stops it becomes the reason to stop, while its neighbours end in order."""
        try:
            await work
        except Problem as problem:
            self.give_up(str(problem))
        except OSError as error:
            self.give_up(servers.sentence(error, self.plan.folder))

    def on_signal(self) -> None:
        """The first signal asks, the second one insists."""
        (self.hurry if self.stopping.is_set() else self.stopping).set()

    def give_up(self, reason: str) -> None:
        if not self.stopping.is_set():
            self.status = 1
            self.stopping.set()
            self.console.plain(f"Counterseal stops: {reason}")

    # --- Starting -----------------------------------------------------------------------------------------------------
    async def start_all(self) -> None:
        """The first worker at once, as loading the engine takes longest; it waits at the gate for all the rest."""
        began = time.monotonic()
        self.plan.gate.unlink(missing_ok=True)
        own_servers = await asyncio.to_thread(self.plan.servers)
        await asyncio.gather(self.start([self.plan.worker(1)]), self.start_rest(own_servers))
        if self.stopping.is_set():
            return
        self.console.line("up", f"started in {time.monotonic() - began:.1f} s; Ctrl-C stops it")
        suffix = f"  {DEMO_ACCOUNTS}" if settings.DEMO else ""
        self.console.plain(f"Counterseal is ready at {self.plan.url}{suffix}")
        await self.start(self.plan.more_workers())  # only now: they would slow down the first one

    async def start_rest(self, own_servers: list[Child]) -> None:
        """The own servers; tables and demo data, while the web process loads; then the clock."""
        await self.start(own_servers)
        await asyncio.gather(self.start(self.plan.application()), self.guarded(self.prepare()))
        await self.start([self.plan.beat()])

    async def prepare(self) -> None:
        """Tables and demo data, then open the gate for the workers; a failure ends the start."""
        if self.stopping.is_set():
            return
        child = self.plan.prepare()
        self.children.append(child)
        began = time.monotonic()
        await self.spawn(child)
        code = await self.ended_or_stopping(child)
        if self.stopping.is_set():
            return
        self.children.remove(child)
        if code:
            await self.output_end(child)
            self.give_up(f"preparing the database failed: {child.last_line or 'it said nothing'}")
            return
        self.plan.gate.touch()
        self.console.line("up", f"the database is prepared ({time.monotonic() - began:.1f} s)")

    async def start(self, children: list[Child]) -> None:
        """Start several side by side and return when all are ready, or when we are told to stop."""
        if not self.stopping.is_set():
            self.children += children
            await asyncio.gather(*(self.guarded(self.start_one(child)) for child in children))

    async def start_one(self, child: Child) -> None:
        began = time.monotonic()
        await self.spawn(child)
        if not await self.wait_ready(child):
            await self.output_end(child)
            self.give_up(f"{child.name} did not start: {child.last_line or 'it said nothing'}")
        elif not self.stopping.is_set():
            self.say(f"{child.name} is up, process {child.pid} ({time.monotonic() - began:.1f} s)")
            self.in_background(self.watch(child))

    async def spawn(self, child: Child) -> None:
        """Start the process in a session of its own, so that Ctrl-C reaches only us."""
        if child.before:
            await asyncio.to_thread(child.before)
        program, child.last_line = child.program, ""
        child.process = await asyncio.create_subprocess_exec(
            *servers.tethered(program.argv, die_by=child.orphan_signal, user=program.user),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env=program.env,
            cwd=program.cwd,
        )
        self.remember()
        self.in_background(self.copy_output(child, child.process.stdout), f"output of {child.name}")

    async def wait_ready(self, child: Child) -> bool:
        """True when it is ready or we stop; False when it ended or takes too long."""
        deadline = time.monotonic() + START_SECONDS
        while child.ready and not self.stopping.is_set():
            if await asyncio.to_thread(child.ready):
                return child.running
            if not child.running or time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.05)
        return True

    def remember(self) -> None:
        """Note the processes for a next start that has to clean up after us."""
        try:
            (self.plan.folder / "children.json").write_text(
                json.dumps({child.name: child.pid for child in self.children if child.running})
            )
        except OSError:  # a full disk: the kernel ends our children anyway
            return

    # --- Watching -----------------------------------------------------------------------------------------------------
    async def watch(self, child: Child) -> None:
        """Start it again each time it ends by itself, ever later; give up when it keeps failing."""
        while not self.stopping.is_set():
            code = await self.ended_or_stopping(child)
            if code is None or self.stopping.is_set():
                return
            now = time.monotonic()
            child.failures = [at for at in child.failures if now - at < WINDOW_SECONDS] + [now]
            child.kill()
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            self.say(f"{child.name} {how} ({len(child.failures)} in {WINDOW_SECONDS:.0f} s)")
            often = len(child.failures) >= FAILURES
            if often and not child.came_up:
                await self.output_end(child)
                last = child.last_line or how
                self.give_up(f"{child.name} failed {FAILURES} times within a minute, last: {last}")
                return
            await self.pause(LONG_PAUSE if often else min(0.2 * 2 ** (len(child.failures) - 1), 5.0))
            await self.restart(child)

    async def restart(self, child: Child) -> None:
        if self.stopping.is_set():
            return
        began = time.monotonic()
        await self.spawn(child)
        is_ready = await self.wait_ready(child)
        child.came_up = is_ready and child.ready is not None
        if self.stopping.is_set():
            return
        if is_ready:
            self.say(f"{child.name} is back, process {child.pid} ({time.monotonic() - began:.1f} s)")
        elif child.running:
            self.say(f"{child.name} does not answer after {START_SECONDS:.0f} s: ending it")
            child.kill()

    async def ended_or_stopping(self, child: Child) -> int | None:
        """Wait for the end of a process; None when we have to stop before."""
        assert child.process
        ended = asyncio.ensure_future(child.process.wait())
        stopping = asyncio.ensure_future(self.stopping.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        return child.process.returncode

    async def pause(self, seconds: float) -> None:
        """Sleep, but wake up when we stop."""
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return

    # --- Output -------------------------------------------------------------------------------------------------------
    def say(self, text: str) -> None:
        self.console.line("up", text)

    async def copy_output(self, child: Child, stream: asyncio.StreamReader | None) -> None:
        """Pass its lines on; very long ones are cut, so that no child can fill our memory."""
        rest = b""
        while stream and (block := await stream.read(65536)):
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > LINE_LIMIT:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self.output_line(child, line)
        self.output_line(child, rest)

    def output_line(self, child: Child, line: bytes) -> None:
        text = line[:LINE_LIMIT].decode(errors="replace").rstrip()
        if text and not any(words in text for words in NOISE.get(child.name.partition("-")[0], ())):
            child.last_line = text
            self.console.line(child.name, text)

    async def output_end(self, child: Child) -> None:
        """Wait until the last words of an ended process are read."""
        readers = [task for task in self.tasks if task.get_name() == f"output of {child.name}"]
        if readers:
            await asyncio.wait(readers, timeout=1)

    def in_background(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # --- Stopping -----------------------------------------------------------------------------------------------------
    async def stop_all(self) -> None:
        """First what uses the servers, then Valkey, then Postgres."""
        self.stopping.set()
        began = time.monotonic()
        await asyncio.gather(*(self.halt(child) for child in self.children if child.name not in LAST_TO_STOP))
        for name in LAST_TO_STOP:
            await asyncio.gather(*(self.halt(child) for child in self.children if child.name == name))
        self.say(f"stopped after {time.monotonic() - began:.1f} s")

    async def halt(self, child: Child) -> None:
        """Ask, wait, then kill the whole session of the child."""
        if child.process is None:
            return
        if child.running:
            child.process.send_signal(child.program.stop_signal)
            ended = asyncio.ensure_future(child.process.wait())
            hurried = asyncio.ensure_future(self.hurry.wait())
            await asyncio.wait({ended, hurried}, timeout=child.grace, return_when=asyncio.FIRST_COMPLETED)
            hurried.cancel()
        child.kill()
        await child.process.wait()
        await self.output_end(child)


def main(host: str, port: str) -> int:
    """Check, lock, clean up, run. The result is the exit status."""
    try:
        number = preflight.wanted_port(port)
        preflight.check_host(host)
        servers.prepare()
        folder = settings.STATE_DIR / "run"
        folder.mkdir(exist_ok=True)
        with preflight.take_lock(folder / "lock", f"http://{host}:{number}"):
            preflight.end_leftovers(folder / "children.json")
            if not preflight.port_is_free(host, number):
                raise Problem(
                    f"Port {number} is taken by another program: choose one, such as PORT={number + 10}."
                )
            plan = Plan(host, number)
            preflight.follow_make()
            console = Console()
            status = asyncio.run(Supervisor(plan, console).run())
            console.close()
        return status
    except Problem as problem:
        sys.stderr.write(f"Counterseal cannot start: {problem}\n")
    except OSError as error:
        sys.stderr.write(f"Counterseal cannot start: {servers.sentence(error, settings.STATE_DIR)}\n")
    return 1


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("COUNTERSEAL_PROCESS", "command")
    sys.exit(main("127.0.0.1", os.environ.get("PORT") or "8000"))

"""What ends is started again; what cannot work ends everything; what works in between is never given up."""

from __future__ import annotations

import asyncio
import os
import pathlib
import sys
from types import SimpleNamespace

from config import supervisor
from config.plan import Child
from config.servers import Program
from config.supervisor import Supervisor


def failing(tmp_path, *, gets_ready):
    """A process that writes one byte and ends; ready as soon as it has written, or never."""
    log = tmp_path / "starts"
    log.touch()
    code = f"import os; f = open({str(log)!r}, 'a'); f.write('.'); f.close(); raise SystemExit(3)"
    program = Program([sys.executable, "-I", "-c", code], env=dict(os.environ), cwd=str(tmp_path))
    child = Child("worker-1", program)
    seen = [0]

    def ready():
        grown = len(log.read_text()) > seen[0]
        seen[0] = len(log.read_text())
        return grown and gets_ready

    child.ready = ready
    return child, log


async def watched(child, until):
    said = SimpleNamespace(line=lambda *_: None, plain=lambda *_: None)
    desk = Supervisor(SimpleNamespace(folder=pathlib.Path(child.program.cwd)), said)
    desk.stopping, desk.hurry = asyncio.Event(), asyncio.Event()
    await desk.spawn(child)
    watching = asyncio.create_task(desk.watch(child))
    async with asyncio.timeout(60):
        while not watching.done() and not until():
            await asyncio.wait([watching], timeout=0.02)
    desk.stopping.set()
    await watching
    return desk


def test_what_never_gets_ready_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "LONG_PAUSE", 0.01)
    child, log = failing(tmp_path, gets_ready=False)
    desk = asyncio.run(watched(child, until=lambda: False))
    assert (desk.status, len(log.read_text())) == (1, supervisor.FAILURES)


def test_what_works_in_between_is_not_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "LONG_PAUSE", 0.01)
    child, log = failing(tmp_path, gets_ready=True)
    desk = asyncio.run(watched(child, until=lambda: len(log.read_text()) > supervisor.FAILURES + 2))
    assert desk.status == 0

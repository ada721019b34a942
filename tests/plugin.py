"""Loaded first (`-p tests.plugin`): gives the test run its own Postgres and Valkey, never the developer's.

The environment is set when this module is imported, because pytest-django reads the settings right after.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from config import embedded
from tests import services

_state: Path | None = None
_running: list[services.Process] = []


def make_environment() -> Path:
    """A fresh state folder, and settings that depend on nothing but the repository."""
    for name in [name for name in os.environ if name.startswith("COUNTERSEAL_")]:
        del os.environ[name]
    parent = Path(tempfile.gettempdir())
    if embedded.RUNS_AS_ROOT and not embedded.open_to_others(parent):
        parent = Path("/tmp")
    remove_abandoned(parent)
    state = Path(tempfile.mkdtemp(prefix=f"{services.PREFIX}{os.getpid()}-", dir=parent))
    (state / "static").mkdir()  # WhiteNoise warns when there is none
    os.environ |= {
        "COUNTERSEAL_STATE_DIR": str(state),
        "COUNTERSEAL_DEMO": "1",
        "COUNTERSEAL_SECRET_KEY": "only-for-tests-" * 4,
        "LANGSMITH_TRACING": "false",
    }
    os.environ |= {"DATABASE_URL": embedded.database_url(), "REDIS_URL": embedded.valkey_url(0)}
    return state


def remove_abandoned(parent: Path) -> None:
    """Folders of test runs that were killed."""
    for folder in parent.glob(f"{services.PREFIX}*-*"):
        pid = folder.name.removeprefix(services.PREFIX).split("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start both servers; a signal that would end us silently becomes an orderly end."""
    if session.config.option.collectonly:
        return
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("ended by SIGTERM", returncode=143))
    from config import servers

    try:
        servers.prepare()
        _running.extend((services.Postgres().start(), services.Valkey().start()))
    except servers.Problem as problem:
        raise pytest.UsageError(f"The tests cannot start: {problem}") from None
    for process in _running:
        process.wait_ready()


def server[Kind: services.Process](kind: type[Kind]) -> Kind:
    """The Postgres or the Valkey of this run, for tests that harm it."""
    (found,) = (process for process in _running if isinstance(process, kind))
    return found


def pytest_report_header() -> str:
    return f"own Postgres and Valkey in {_state}"


def pytest_runtest_logstart(nodeid: str) -> None:
    """Remember which processes were there before the test, and whose test it is."""
    services.Process.before_test = len(services.Process.started)
    services.Process.folder = os.path.dirname(nodeid.partition("::")[0])


def pytest_runtest_call() -> None:
    """A worker that another folder's tests have left running would take our work, with its own shop and models."""
    here = services.Process.folder
    foreign = [p.log.name for p in services.Process.started if p.running and p.made_in not in ("", here)]
    assert not foreign, f"still running here: {foreign}; the fixture that started them lives too long"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    """Add the logs of this test's processes, and of those still running, to a failure."""
    report = yield
    if report.failed:
        for number, process in enumerate(services.Process.started):
            if number >= services.Process.before_test or process.running:
                report.sections.append((f"log of {process.log.name}", process.output()))
    return report


def pytest_unconfigure() -> None:
    """Stop everything, the servers last, and remove the folder."""
    leftovers = [process for process in services.Process.started if process not in _running]
    for process in (*reversed(leftovers), *reversed(_running)):
        process.stop()
    if _state:
        shutil.rmtree(_state, ignore_errors=True)


_state = make_environment()

"""Kill points for fault tests: `faults.point("L3")` ends this process at a chosen instant. Free when switched off.

Every audited change of state is a point of its action's name, between its writes and its commit (`services.audit`).

Set COUNTERSEAL_FAULTS to a folder. A plan file in it is named after the thread id and holds one point per line:
`NAME` (kill -9 this process), `NAME:worker` (kill -9 the Celery parent first) or `NAME:freeze` (stop this process where
it stands; it may be woken). Lines fire top down, once each, so `L3` followed by `L2` is a crash in the middle of the
repair of an earlier crash.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_FOLDER = os.environ.get("COUNTERSEAL_FAULTS")


def is_on() -> bool:
    return _FOLDER is not None


def point(name: str, thread_id: str, *, settle: float = 0.0) -> None:
    """Die here if the plan of this thread says so. `settle`: wait first, e.g. until the provider has committed."""
    if _FOLDER is None:
        return
    for plan in (Path(_FOLDER) / thread_id, Path(_FOLDER) / "any"):  # "any": a thread that has no id yet
        try:
            lines = plan.read_text().split()
        except OSError:
            continue
        if lines and lines[0].partition(":")[0] == name:
            _die(plan, lines, thread_id, settle)


def _die(plan: Path, lines: list[str], thread_id: str, settle: float) -> None:
    time.sleep(settle)
    if rest := lines[1:]:
        plan.write_text("\n".join(rest))
    else:
        plan.unlink()
    with plan.with_name("fired.log").open("a") as log:
        log.write(f"{thread_id} {lines[0]} pid={os.getpid()}\n")
    if lines[0].endswith(":worker"):
        parent = os.getppid()  # an orphan's parent is pid 1: never signal that
        if parent > 1 and b"celery" in Path(f"/proc/{parent}/cmdline").read_bytes():
            os.kill(parent, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGSTOP if lines[0].endswith(":freeze") else signal.SIGKILL)

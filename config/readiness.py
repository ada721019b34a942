"""Loaded into each worker (`celery worker -I config.readiness`): holds it at a gate, and says when it really consumes.

The slow imports of a worker run while the tables are still being prepared; the gate keeps it from working too early.
"""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from celery import current_app
from celery.signals import worker_ready

READY_FILE = "COUNTERSEAL_READY_FILE"
GATE_FILE = "COUNTERSEAL_GATE_FILE"


def wait_at_gate() -> None:
    """Import what the worker needs, then wait until the supervisor opens the gate; without one go on at once."""
    if name := os.environ.get(GATE_FILE):
        for module in current_app.conf.include:
            import_module(module)
        while not Path(name).exists():
            time.sleep(0.02)


@worker_ready.connect
def say_ready(**_: Any) -> None:
    """Touch the file that the supervisor (or a test) waits for."""
    if name := os.environ.get(READY_FILE):
        Path(name).touch()


wait_at_gate()

"""The web process starts light: it never loads LangChain or LangGraph, not even by a detour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("langchain", "langgraph", "langsmith", "deepagents", "openai", "anthropic", "celery.app.trace")
MEGABYTES = 150

# Every view, route and template tag that a request could reach is imported before looking.
SCRIPT = """
import sys
import config.asgi
from django.urls import get_resolver
from django.template import engines
patterns = get_resolver().url_patterns
assert patterns
engines.all()
heavy = sorted(name for name in sys.modules if name.startswith({heavy!r}))
print(heavy)
print(memory())
"""

# Not getrusage: on Linux its peak is inherited from the process that started this one.
MEMORY = """
from pathlib import Path
def memory():
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) // 1024
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 // 1024
"""


def test_no_engine_is_loaded_and_the_memory_is_small():
    done = subprocess.run(
        [sys.executable, "-c", MEMORY + SCRIPT.format(heavy=HEAVY)], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"COUNTERSEAL_PROCESS": "web"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    heavy, megabytes = done.stdout.splitlines()
    assert heavy == "[]"
    assert int(megabytes) < MEGABYTES

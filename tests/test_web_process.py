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
import resource, sys
import config.asgi
from django.urls import get_resolver
from django.template import engines
patterns = get_resolver().url_patterns
assert patterns
engines.all()
heavy = sorted(name for name in sys.modules if name.startswith({heavy!r}))
print(heavy)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // {unit})
"""


def test_no_engine_is_loaded_and_the_memory_is_small():
    unit = 1024 if sys.platform.startswith("linux") else 1024 * 1024
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY, unit=unit)], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"COUNTERSEAL_PROCESS": "web"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    heavy, megabytes = done.stdout.splitlines()
    assert heavy == "[]"
    assert int(megabytes) < MEGABYTES

"""The rules of the house, held by tests: imports, names, templates, registered tasks."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSES = ("config", "approvals", "agents", "middleware")


def test_imports_point_down_only():
    linted = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert re.search(r"Contracts: 5 kept, 0 broken", linted.stdout), linted.stdout


def test_no_distribution_installs_a_package_with_the_name_of_a_house():
    clashes = {
        f"{dist.metadata['Name']}: {file}"
        for dist in importlib.metadata.distributions()
        for file in dist.files or ()
        if file.parts and file.parts[0].removesuffix(".py") in HOUSES
    }
    assert clashes == set()


def test_every_name_that_services_dispatch_is_a_registered_task():
    from approvals import dispatch
    from config.celery import app

    app.loader.import_default_modules()
    assert dispatch.DRIVE in app.tasks
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert scheduled <= set(app.tasks)


def test_celery_never_waits_for_ever_and_never_loses_a_killed_workers_message():
    from config.celery import VISIBILITY_SECONDS, app

    options = app.conf.broker_transport_options
    assert options["visibility_timeout"] == app.conf.visibility_timeout == VISIBILITY_SECONDS
    assert options["socket_timeout"] == 5
    assert options["unacked_restore_throttle"] == 1
    assert app.conf.task_acks_late
    assert app.conf.task_reject_on_worker_lost
    assert app.conf.worker_prefetch_multiplier == 1


FORBIDDEN_IN_TEMPLATES = {
    "inline style": r"\sstyle=|<style",
    "inline script": r"<script(?![^>]*\ssrc=)|\son[a-z]+=",
    "evaluated htmx": r"hx-on|hx-vars|js:|javascript:|hx-trigger=\"[^\"]*\[",
    "htmx that swaps too much": r"hx-boost|hx-ext|ws-connect",
    "unescaped text": r"\|safe\b|autoescape off|mark_safe",
    "named button": r"<button[^>]*\sname=",
}


@pytest.mark.parametrize("kind", FORBIDDEN_IN_TEMPLATES)
def test_templates_keep_the_content_policy(kind):
    pattern = re.compile(FORBIDDEN_IN_TEMPLATES[kind])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


def test_no_path_of_one_machine_is_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pattern = re.compile(r"/(root|home)/[a-z]+/")
    found = [
        name
        for name in listed.splitlines()
        if name.endswith((".py", ".md", ".toml", ".txt", ".yaml", ".html", ".js", ".css", ".in"))
        and pattern.search((ROOT / name).read_text(errors="replace"))
    ]
    assert found == []


def test_every_test_that_a_document_names_exists():
    """`docs/middleware.md` is written from the catalogue and names those of `tests/middleware` without their folder."""
    named = {
        (document.name, path if "/" in path else f"middleware/{path}", name)
        for document in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
        for path, name in re.findall(r"`(?:tests/)?([\w/]+\.py)::(\w+)`", document.read_text())
    }
    assert {document for document, *_ in named} >= {"failures.md", "middleware.md", "0007-belts.md"}
    there = {path: (ROOT / "tests" / path).read_text() for path in {path for _, path, _ in named}}
    assert [
        test for test in sorted(named) if not re.search(rf"(def|class) {test[2]}\b", there[test[1]])
    ] == []

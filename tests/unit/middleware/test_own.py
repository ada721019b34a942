"""An own middleware: made by the command, found by itself, with a test that passes; its faults are told."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from middleware.own.base import Options, Own, can_jump_to
from middleware.stack import lint
from tests.unit.middleware.stacks import GOOD, TOOLS

ROOT = Path(__file__).resolve().parents[3]
LOOK = """
import middleware.own
middleware.own.__path__.append({folder!r})
from middleware import catalogue, handbook
assert "quiet_hours" in catalogue.ENTRIES
assert "### Quiet hours" in handbook.page()
from middleware.stack import lint
print([f.text for f in lint([{{"use": "quiet_hours"}}, {{"use": "write_guard"}}], {{}}) if f.level == "error"])
import sys
print([m for m in sys.modules if m.startswith("langchain")])
from middleware.picture import look
print(look([{{"use": "quiet_hours"}}], {{}}))
"""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    call_command("new_middleware", "quiet_hours", into=str(tmp_path), stdout=StringIO())
    return tmp_path


def test_a_new_one_is_in_the_catalogue_the_handbook_and_the_picture_without_touching_another_file(made):
    code = LOOK.format(folder=str(made / "middleware" / "own"))
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    *light, drawn = done.stdout.splitlines()
    assert light == ["[]", "[]"], done.stderr
    assert drawn == str(
        [{"use": "quiet_hours", "hooks": ["before_model", "after_model", "wrap_tool_call"], "error": ""}]
    )


def test_its_unit_test_passes(made):
    folder = made / "alone"  # the tests of the repository are a package, which theirs would hide
    (made / "tests" / "unit" / "middleware" / "own").rename(folder)
    (folder / "conftest.py").write_text(
        f"import middleware.own\nmiddleware.own.__path__.append({str(made / 'middleware' / 'own')!r})\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(made),
        "-p",
        "no:cacheprovider",
    ]
    command += ["-p", "no:django", "-p", "no:pytest_django", "--import-mode=importlib", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


@pytest.mark.parametrize("bad", ["Quiet", "quiet-hours", "base", "pii", "_x", "x" * 41, "../x"])
def test_a_name_that_cannot_be_used_is_refused(bad, tmp_path):
    with pytest.raises(CommandError):
        call_command("new_middleware", bad, into=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


class Jumps:
    def before_model(self, state, runtime):
        return {"jump_to": "end"} if state else None


class Marked:
    @can_jump_to("end")
    def before_model(self, state, runtime):
        return {"jump_to": "end"}


def own(hooks: type) -> Own:
    return Own(label="x", summary="x", help="x", options=Options, hooks=hooks)


def test_a_jump_that_langchain_would_ignore_is_an_error(monkeypatch):
    from middleware import catalogue

    entries = {"jumps": own(Jumps).entry("tests", "jumps"), "marked": own(Marked).entry("tests", "marked")}
    monkeypatch.setattr(catalogue, "ENTRIES", {**catalogue.ENTRIES, **entries})
    (finding,) = lint([{"use": "jumps"}, *GOOD], TOOLS)
    assert (finding.level, finding.code) == ("error", "jump-undeclared")
    assert lint([{"use": "marked"}, *GOOD], TOOLS) == []


def test_one_without_hooks_is_refused():
    with pytest.raises(ValueError, match="no hook"):
        own(SimpleNamespace).entry("tests", "nothing")

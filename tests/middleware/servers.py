"""Two more loopback providers: OpenAI's moderation beside its chat, and Amazon Bedrock's Converse."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any

from tests.providers.loopback import (
    Call,
    Json,
    Loopback,
    Received,
    Refuse,
    Result,
    Say,
    Turn,
    needs,
    only,
    tokens,
)
from tests.providers.openai_server import OpenAIServer

MODERATIONS, DECISIONS = "/v1/moderations", "/v1/decisions"
CATEGORIES = ("harassment", "hate", "illicit", "self-harm", "sexual", "violence")


class Moderating(OpenAIServer):
    """Flags a text that contains the word `flagged` as violence; answers decisions with `decided`."""

    decided: Mapping[str, Json] = {}  # name of a question -> its answer

    def check(self, request: Received) -> None:
        if request.path not in (MODERATIONS, DECISIONS):
            super().check(request)

    def read(self, request: Received) -> Turn:
        if request.path == DECISIONS:
            only(request.body, "model input questions", "request")
            needs(request.body["questions"], "questions: at least one is needed")
            return Turn("decide")
        if request.path != MODERATIONS:
            return super().read(request)
        only(request.body, "input model", "request")
        needs(isinstance(request.body["input"], str), "input: a text is needed")
        return Turn(request.body["input"])

    def whole(self, request: Received, say: Say, calls: list[Call]) -> Json:
        if request.path == DECISIONS:
            asked = [question["name"] for question in request.body["questions"]]
            answers = [{"name": name, **self.decided[name]} for name in asked]
            return {"model": request.body["model"], "answers": answers, "usage": {"input_tokens": 5}}
        if request.path != MODERATIONS:
            return super().whole(request, say, calls)
        bad = "flagged" in request.body["input"]
        result = {
            "flagged": bad,
            "categories": {name: bad and name == "violence" for name in CATEGORIES},
            "category_scores": {name: float(bad and name == "violence") for name in CATEGORIES},
            "category_applied_input_types": {name: ["text"] for name in CATEGORIES},
        }
        return {"id": f"modr-{uuid.uuid4().hex}", "model": request.body["model"], "results": [result]}

    @property
    def moderated(self) -> list[str]:
        return [received.body["input"] for received in self.received if received.path == MODERATIONS]


class BedrockServer(Loopback):
    """Converse without streaming, for Claude on Bedrock."""

    provider = "bedrock"

    def key_of(self, headers: Mapping[str, str]) -> str:
        signed = headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 Credential=loopback/")
        return self.key if signed else "unsigned"

    def call_id(self) -> str:
        return f"tooluse_{self.new_id()}"

    def check(self, request: Received) -> None:
        if not re.fullmatch(r"/model/[^/]+/converse", request.path):
            raise Refuse("UnknownOperationException", 404)
        only(
            request.body,
            "messages system toolConfig inferenceConfig additionalModelRequestFields additionalModelResponseFieldPaths",
            "request",
        )

    def read(self, request: Received) -> Turn:
        text, results, uses = "", [], {}
        for message in request.body["messages"]:
            for block in message["content"]:
                if "toolUse" in block:
                    use = block["toolUse"]
                    uses[use["toolUseId"]] = Call(use["toolUseId"], use["name"], json.dumps(use["input"]))
                elif "toolResult" in block:
                    found = block["toolResult"]
                    results.append(Result(uses[found["toolUseId"]], json.dumps(found["content"])))
                elif "text" in block and message["role"] == "user":
                    text, results = block["text"], []
        return Turn(text, tuple(results))

    def whole(self, request: Received, say: Say, calls: list[Call]) -> Json:
        content: list[Any] = [{"text": say.text}] if say.text else []
        content += [{"toolUse": {"toolUseId": c.id, "name": c.name, "input": c.values}} for c in calls]
        said = tokens(content)
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use" if calls else "end_turn",
            "usage": {"inputTokens": 10, "outputTokens": said, "totalTokens": 10 + said},
            "metrics": {"latencyMs": 1},
        }

    def error(self, status: int, message: str) -> Json:
        return {"message": message}

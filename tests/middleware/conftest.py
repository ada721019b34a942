"""A bench: publish a stack, open a case, let a real worker run it. Every drive is a process of its own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.catalogue import AgentSpec
from agents.exchange import examine
from approvals.actors import SYSTEM, Actor
from approvals.models import ApprovalRequest, Run, Step, User
from approvals.services import agents, cases
from approvals.tasks import sweep
from middleware import catalogue, own
from tests.engine.conftest import Desk, call, checkpoint_tables, person
from tests.middleware.servers import BedrockServer, Moderating
from tests.processes.conftest import FAST, Office
from tests.providers.anthropic_server import AnthropicServer
from tests.services import Shop, Worker, wait_until

__all__ = ["call", "checkpoint_tables"]

MODELS = {"COUNTERSEAL_TEST_MODELS": "tests.models,tests.middleware.models"}
OWNS = {"COUNTERSEAL_OWN_MIDDLEWARE": "tests.middleware.owns"}
KEYS = {"LOOPBACK_KEY": "sk-loopback-0123456789abcdef"}
AWS = {
    "AWS_ACCESS_KEY_ID": "loopback",
    "AWS_SECRET_ACCESS_KEY": "loopback",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
READS = ("lookup_order", "read_policy", "compute_refund")
ORDER = call("lookup_order", order_id="A-20931")
PAY = {"use": "human_in_the_loop", "interrupt_on": {"issue_refund": {"queue": "refund-reviewers"}}}
LIMIT = {"use": "model_call_limit", "thread_limit": 60}
GUARD = {"use": "write_guard"}


SLOW_IMPORTS = (
    "langchain_anthropic.middleware", "langchain_openai.middleware", "langchain_aws.middleware",
    "deepagents.middleware.filesystem", "deepagents.middleware.subagents", "approvals.wiring",
)  # fmt: skip


class FreshWorker(Worker):
    """Each task in a process of its own: whatever a pause keeps must be in Postgres. The parent imports what is slow, so
    that a new process has it at once."""

    def start(self) -> FreshWorker:
        if "--max-tasks-per-child" not in self.argv:
            self.argv += ["--max-tasks-per-child", "1"]
            self.argv[self.argv.index("-I") + 1] += "," + ",".join(SLOW_IMPORTS)
        return super().start()  # type: ignore[return-value]


class Bench(Office):
    """One published agent at a time."""

    def __init__(self, shop: Shop, folder: Path) -> None:
        Desk.__init__(self, shop)
        self.workers = []
        self.folder = folder
        self.record = folder / "sent.jsonl"
        self.slug = ""
        self.fay = person("fay", "support", "finance")

    def publish(
        self, *middleware: dict[str, Any], tools: Any = READS, plain: bool = False, **changes: Any
    ) -> str:
        """`middleware` between the limit and the guard, unless `plain`. It must be a stack that may be published."""
        self.slug = f"a-{uuid.uuid4().hex[:8]}"
        given = {
            "model": "demo:told",
            "model_options": {"record": str(self.record)},
            "system_prompt": "You are on the bench.",
        } | changes
        stack = middleware if plain else (LIMIT, *middleware, GUARD)
        spec = AgentSpec(slug=self.slug, title="Bench", tools=tuple(tools), middleware=stack, **given)
        assert [lint.text for lint in examine(spec) if lint.level == "error"] == []
        agents.publish(actor=SYSTEM, spec=spec)
        return self.slug

    def say(self, text: str, by: User | None = None, **case: str) -> Run:
        actor = Actor.of(by or self.sam)
        return cases.open_case(actor=actor, case=cases.NewCase(agent=self.slug, message=text, **case)).run

    def start(self, *script: dict[str, Any], by: User | None = None, **case: str) -> Run:
        return self.say(json.dumps({"script": list(script)}, ensure_ascii=False), by, **case)

    def run(self, *script: dict[str, Any], **more: Any) -> Run:
        return self.until(self.start(*script, **more), "success")

    def more(self, run: Run, *script: dict[str, Any]) -> Run:
        """The next message of the case."""
        from approvals.services import runs

        text = json.dumps({"script": list(script)})
        fresh = runs.post(actor=Actor.of(self.sam), thread_pk=run.thread_id, message=text, while_pending=None)
        return self.until(fresh, "success")

    def requests(self, run: Run, count: int = 1) -> list[ApprovalRequest]:
        """The open questions of a run, once there are so many of them."""

        def there() -> bool:
            sweep()
            return run.requests.filter(status="pending").count() == count

        wait_until(there, 60, f"there are not {count} questions")
        self.until(run, "interrupted")
        return self.pending(run)

    def request(self, run: Run) -> ApprovalRequest:
        return self.requests(run)[0]

    def fails(self, run: Run) -> str:
        """Its last words, after the attempts that a worker makes."""
        self.until(run, "error", "parked")
        return str(run.error or run.last_error)

    @property
    def sent(self) -> list[dict[str, Any]]:
        """What the main model was sent, call by call."""
        if not self.record.exists():
            return []
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def told(self, run: Run, tool: str = "") -> list[str]:
        """What tools answered, in order."""
        steps = run.steps.filter(kind="tool").order_by("position")
        return [step.text for step in steps if not tool or step.tool == tool]

    def noted(self, use: str) -> list[dict[str, Any]]:
        """What this middleware of the agent did to steps, in order."""
        steps = Step.objects.filter(run__thread__agent=self.slug).order_by("run__created_at", "position")
        noted = [note for step in steps for note in step.notes if note["use"] == use]
        return [{name: value for name, value in note.items() if name != "use"} for note in noted]


@pytest.fixture(scope="package")
def bench_shop() -> Iterator[Shop]:
    with Shop() as running:
        yield running


@pytest.fixture(scope="package")
def anthropic_server() -> Iterator[AnthropicServer]:
    server = AnthropicServer()
    server.key = KEYS["LOOPBACK_KEY"]
    yield server
    server.stop()


@pytest.fixture(scope="package")
def openai_server() -> Iterator[Moderating]:
    server = Moderating()
    server.key = KEYS["LOOPBACK_KEY"]
    yield server
    server.stop()


@pytest.fixture(scope="package")
def bedrock_server() -> Iterator[BedrockServer]:
    server = BedrockServer()
    yield server
    server.stop()


@pytest.fixture(scope="package")
def bench_worker(bench_shop: Shop, checkpoint_tables: None, django_db_setup: None) -> Iterator[FreshWorker]:
    env = {**FAST, **MODELS, **OWNS, **KEYS, **AWS, "COUNTERSEAL_SHOP_URL": bench_shop.url}
    env |= {"COUNTERSEAL_MAX_ATTEMPTS": "1"}
    with FreshWorker(pool="prefork", concurrency=2, env=env) as worker:
        yield worker


@pytest.fixture
def bench(
    transactional_db: None,
    bench_worker: FreshWorker,
    bench_shop: Shop,
    settings: Any,
    monkeypatch: Any,
    tmp_path: Path,
) -> Bench:
    settings.SHOP_URL = bench_shop.url
    settings.STALE_SECONDS = 1
    for name, value in {**MODELS, **OWNS, **KEYS, "COUNTERSEAL_SHOP_URL": bench_shop.url}.items():
        monkeypatch.setenv(name, value)
    found_here = {entry.name: entry for entry in own.entries()}
    monkeypatch.setattr(catalogue, "ENTRIES", {**catalogue.ENTRIES, **found_here})
    bench_worker.wait_ready()
    found = Bench(bench_shop, tmp_path)
    found.fault("none")
    return found

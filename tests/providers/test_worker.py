"""The same through a real Celery worker and the shop's own process; the test plays beat and the browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from channels.layers import get_channel_layer

from approvals.actors import Actor
from approvals.models import Run
from approvals.notify import group_name
from approvals.services import cases
from approvals.tasks import sweep
from tests.providers.anthropic_server import AnthropicServer
from tests.providers.brain import refund_agent
from tests.providers.conftest import KEY_ENV, WISH, Office, tables_with
from tests.providers.openai_server import OpenAIServer
from tests.services import Shop, Worker, wait_until

OTHER_KEY, WRONG_KEY = "LOOPBACK_OTHER_KEY", "LOOPBACK_WRONG_KEY"
WRONG = "sk-wrong-0123456789abcdef"


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as running:
        yield running


class Listener:
    """What the live socket of a browser would be sent about some topics."""

    def __init__(self, *topics: str) -> None:
        self.heard: list[dict[str, Any]] = []
        self.ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, args=(topics,), daemon=True).start()
        assert self.ready.wait(10), "the channel layer does not answer"

    def _run(self, topics: tuple[str, ...]) -> None:
        self.task = self.loop.create_task(self._listen(topics))
        try:
            self.loop.run_until_complete(self.task)
        except asyncio.CancelledError:
            self.loop.close()

    async def _listen(self, topics: tuple[str, ...]) -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        for topic in topics:
            await layer.group_add(group_name(topic), channel)
        self.ready.set()
        while True:
            self.heard.append(await layer.receive(channel))

    def text(self, run: Run) -> str:
        deltas = [message["delta"] for message in list(self.heard) if message["type"] == "delta"]
        return "".join(delta["text"] for delta in deltas if delta["topic"] == run.topic)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.task.cancel)


@pytest.fixture
def office(
    transactional_db: None,
    checkpoint_tables: None,
    shop: Shop,
    settings: Any,
    openai_server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Office:
    settings.SHOP_URL = shop.url
    settings.STALE_SECONDS = 1
    monkeypatch.setenv("COUNTERSEAL_SHOP_URL", shop.url)
    openai_server.reset(refund_agent)
    return Office(shop, openai_server, "openai:gpt-5.4", monkeypatch)


def test_a_worker_pays_once_with_either_provider_and_keeps_the_keys(
    office: Office, openai_server: OpenAIServer, anthropic_server: AnthropicServer
) -> None:
    anthropic_server.reset(refund_agent)
    claude = {"model": "anthropic:claude-sonnet-5-5", "base_url": anthropic_server.base_url}
    office.publish(slug="refunds-claude", api_key_env=OTHER_KEY, **claude)
    office.publish(slug="refunds-wrong", api_key_env=WRONG_KEY)
    office.publish(slug="refunds-unset", api_key_env="LOOPBACK_NOT_SET")
    first = _open(office, "refunds", WISH)
    second = _open(office, "refunds-claude", "Please refund order A-20925, it arrived broken.")
    wrong, unset = _open(office, "refunds-wrong", WISH), _open(office, "refunds-unset", WISH)
    browser = Listener(first.topic, second.topic)
    keys = {KEY_ENV: openai_server.key, OTHER_KEY: anthropic_server.key, WRONG_KEY: WRONG}
    times = {"COUNTERSEAL_STALE_SECONDS": "1", "COUNTERSEAL_MAX_ATTEMPTS": "1"}
    with Worker(env={**keys, **times, "COUNTERSEAL_SHOP_URL": office.shop.url}) as worker:
        for run in (first, second):
            _until(run, "interrupted")
            (request,) = office.pending(run)
            office.decide(request, "approve")
        for run in (first, second):
            _until(run, "success")
        _until(wrong, "error")
        _until(unset, "parked")
    browser.stop()
    assert (office.amounts("A-20931"), office.amounts("A-20925")) == (["1280.00"], ["3460.00"])
    assert len(office.effects("A-20931")) == 1
    assert "the provider refused the key in LOOPBACK_WRONG_KEY (401)" in wrong.error
    assert "LOOPBACK_NOT_SET" in unset.error
    for run, server in ((first, openai_server), (second, anthropic_server)):
        assert all(received.body["stream"] is True for received in server.received)
        assert run.usage["input_tokens"] > 100
        assert browser.text(run).startswith(
            "I will"
        )  # the first piece at once; later ones may be held together
    for key in keys.values():
        assert tables_with(key) == []
        assert key not in worker.output(10_000_000)


def _open(office: Office, agent: str, message: str) -> Run:
    return cases.open_case(actor=Actor.of(office.sam), case=cases.NewCase(agent, message)).run


def _until(run: Run, status: str) -> None:
    def reached() -> bool:
        sweep()
        run.refresh_from_db()
        return run.status == status

    wait_until(reached, 60, f"the run did not become {status}")

"""Outward seam: nudges through the channel layer, after commit. What is lost here is found by the next heartbeat."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from channels.layers import get_channel_layer
from channels_redis.pubsub import RedisPubSubChannelLayer
from django.db import transaction
from redis.exceptions import RedisError

log = logging.getLogger("counterseal.notify")


class HintLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    """The pub/sub layer, which writes once into a dead connection after the broker was restarted."""

    async def new_channel(self, prefix: str = "specific.") -> str:
        layer = self._get_layer()  # of this event loop; the class itself has no such method to call
        try:
            return str(await layer.new_channel(prefix))
        except (RedisError, OSError):
            return str(await layer.new_channel(prefix))


def group_name(topic: str) -> str:
    """Channels allows letters, digits, hyphen, underscore and period in group names, not a colon."""
    return "live." + topic.replace(":", ".")


def nudge_on_commit(nudges: Sequence[dict[str, object]]) -> None:
    messages = [(group_name(str(nudge["topic"])), {"type": "nudge", "nudge": nudge}) for nudge in nudges]

    def send_all() -> None:
        for group, message in messages:
            _send(group, message)

    transaction.on_commit(send_all)


DOORS = "live.doors"  # every socket listens


def doors_on_commit(user_pk: object = "") -> None:
    """Somebody signed out, lost a right or a token: their sockets look again who they are. "": everybody's."""
    message = {"type": "doors", "user": str(user_pk)}
    transaction.on_commit(lambda: _send(DOORS, message))


def delta(topic: str, block: str, at: int, text: str) -> None:
    """Streamed text of a run: not numbered, may be lost. `at` counts UTF-16 units."""
    message = {"type": "delta", "delta": {"topic": topic, "block": block, "at": at, "text": text}}
    _send(group_name(topic), message)


def _send(group: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is not None:
        asyncio.run_coroutine_threadsafe(_deliver(layer, group, message), _loop())


async def _deliver(layer: Any, group: str, message: dict[str, Any]) -> None:
    try:
        await asyncio.wait_for(layer.group_send(group, message), timeout=5)
    except Exception as error:  # noqa: BLE001 -- a hint: whatever went wrong, nobody waits for it
        log.warning("hint to %s not delivered: %s", group, type(error).__name__)


def ask_lag(seconds: float) -> Callable[[], float | None]:
    """Send a nudge to ourselves. The result waits for it: the seconds it took through the broker, or None."""
    layer = get_channel_layer()
    if layer is None:
        return lambda: None
    sent = asyncio.run_coroutine_threadsafe(_there_and_back(layer, seconds), _loop())

    def answer() -> float | None:
        try:
            return sent.result(seconds + 1)
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with the broker: nudges do not arrive
            log.warning("no nudge came back: %s", type(error).__name__)
            return None

    return answer


async def _there_and_back(layer: Any, seconds: float) -> float | None:
    async with asyncio.timeout(seconds):
        channel = await layer.new_channel("probe.")
        group = f"probe.{uuid.uuid4().hex}"
        await layer.group_add(group, channel)
        arrived = asyncio.ensure_future(layer.receive(channel))
        try:
            while not arrived.done():  # again: the first may overtake our subscription
                await layer.group_send(group, {"type": "probe", "at": time.perf_counter()})
                await asyncio.wait({arrived}, timeout=0.2)
            return time.perf_counter() - float(arrived.result()["at"])
        finally:
            await layer.group_discard(group, channel)
            if arrived.done():
                arrived = asyncio.ensure_future(layer.receive(channel))
                await asyncio.sleep(0)
            arrived.cancel()  # a receiver that is cancelled takes its channel along


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One loop for the life of the process: `async_to_sync` would open a Redis connection for every hint."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="nudges", daemon=True).start()
    return loop

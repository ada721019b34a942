"""The wait of `GET /runs/{id}?wait=SECONDS`, in front of Django.

A waiting request holds a coroutine and nothing else. Inside Django it would hold a thread: one synchronous middleware
is enough for that. This only delays: the request then goes its usual way, which authenticates and answers it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.layers import get_channel_layer
from django.db import Error
from redis.exceptions import RedisError

from approvals import access
from approvals.api.auth import READING
from approvals.enums import RequestStatus, RunStatus
from approvals.handshake import AsgiScope, identify, in_thread
from approvals.models import ApprovalRequest, Run
from approvals.notify import group_name

log = logging.getLogger("counterseal.wait")

type Message = Mapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Any, Receive, Send], Awaitable[None]]
type Nap = Callable[[float], Awaitable[None]]

PATH = re.compile(r"/api/v1/runs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
LONGEST = 60.0
MAX_MESSAGES = 8
LOOK_AGAIN = 5.0  # a nudge may get lost
WITHOUT_NUDGES = 1.0


class LongPoll:
    """ASGI wrapper around the web application."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        run_id, seconds = wanted(scope)
        if run_id is None:
            await self.app(scope, receive, send)
            return
        early = await whole_body(receive)
        leaving = asyncio.ensure_future(receive())  # completes when the client goes away
        waiting = asyncio.ensure_future(wait_for_run(scope, run_id, seconds))
        try:
            await asyncio.wait({leaving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                await self.app(scope, _replay(early, leaving, receive), send)
        finally:
            for task in (waiting, leaving):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


async def whole_body(receive: Receive) -> list[Message]:
    """The messages that carry the body (of a GET: none to speak of); what is longer is left to the application."""
    found = [await receive()]
    while found[-1].get("more_body") and len(found) < MAX_MESSAGES:
        found.append(await receive())
    return found


def _replay(early: list[Message], leaving: asyncio.Future[Message], receive: Receive) -> Receive:
    """`receive` of an application that has not seen the messages which were read while waiting."""
    pending: list[Any] = [*early, leaving]

    async def again() -> Message:
        if not pending:
            return await receive()
        item = pending.pop(0)
        message: Message = await item if isinstance(item, asyncio.Future) else item
        return message

    return again


def wanted(scope: AsgiScope) -> tuple[UUID | None, float]:
    """(run, seconds) if this request asks to wait."""
    found = PATH.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
    values = parse_qs(scope["query_string"].decode("latin-1")).get("wait", [""]) if found else [""]
    try:
        seconds = min(float(values[-1]), LONGEST)
    except ValueError:  # the operation refuses it
        return None, 0
    return (UUID(found[1]), seconds) if found and seconds > 0 else (None, 0)


async def wait_for_run(scope: AsgiScope, run_id: UUID, seconds: float) -> None:
    """Return when the caller should look: the run has settled, the time is over, or there is nothing to wait for."""
    clock = asyncio.get_running_loop()
    deadline = clock.time() + seconds
    try:
        if not await in_thread(may_wait, scope, run_id):
            return
        async with nudges(f"run:{run_id}") as nap:
            while not await in_thread(has_settled, run_id) and (left := deadline - clock.time()) > 0:
                await nap(left)
    except Error as error:
        log.warning("waiting for %s ended: %s", run_id, type(error).__name__)


def may_wait(scope: AsgiScope, run_id: UUID) -> bool:
    actor = identify(scope, *READING)
    return actor is not None and access.runs(actor.person).filter(pk=run_id).exists()


def has_settled(run_id: UUID) -> bool:
    """Ended, or waiting for a person. Interrupted with every answer given is neither: it goes on in a moment."""
    status = Run.objects.filter(pk=run_id).values_list("status", flat=True).first()
    if status == RunStatus.INTERRUPTED:
        return ApprovalRequest.objects.filter(run=run_id, status=RequestStatus.PENDING).exists()
    return status not in (RunStatus.PENDING, RunStatus.RUNNING)


@asynccontextmanager
async def nudges(topic: str) -> AsyncIterator[Nap]:
    """A nap that a nudge on `topic` ends early; without a broker a short one."""
    layer, group = get_channel_layer(), group_name(topic)
    try:
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
    except (RedisError, OSError) as error:
        log.warning("waiting without nudges: %s", type(error).__name__)
        yield lambda left: asyncio.sleep(min(left, WITHOUT_NUDGES))
        return
    inbox: list[asyncio.Future[Message]] = [asyncio.ensure_future(layer.receive(channel))]

    async def nap(left: float) -> None:
        """One receiver for the whole wait: cancelling `receive` closes the channel."""
        end = asyncio.get_running_loop().time() + min(left, LOOK_AGAIN)
        while (rest := end - asyncio.get_running_loop().time()) > 0:
            done, _ = await asyncio.wait({inbox[0]}, timeout=rest)
            if not done:
                return
            message = inbox[0].result()
            inbox[0] = asyncio.ensure_future(layer.receive(channel))
            if message["type"] == "nudge":  # streamed text is no news
                return

    try:
        yield nap
    finally:
        inbox[0].cancel()
        with suppress(asyncio.CancelledError, RedisError, OSError):
            await inbox[0]
        with suppress(RedisError, OSError):
            await layer.group_discard(group, channel)

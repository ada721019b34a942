"""The server end of the live socket: authenticate, join groups, forward ids. No decisions, no HTML, no writes."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error

from approvals import access
from approvals.actors import Actor
from approvals.enums import Scope
from approvals.handshake import identify, in_thread, origin_fits
from approvals.models import User
from approvals.notify import DOORS, group_name
from approvals.services import events

log = logging.getLogger("counterseal.live")

SIGNED_OUT, FORBIDDEN, TOO_BIG = 4401, 4403, 1009
MAX_TOPICS = 50
MAX_FRAME = 64 * 1024
MAX_FRAMES = 300  # between two heartbeats; what is more is not read
NEWEST = 2**62


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    HEARTBEAT = 25.0
    topics: set[str]
    person: User
    frames: int = 0
    heart: asyncio.Task[None] | None = None
    closing: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Accept first: a refused handshake reaches the browser as code 1006, and it would try again for ever."""
        self.topics = set()
        await self.accept()
        if not origin_fits(self.scope):
            await self.close(FORBIDDEN)
            return
        if await self._actor() is None:
            await self.close(SIGNED_OUT)
            return
        self.heart = asyncio.create_task(self._beat())

    async def disconnect(self, code: int) -> None:
        for task in (self.heart, self.closing):
            if task and task is not asyncio.current_task():
                task.cancel()
        await self.channel_layer.group_discard(DOORS, self.channel_name)
        await self._unfollow(list(self.topics))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Anything that is not one of the known messages is ignored: nothing is decided here."""
        if len(text_data or "") + len(bytes_data or b"") > MAX_FRAME:
            await self.close(TOO_BIG)
            return
        self.frames += 1
        if self.heart is None or self.frames > MAX_FRAMES:
            return
        match _parsed(text_data):
            case {"type": "follow", "topics": list(topics), "since": int(since)}:
                await self._follow(_texts(topics), min(max(since, 0), NEWEST))
            case {"type": "unfollow", "topics": list(topics)}:
                await self._unfollow(_texts(topics))
            case {"type": "ping"}:
                await self._send_heartbeat()

    async def _follow(self, topics: list[str], since: int) -> None:
        """Join first, then replay: an event in between arrives twice rather than never."""
        actor = await self._actor()
        if actor is None:
            await self.close(SIGNED_OUT)
            return
        self.person = actor.person
        if not self.topics:
            await self.channel_layer.group_add(DOORS, self.channel_name)
        room = MAX_TOPICS - len(self.topics)
        fresh = [topic for topic in topics if topic not in self.topics][:room]
        wanted = [topic for topic in topics if topic in self.topics or topic in fresh]
        allowed = await in_thread(access.may_follow, actor.person, wanted)
        for topic in set(allowed) - self.topics:
            await self.channel_layer.group_add(group_name(topic), self.channel_name)
        self.topics |= set(allowed)
        replay = await in_thread(events.replay, allowed, since)
        for nudge in await self._named(replay.nudges):
            await self._say(nudge)
        resync = replay.resync or since > replay.seq  # a number from the future: the database was restored
        await self._say({"type": "ready", "seq": replay.seq, "topics": allowed, "resync": resync})

    async def _unfollow(self, topics: list[str]) -> None:
        for topic in self.topics & set(topics):
            await self.channel_layer.group_discard(group_name(topic), self.channel_name)
        self.topics -= set(topics)

    async def _beat(self) -> None:
        """Ask again who this is and what they may hear; then say how far the numbers are."""
        while True:
            await asyncio.sleep(self.HEARTBEAT)
            self.frames = 0
            try:
                if code := await self._why_close():
                    await self.close(code)
                    return
                await self._send_heartbeat()
            except Error as error:  # the client misses the heartbeat and connects again
                log.warning("no heartbeat: %s", type(error).__name__)

    async def doors(self, message: dict[str, Any]) -> None:
        """From the channel layer: a right may be gone."""
        if message["user"] in ("", str(self.person.pk)):
            self.closing = asyncio.create_task(self._look_again())

    async def _look_again(self) -> None:
        """Twice: a session is told to end a moment before it is gone."""
        for wait in (0.0, 1.0):
            await asyncio.sleep(wait)
            try:
                if code := await self._why_close():
                    await self.close(code)
                    return
            except Error:  # the heartbeat will look again
                return

    async def _why_close(self) -> int | None:
        actor = await self._actor()
        if actor is None:
            return SIGNED_OUT
        self.person = actor.person
        topics = sorted(self.topics)
        allowed = await in_thread(access.may_follow, actor.person, topics)
        return None if len(allowed) == len(topics) else FORBIDDEN

    async def _actor(self) -> Actor | None:
        return await in_thread(identify, self.scope, Scope.READ)

    async def _send_heartbeat(self) -> None:
        await self._say({"type": "hb", "seq": await in_thread(events.current_seq)})

    async def nudge(self, message: dict[str, Any]) -> None:
        """From the channel layer: ids and numbers of one change."""
        if message["nudge"]["topic"] in self.topics:
            for nudge in await self._named([message["nudge"]]):
                await self._say(nudge)

    async def _named(self, nudges: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Everything that changes is told on the inbox, but by its id only to those who may see it."""
        ids = {nudge["id"] for nudge in nudges if nudge["topic"] == events.INBOX}
        visible = await in_thread(access.visible_ids, self.person, ids) if ids else frozenset()
        hidden = ids - visible
        return [
            {**nudge, "id": ""} if nudge["topic"] == events.INBOX and nudge["id"] in hidden else nudge
            for nudge in nudges
        ]

    async def delta(self, message: dict[str, Any]) -> None:
        """From the channel layer: streamed text of a run."""
        if message["delta"]["topic"] in self.topics:
            await self._say({"type": "delta", **message["delta"]})

    async def _say(self, content: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(content))


def _parsed(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        return None


def _texts(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))

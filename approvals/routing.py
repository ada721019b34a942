"""What is reached outside Django's request cycle: the live socket, and the wait of a long poll."""

from __future__ import annotations

from channels.routing import URLRouter
from django.urls import path

from approvals.api.waiting import LongPoll
from approvals.consumers import LiveConsumer

live = URLRouter([path("ws/live/", LiveConsumer.as_asgi())])
with_long_poll = LongPoll

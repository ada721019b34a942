"""The live socket: session or token, origin checked."""

from __future__ import annotations

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.urls import path

from approvals.consumers import LiveConsumer

live = AuthMiddlewareStack(URLRouter([path("ws/live/", LiveConsumer.as_asgi())]))

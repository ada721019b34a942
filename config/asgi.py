"""Web process: pages, JSON API and the live socket. Never loads LangChain."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ.setdefault("COUNTERSEAL_PROCESS", "web")

from django.core.asgi import get_asgi_application

http = get_asgi_application()  # before anything that imports models

from channels.routing import ProtocolTypeRouter

from approvals.routing import live, with_long_poll

application = ProtocolTypeRouter({"http": with_long_poll(http), "websocket": live})

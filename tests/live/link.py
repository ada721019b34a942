"""A client of the live socket in the same process. (Channels' own one needs daphne to be imported.)"""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator


class Link(ApplicationCommunicator):
    """Speaks the ASGI side of one socket."""

    def __init__(self, application: Any, path: str, headers: list[tuple[bytes, bytes]], **scope: Any) -> None:
        whole = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": headers,
            "subprotocols": [],
        }
        super().__init__(application, whole | scope)

    async def open(self) -> bool:
        """Whether the handshake was accepted."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(5)
        return bool(answer["type"] == "websocket.accept")

    async def send_to(self, **frame: Any) -> None:
        """`text_data` or `bytes_data`."""
        frame = {name.removesuffix("_data"): value for name, value in frame.items()}
        await self.send_input({"type": "websocket.receive", **frame})

    async def send_json_to(self, content: Any) -> None:
        await self.send_to(text_data=json.dumps(content))

    async def receive_json_from(self, seconds: float = 3) -> Any:
        message = await self.receive_output(seconds)
        assert message["type"] == "websocket.send", message
        return json.loads(message["text"])

    async def close_code(self, seconds: float = 3) -> int:
        """The code it is closed with; what is said before that is skipped."""
        while (message := await self.receive_output(seconds))["type"] == "websocket.send":
            pass
        assert message["type"] == "websocket.close"
        return int(message["code"])

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(5)

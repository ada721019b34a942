"""What the loopback providers share: one HTTP server that keeps what it receives, misbehaves on demand, and streams.

A provider module turns its wire format into a `Turn` for the brain, and the brain's `Say` back into its wire format. It
refuses with 400 what the real provider refuses, so that a conversation that would brick a case fails the test.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

type Json = Any
type Event = tuple[str | None, Json]
"""(name of the server-sent event, data); a str as data is sent as it is."""

PIECE = 7  # characters of a streamed piece: no number, name or string arrives whole


@dataclass(frozen=True)
class Call:
    """A tool call as the provider knows it. `args` is JSON text: only text can be cut off."""

    id: str
    name: str
    args: str

    @property
    def values(self) -> dict[str, Any]:
        return dict(json.loads(self.args))


@dataclass(frozen=True)
class Result:
    """What came back for a call."""

    call: Call
    text: str


@dataclass(frozen=True)
class Turn:
    """The customer's newest message and the results since, as read off the wire."""

    message: str
    results: tuple[Result, ...] = ()

    def of(self, tool: str) -> list[Result]:
        return [result for result in self.results if result.call.name == tool]


@dataclass(frozen=True)
class Say:
    """What the model says next. `stop` overrides the provider's reason for ending; None with `cut`: the stream just
    ends before it."""

    text: str = ""
    calls: tuple[tuple[str, Json], ...] = ()  # (tool, arguments); arguments as str are sent as they are
    stop: str = ""
    cut: bool = False  # hang up in the middle of the stream


type Brain = Callable[[Turn], Say]


def thrown_away(turn: Turn) -> Say:
    raise AssertionError("this test gave the provider no brain")


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any]


@dataclass(frozen=True)
class Fault:
    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Refuse(Exception):
    """The provider's error answer."""

    def __init__(self, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class Loopback(ThreadingHTTPServer):
    """A provider on a free port. `reset` between tests; the port stays, as clients are kept by the product."""

    daemon_threads = True
    provider: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = f"sk-loopback-{uuid.uuid4().hex}"
        self.reset(thrown_away)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def reset(self, brain: Brain) -> None:
        self.brain = brain
        self.received: list[Received] = []
        self.refused: list[str] = []  # what was answered with an error, in the order of the requests
        self.faults: deque[Fault] = deque()
        self.lenient = False  # let a made-up tool stand in the history, as the real ones do
        self.new_id: Callable[[], str] = lambda: uuid.uuid4().hex[:24]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def base_url(self) -> str:
        """What goes into the spec."""
        return self.url

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def fail(
        self, status: int, message: str, times: int = 1, headers: Mapping[str, str] | None = None
    ) -> None:
        self.faults.extend([Fault(status, message, headers or {})] * times)

    # --- for the provider modules ---------------------------------------------------------------------------------------
    def key_of(self, headers: Mapping[str, str]) -> str:
        raise NotImplementedError

    def check(self, request: Received) -> None:
        """Refuse what is wrong before the conversation is read. Raises `Refuse`."""

    def read(self, request: Received) -> Turn:
        """Raises `Refuse` where the provider answers 400."""
        raise NotImplementedError

    def whole(self, request: Received, say: Say, calls: list[Call]) -> Json:
        raise NotImplementedError

    def events(self, request: Received, say: Say, calls: list[Call]) -> Iterable[Event]:
        raise NotImplementedError

    def error(self, status: int, message: str) -> Json:
        raise NotImplementedError

    def call_id(self) -> str:
        raise NotImplementedError

    # --- one request ------------------------------------------------------------------------------------------------------
    def answer(self, request: Received) -> tuple[Say, list[Call]]:
        if self.faults:
            fault = self.faults.popleft()
            raise Refuse(fault.message, fault.status, fault.headers)
        if self.key_of(request.headers) != self.key:
            raise Refuse(self.bad_key(self.key_of(request.headers)), 401)
        self.check(request)
        try:
            say = self.brain(self.read(request))
        except (AssertionError, LookupError, TypeError, ValueError) as error:
            raise Refuse(f"the test's own model failed: {error!r}") from error
        calls = [
            Call(self.call_id(), name, args if isinstance(args, str) else json.dumps(args))
            for name, args in say.calls
        ]
        return say, calls

    def bad_key(self, key: str) -> str:
        return "invalid key"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no event."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.received.append(request)
        try:
            say, calls = self.server.answer(request)
        except Refuse as no:
            self.server.refused.append(no.message)
            self._send(no.status, self.server.error(no.status, no.message), no.headers)
            return
        if not body.get("stream"):
            self._send(200, self.server.whole(request, say, calls), {})
            return
        self._stream(say, self.server.events(request, say, calls))

    def _send(self, status: int, value: Json, headers: Mapping[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {
            **headers,
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, say: Say, events: Iterable[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = [_frame(name, data) for name, data in events]
        if say.cut:
            sent = sent[: len(sent) // 2]
        for frame in sent:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            self.wfile.flush()
        if say.cut:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _frame(name: str | None, data: Json) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), PIECE):
        yield text[at : at + PIECE]


def needs(condition: object, message: str) -> None:
    if not condition:
        raise Refuse(message)


def only(value: Mapping[str, Any], allowed: str, where: str) -> None:
    """Refuse keys the provider does not know. `allowed`: names separated by spaces."""
    for name in value:
        needs(name in allowed.split(), f"{where}.{name}: Extra inputs are not permitted")


def tokens(value: Json) -> int:
    """A stand-in for a tokenizer: any number that grows with the text."""
    return max(1, len(json.dumps(value)) // 4)

"""The one log of `manage.py up`: a prefix and a colour for each process, written by a thread of its own.

A thread, because whoever reads our output may stop reading (a pager, a test that waits for the ready line): then lines
are dropped and counted, and the supervisor never waits.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from typing import TextIO

MAX_WAITING = 2_000
COLOURS = (36, 33, 35, 32, 34, 96, 93, 95)
END = "\x1b[0m"


def wants_colour(stream: TextIO) -> bool:
    """Only on a terminal, and never when NO_COLOR says so."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Console:
    """Prints lines in order without ever blocking the caller."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self.colour = wants_colour(stream)
        self._descriptor = os.dup(
            stream.fileno()
        )  # ours: the number of a closed one may soon be another file
        self._waiting: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._dropped = 0
        self._names: dict[str, int] = {}
        stream.flush()
        self._writer = threading.Thread(target=self._write, name="console", daemon=True)
        self._writer.start()

    def line(self, name: str, text: str) -> None:
        """One line of a process's output."""
        colour = COLOURS[self._names.setdefault(name, len(self._names)) % len(COLOURS)]
        prefix = f"{time.strftime('%H:%M:%S')} {name:<8} |"
        self.plain(f"\x1b[{colour}m{prefix}{END} {text}" if self.colour else f"{prefix} {text}")

    def plain(self, text: str) -> None:
        """A line as it is; what does not fit is counted and said later."""
        try:
            if self._dropped:
                self._waiting.put_nowait(f"... {self._dropped} lines dropped: nobody read the log\n")
                self._dropped = 0
            self._waiting.put_nowait(text + "\n")
        except queue.Full:
            self._dropped += 1

    def close(self, seconds: float = 1) -> None:
        """Let the writer finish, but not for ever."""
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            return
        self._writer.join(seconds)

    def _write(self) -> None:
        while (text := self._waiting.get()) is not None:
            data = text.encode(errors="replace")
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:  # the reader is gone or its disk is full: the product goes on without a log
                continue
        os.close(self._descriptor)

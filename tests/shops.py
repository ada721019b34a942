"""The demo shop as a real process on a free port."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class ShopProcess:
    """Started at once; `kill` is a kill -9, `start` begins again on the same data and port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "examples.shop",
            "--port",
            str(self.port),
            "--data",
            str(self.folder),
        ]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.port = int(line.strip().rpartition(":")[2])

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        self._process.send_signal(how)
        code = self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """(status, JSON or text). Header names use _ for -."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, _value(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _value(error.read())

    def refund(self, order_id: str, amount: str, currency: str, key: str, **headers: str) -> tuple[int, Any]:
        body = {"order_id": order_id, "amount": amount, "currency": currency}
        return self.call("POST", "/refunds", body, Idempotency_Key=key, **headers)

    def fault(self, mode: str, **more: Any) -> None:
        status, said = self.call("POST", "/faults", {"mode": mode, **more})
        assert status == 200, said

    def effects(self, order_id: str) -> int:
        count: int = self.call("GET", f"/effects?order={order_id}")[1]["count"]
        return count


def _value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()

"""`python -m examples.shop --port 8001 --data DIR`"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from examples.shop.server import Shop


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="examples.shop", description="A demo shop with orders, policies and refunds."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001, help="0: any free port, printed at start")
    parser.add_argument("--data", type=Path, required=True, help="folder of the SQLite file")
    parser.add_argument("--more", type=int, default=0, help="so many orders more, from A-30000 on")
    options = parser.parse_args()
    try:
        shop = Shop((options.host, options.port), options.data, options.more)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        print(f"the demo shop cannot listen on {where}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 1
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    threading.Thread(target=shop.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
    print(f"demo shop on http://{options.host}:{shop.server_address[1]}", flush=True)  # noqa: T201
    stop.wait()
    shop.shutdown()
    shop.server_close()
    shop.store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

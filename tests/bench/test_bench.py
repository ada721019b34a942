"""`make bench`: figures, not assertions. Each is measured in one run, beside what it should be compared with."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from approvals.models import Run
from approvals.tasks import sweep
from tests.engine.conftest import refund
from tests.processes.conftest import by_token, frozen_broker
from tests.services import ROOT, child_environment, wait_until

pytestmark = pytest.mark.bench

LIGHT = "import django; from django.conf import settings; settings.configure(); django.setup()"


def seconds_of(code, env=None):
    best = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True)
        best.append(time.perf_counter() - began)
    return min(best)


def say(text):
    sys.stderr.write(f"\n  {text}\n")


def test_the_web_process(web):
    env = child_environment("web", None, None)
    bare, ours = seconds_of(LIGHT), seconds_of("import config.asgi", env)
    status = dict(line.split(":", 1) for line in Path(f"/proc/{web.pid}/status").read_text().splitlines())
    say(
        f"web: import {ours:.2f} s, {ours / bare:.1f} x bare Django; {int(status['VmRSS'].split()[0]) / 1024:.0f} MB"
    )


def test_a_cycle(office, settings):
    """Submit, pause, approve, done: through a real worker, one at a time, then 32 at once."""
    settings.STALE_SECONDS = 10
    office.hire(concurrency=4).wait_ready()
    office.hire(concurrency=4).wait_ready()
    pauses, ends = [], []
    for _ in range(25):
        began = time.perf_counter()
        run = office.open({"calls": [refund("A-20925", 1001)]}, {"text": "done"})
        wait_until(lambda run=run: Run.objects.filter(pk=run.pk, status="interrupted").exists())
        pauses.append(time.perf_counter() - began)
        (request,) = office.pending(run)
        began = time.perf_counter()
        office.decide(request, "reject", message="no")
        wait_until(lambda run=run: Run.objects.filter(pk=run.pk, status="success").exists())
        ends.append(time.perf_counter() - began)
    for name, values in (("submit to pause", pauses), ("decide to done", ends)):
        p95 = statistics.quantiles(values, n=20)[-1]
        say(f"{name}: p50 {statistics.median(values) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms")
    began = time.perf_counter()
    runs = [office.open({"calls": [refund("A-20877", 1)]}, {"text": "done"}) for _ in range(32)]
    ids = [run.pk for run in runs]
    wait_until(lambda: sweep() and Run.objects.filter(pk__in=ids, status="success").count() == len(ids), 120)
    say(f"32 at once: {len(ids) / (time.perf_counter() - began):.1f} runs with one refund each per second")


def test_a_frozen_broker(office, web):
    """People must not notice: below half a second, and everything is worked off afterwards."""
    worker = office.hire(concurrency=4).wait_ready()
    waiting = [
        office.request(office.open({"calls": [refund("A-20925", 1001)]}, {"text": "done"})) for _ in range(20)
    ]
    by_sam, by_rita = by_token(web.url, office.sam), by_token(web.url, office.rita)
    body = {"agent": "refunds", "message": json.dumps({"script": [{"text": "done"}]})}

    def submit(_request):
        return by_sam("/cases", body)

    def decide(request):
        answer = {"type": "reject", "message": "no", "rev": request.rev, "digest": request.digest}
        return by_rita(f"/requests/{request.pk}/decisions", answer)

    with frozen_broker():
        for name, act in (("submit", submit), ("decide", decide)):
            taken = []
            for request in waiting:
                began = time.perf_counter()
                assert act(request).status_code == 201
                taken.append(time.perf_counter() - began)
            p95 = statistics.quantiles(taken, n=20)[-1]
            say(
                f"{name}, broker frozen: p50 {statistics.median(taken) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms"
            )
    began = time.perf_counter()
    wait_until(lambda: sweep() and Run.objects.filter(status="success").count() == 40, 120, "not worked off")
    say(f"worked off {time.perf_counter() - began:.1f} s after it came back")
    assert worker.running

"""The numbers of `health` as Prometheus reads them. Read at every scrape: any web process gives the same answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from approvals import health
from approvals.health import Vitals, Waiting

NAMES: Mapping[str, str] = {
    "asked": "Requests that wait for a person",
    "overdue": "Requests whose time is over and that nobody has closed",
    "unknown": "Calls whose outcome nobody knows",
    "due": "Decisions that no worker has taken yet",
    "queued": "Runs that no worker has begun",
}


class VitalsCollector(Collector):
    """What is not known is left out: an alert on absence then fires, and no zero lies."""

    def __init__(self, found: Vitals) -> None:
        self.found = found

    def collect(self) -> Iterator[Metric]:
        found = self.found
        for name, words in NAMES.items():
            waiting: Waiting = getattr(found, name)
            yield _gauge(f"{name}", words, waiting.count)
            yield _gauge(f"{name}_oldest_seconds", f"{words}: age of the oldest", waiting.oldest or 0)
        yield _labelled("runs", "Open and parked runs", "status", found.runs)
        yield _labelled(
            "pulse_age_seconds", "Seconds since the last sweep, and since each canary", "name", found.pulses
        )
        yield _gauge("broker_up", "Whether the broker answers", found.broker is not None)
        if found.broker is not None:
            yield _labelled("queue_depth", "Messages that wait in the broker", "queue", found.broker.depth)
            if found.broker.nudge is not None:
                yield _gauge("nudge_lag_seconds", "A nudge, there and back", found.broker.nudge)
        if found.latency is not None:
            quantiles = {"0.5": found.latency.median, "0.95": found.latency.p95}
            words = "From a decision that is due to the worker that takes it, within the last hour"
            yield _labelled("drive_latency_seconds", words, "quantile", quantiles)
        yield _gauge("database_sessions", "Open sessions of the database", found.sessions[0])
        yield _gauge("database_sessions_possible", "Sessions the database allows", found.sessions[1])
        yield _gauge("drained", "Whether all work is stopped", found.drained_since is not None)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"counterseal_{name}", words, value=float(value))


def _labelled(name: str, words: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"counterseal_{name}", words, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family


def exposition() -> bytes:
    """The text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(VitalsCollector(health.vitals()))
    return generate_latest(registry)

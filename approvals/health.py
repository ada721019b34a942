"""How the installation is doing: numbers, read from the rows and from the broker. Ages are those of the database's clock.

A sign of life is a row that the work itself writes (`services.pulses`): that a worker process exists proves nothing, a
canary that went from beat through the broker to a worker and became a row does.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import Now
from redis import Redis
from redis.exceptions import RedisError

from approvals import notify
from approvals.enums import DecisionType, ExecutionStatus, RequestStatus, RunStatus
from approvals.models import OPEN, ApprovalRequest, Decision, Drain, Pulse, Run, ToolExecution
from approvals.services import pulses

log = logging.getLogger("counterseal.health")

SECONDS = 2.0  # that the broker may take to answer
RECENT = timedelta(hours=1)
SAMPLE = 200
SWEEP_LATE = max(30.0, 5.0 * settings.SWEEP_SECONDS)
CANARY_LATE = 3.0 * settings.CANARY_SECONDS
DUE_LATE = 30.0  # a decision that no worker has taken


@dataclass(frozen=True)
class Waiting:
    """How many, and for how many seconds the oldest of them."""

    count: int
    oldest: float | None = None


@dataclass(frozen=True)
class Latency:
    """From the moment a decision is due until a worker takes it, in seconds, within the last hour."""

    count: int
    median: float
    p95: float


@dataclass(frozen=True)
class Broker:
    """What waits in its queues; `nudge`: seconds that a nudge takes there and back."""

    depth: Mapping[str, int]
    nudge: float | None


@dataclass(frozen=True)
class Vitals:
    asked: Waiting  # requests that wait for a person
    overdue: Waiting  # requests whose time is over and that nobody has closed
    unknown: Waiting  # calls whose outcome nobody knows
    due: Waiting  # decisions that no worker has taken yet
    queued: Waiting  # runs that no worker has begun
    runs: Mapping[str, int]  # open and parked ones, by status
    latency: Latency | None
    pulses: Mapping[str, float]  # name -> seconds ago
    broker: Broker | None  # None: it does not answer
    sessions: tuple[int, int]  # of the database: open, possible
    drained_since: datetime | None

    @property
    def sweep(self) -> float | None:
        return self.pulses.get(pulses.SWEEP)

    @property
    def canaries(self) -> dict[str, float | None]:
        """Queue -> seconds since a worker last consumed from it."""
        return {queue: self.pulses.get(pulses.CANARY + queue) for queue in settings.QUEUES}

    @property
    def silent_queues(self) -> list[str]:
        return [queue for queue, age in self.canaries.items() if is_late(age, CANARY_LATE)]


def is_late(age: float | None, limit: float) -> bool:
    """Never counts as late."""
    return age is None or age > limit


def vitals() -> Vitals:
    """Everything, in a dozen small queries; a dead broker costs `SECONDS`."""
    lag = notify.ask_lag(SECONDS)
    depth = queue_depth()
    asked = ApprovalRequest.objects.filter(status=RequestStatus.PENDING)
    unknown = ToolExecution.objects.filter(status=ExecutionStatus.UNKNOWN)
    queued = Run.objects.filter(status=RunStatus.PENDING)
    drain = Drain.objects.first()
    return Vitals(
        asked=_waiting(asked, "created_at"),
        overdue=_waiting(asked.filter(expires_at__lte=Now()), "expires_at"),
        unknown=_waiting(unknown, "started_at"),
        due=_waiting(due_decisions(), "send_at"),
        queued=_waiting(queued, "created_at"),
        runs=_runs(),
        latency=_latency(),
        pulses={row.name: row.age.total_seconds() for row in Pulse.objects.annotate(age=Now() - F("at"))},
        broker=None if depth is None else Broker(depth, lag()),
        sessions=_sessions(),
        drained_since=drain.since if drain else None,
    )


def due_decisions() -> QuerySet[Decision]:
    """Decisions that nobody can undo any more and that the run has not been given."""
    standing = Decision.objects.filter(sent_at=None, undone_at=None, send_at__lte=Now())
    waiting = standing.filter(request__applied_at=None, request__run__status__in=OPEN)
    return waiting.exclude(request__status=RequestStatus.PENDING).exclude(type=DecisionType.STILL_UNKNOWN)


def failing_runs(limit: int = 20) -> list[Run]:
    """Open runs whose last attempt ended with an exception."""
    found = Run.objects.filter(status__in=OPEN).exclude(last_error="").select_related("thread", "version")
    return list(found.order_by("-touched_at")[:limit])


def parked_runs(limit: int = 50) -> list[Run]:
    found = Run.objects.filter(status=RunStatus.PARKED).select_related("thread", "version", "version__agent")
    return list(found.order_by("-finished_at")[:limit])


def queue_depth() -> dict[str, int] | None:
    """Messages that wait in the broker; None if it does not answer."""
    link = Redis.from_url(settings.REDIS_URL, socket_connect_timeout=SECONDS, socket_timeout=SECONDS)
    try:
        found = {queue: link.llen(queue) for queue in settings.QUEUES}
    except (RedisError, OSError) as error:
        log.warning("broker: %s", type(error).__name__)
        return None
    finally:
        link.close()
    return {queue: int(depth) for queue, depth in found.items()}


def _waiting(rows: QuerySet[Any, Any], since: str) -> Waiting:
    found: dict[str, Any] = rows.aggregate(count=Count("pk"), oldest=Now() - Min(since))
    oldest = found["oldest"]
    return Waiting(found["count"], None if oldest is None else oldest.total_seconds())


def _runs() -> dict[str, int]:
    """Two small counts: the ended runs are many and in no index of these."""
    found = {str(status): 0 for status in (*OPEN, RunStatus.PARKED)}
    for some in (Q(status__in=OPEN), Q(status=RunStatus.PARKED)):
        found |= dict(Run.objects.filter(some).values_list("status").annotate(count=Count("pk")))
    return found


def _latency() -> Latency | None:
    sent = Decision.objects.filter(sent_at__gt=Now() - RECENT).order_by("-sent_at")
    taken = sent.annotate(wait=F("sent_at") - F("send_at")).values_list("wait", flat=True)
    waits = sorted(wait.total_seconds() for wait in taken[:SAMPLE])
    if not waits:
        return None
    return Latency(len(waits), statistics.median(waits), waits[int(0.95 * (len(waits) - 1))])


def _sessions() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity "
            "WHERE backend_type = 'client backend'"
        )
        open_, possible = cursor.fetchone()
    return int(open_), int(possible)

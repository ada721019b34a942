"""Live updates: one numbered row per topic in the transaction of the change, nudges after commit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection
from django.db.models import F

from approvals import notify
from approvals.models import Event, EventCounter

REPLAY_AT_MOST = 500
INBOX = "inbox"


def record(*topics: str, kind: str, object_id: object, rev: int = 0) -> None:
    """Append one nudge per topic. Call it after the rows of the change and before the audit entry.

    Incrementing the counter locks its row until commit, so number 12 cannot become visible before number 11: with a
    plain sequence it could, and a browser that has seen 12 would never ask for 11.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("events.record() belongs inside the transaction of the change it announces")
    if not EventCounter.objects.filter(pk=1).update(seq=F("seq") + len(topics)):
        EventCounter.objects.create(
            pk=1, seq=len(topics)
        )  # an emptied database; the second of two at once fails
    last = current_seq()
    rows = [
        Event(seq=last - len(topics) + place, topic=topic, kind=kind, object_id=str(object_id), rev=rev)
        for place, topic in enumerate(topics, start=1)
    ]
    Event.objects.bulk_create(rows)
    notify.nudge_on_commit([row.as_nudge() for row in rows])


def current_seq() -> int:
    """Read it before the data of a page, and print it as data-seq: then the page is at least that new."""
    return EventCounter.objects.filter(pk=1).values_list("seq", flat=True).first() or 0


@dataclass(frozen=True)
class Replay:
    seq: int
    nudges: list[dict[str, object]]
    resync: bool  # the gap is too old or too long: fetch everything


def replay(topics: Collection[str], since: int) -> Replay:
    """What a client that has everything up to `since` has missed on `topics`."""
    seq = current_seq()
    oldest_kept = Event.objects.order_by("seq").values_list("seq", flat=True).first() or seq + 1
    missed = Event.objects.filter(topic__in=topics, seq__gt=since, seq__lte=seq).order_by("seq")
    nudges = [event.as_nudge() for event in missed[: REPLAY_AT_MOST + 1]]
    if since + 1 < oldest_kept or len(nudges) > REPLAY_AT_MOST:
        return Replay(seq, [], resync=True)
    return Replay(seq, nudges, resync=False)

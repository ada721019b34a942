"""What can go wrong, in the words people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Refusal(Exception):
    """Base: the act was refused and nothing changed."""


@dataclass(frozen=True)
class Attempt:
    """What was refused, for the audit trail."""

    right: str
    object_kind: str = ""
    object_id: str = ""


class NotAllowed(Refusal):
    """The person may see the object but not do this to it (403)."""

    attempt = Attempt("")


class Invalid(Refusal):
    """The input is wrong (422). `errors` maps a field to a sentence with the remedy."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {text}" for field, text in errors.items()))
        self.errors = dict(errors)


class AlreadyClosed(Refusal):
    """The request is no longer what the person saw (409). `request`: the `ApprovalRequest` as it is now."""

    def __init__(self, request: Any) -> None:
        super().__init__(f"request {request.pk} is {request.status}")
        self.request = request


class KeyReused(Refusal):
    """The idempotency key was used with another body (409)."""


class Pending(Refusal):
    """Something on the thread waits for a person, and the caller did not say what to do about it (409)."""


class TooLate(Refusal):
    """Sent already, undone already, or ended already (409)."""


class IllegalTransition(Exception):
    """A programming error: the table of transitions has no such edge."""

    def __init__(self, machine: str, source: str, event: str) -> None:
        super().__init__(f"{machine}: no transition {event!r} from {source!r}")


def as_pairs(errors: Mapping[str, str]) -> list[dict[str, Any]]:
    """The list that problem documents carry."""
    return [{"field": field, "message": message} for field, message in errors.items()]

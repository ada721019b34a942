"""What can go wrong, in the words people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.words import gettext_noop


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


class AgentPaused(TooLate):
    """An administrator has paused the agent: it takes no new work (409, or 422 for a new case)."""

    TEXT = gettext_noop(
        "This agent is paused by an administrator: it takes no new work. What runs already goes on."
    )

    def __init__(self) -> None:
        super().__init__(self.TEXT)


class DraftChanged(Refusal):
    """Somebody else changed, published or discarded the draft meanwhile (409). `draft`: as it is now, None if gone."""

    def __init__(self, draft: Any = None) -> None:
        super().__init__("This draft is not what you saw any more.")
        self.draft = draft


class NotPublishable(Refusal):
    """The spec has errors (409). `findings`: `middleware.lints.Lint`s, errors only."""

    def __init__(self, findings: Sequence[Any]) -> None:
        super().__init__("; ".join(finding.text for finding in findings))
        self.findings = list(findings)


class IllegalTransition(Exception):
    """A programming error: the table of transitions has no such edge."""

    def __init__(self, machine: str, source: str, event: str) -> None:
        super().__init__(f"{machine}: no transition {event!r} from {source!r}")


def as_pairs(errors: Mapping[str, str]) -> list[dict[str, Any]]:
    """The list that problem documents carry."""
    return [{"field": field, "message": message} for field, message in errors.items()]

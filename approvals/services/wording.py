"""The sentences a model reads when a call ended without running. Each ending has its own words."""

from __future__ import annotations

from collections.abc import Sequence

from approvals.enums import RequestStatus


def _because(reason: str, otherwise: str = "") -> str:
    reason = reason.strip()
    if not reason:
        return otherwise
    return f" Reason: {reason}" if reason[-1] in ".!?。！？" else f" Reason: {reason}."


def rejected(reason: str) -> str:
    said = _because(reason, " No reason was given.")
    return f"A reviewer rejected this call; it did not run.{said} Do not propose the same call again unless asked."


def expired(default_answer: str = "") -> str:
    """`default_answer`: what the agent's own definition says a question nobody answered counts as."""
    if default_answer:
        return f"Nobody answered in time. For this case the agent was told to go on with: {default_answer}"
    return (
        "Nobody decided in time, so this call did not run. This is not a rejection: no person has looked at it. "
        "Say that it needs more time and do not propose it again in this turn."
    )


def withdrawn(reason: str) -> str:
    said = _because(reason)
    return f"Support staff withdrew this request before it was decided; the call did not run.{said}"


def superseded() -> str:
    return "This request was replaced before it was decided; the call did not run."


def handled_elsewhere(reason: str) -> str:
    said = f" {reason}" if reason else ""
    return f"A person has taken care of this outside; the call did not run.{said} Do not propose it again."


def found() -> str:
    return "The provider was asked by key and knows the call: it did happen."


def cancelled(reason: str, done: Sequence[str] = ()) -> str:
    """`done`: what the run had already changed, in words."""
    before = f" Done before that, and not taken back: {'; '.join(done)}." if done else ""
    return f"A person stopped the run; what was still open did not run.{_because(reason)}{before}"


NOT_A_DECISION = (
    RequestStatus.EXPIRED,
    RequestStatus.WITHDRAWN,
    RequestStatus.SUPERSEDED,
    RequestStatus.HANDLED_ELSEWHERE,
)

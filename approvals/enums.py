"""Words of the database. The glossary explains them."""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class ThreadStatus(TextChoices):
    IDLE = "idle", _("Done")
    BUSY = "busy", _("Working")
    INTERRUPTED = "interrupted", _("Waiting")
    ERROR = "error", _("Failed")


class RunStatus(TextChoices):
    PENDING = "pending", _("Queued")
    RUNNING = "running", _("Working")
    INTERRUPTED = "interrupted", _("Waiting")
    SUCCESS = "success", _("Done")
    ERROR = "error", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    PARKED = "parked", _("Parked")


class TrialStatus(TextChoices):
    WAITING = "waiting", _("Queued")
    RUNNING = "running", _("Working")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class RequestKind(TextChoices):
    TOOL_CALL = "tool_call", _("Tool call")
    QUESTION = "question", _("Question")
    LIMIT = "limit", _("Limit")
    UNKNOWN_OUTCOME = "unknown_outcome", _("Outcome unknown")


class RequestStatus(TextChoices):
    PENDING = "pending", _("Pending")
    APPROVED = "approved", _("Approved")
    EDITED = "edited", _("Approved with an edit")
    REJECTED = "rejected", _("Rejected")
    RESPONDED = "responded", _("Answered")
    EXPIRED = "expired", _("Timed out")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    SUPERSEDED = "superseded", _("Superseded")
    HANDLED_ELSEWHERE = "handled_elsewhere", _("Handled elsewhere")


class DecisionType(TextChoices):
    APPROVE = "approve", _("Approved")
    EDIT = "edit", _("Approved with an edit")
    REJECT = "reject", _("Rejected")
    RESPOND = "respond", _("Answered")
    GRANT = "grant", _("Granted")
    STOP = "stop", _("Stopped")
    HAPPENED = "happened", _("It went through")
    DID_NOT_HAPPEN = "did_not_happen", _("It did not go through")
    STILL_UNKNOWN = "still_unknown", _("Still unknown")


class LookUp(TextChoices):
    """What the provider said when it was last asked by key, short of having the effect."""

    NOT_FOUND = "not_found", _("Not found")
    NO_ANSWER = "no_answer", _("No answer")


class ExecutionStatus(TextChoices):
    PLANNED = "planned", _("Planned")
    STARTED = "started", _("Sent")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Refused by the provider")
    UNKNOWN = "unknown", _("Outcome unknown")


class StepKind(TextChoices):
    MESSAGE = "message", _("Message")
    MODEL = "model", _("Model call")
    TOOL = "tool", _("Tool")


class Scope(TextChoices):
    CASES = "cases", _("Open and withdraw cases")
    READ = "read", _("Read cases, runs and requests")
    DECIDE = "decide", _("Decide requests")
    AUDIT = "audit", _("Read the audit trail")
    ADMIN = "admin", _("Administer")


class Role(TextChoices):
    """Names of Django groups that carry a right. Reviewer groups are queues: any name an agent's rule uses."""

    SUPPORT = "support", _("Support")
    REFUND_REVIEWERS = "refund-reviewers", _("Refund reviewers")
    FINANCE = "finance", _("Finance")
    ADMINISTRATORS = "administrators", _("Administrators")
    AUDITORS = "auditors", _("Auditors")


class ActorKind(TextChoices):
    USER = "user", _("Person")
    TOKEN = "token", _("API token")
    RULE = "rule", _("Rule")
    SYSTEM = "system", _("System")
    AGENT = "agent", _("Agent")

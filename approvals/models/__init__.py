"""Rows. Facts about one row are properties; every change of state is a function in `services`."""

from approvals.models.agent import Agent, AgentDraft, AgentVersion, StackPicture, Trial
from approvals.models.approval_request import ApprovalRequest, Decision, DecisionDraft
from approvals.models.event import AuditEvent, AuditHead, AuditSeal, Event, EventCounter
from approvals.models.operation import Drain, Pulse
from approvals.models.people import ApiToken, SignIn, User
from approvals.models.run import ENDED, OPEN, Run, Step, Verdict
from approvals.models.thread import Thread
from approvals.models.tool_execution import ToolExecution

__all__ = [
    "ENDED",
    "OPEN",
    "Agent",
    "AgentDraft",
    "AgentVersion",
    "ApiToken",
    "ApprovalRequest",
    "AuditEvent",
    "AuditHead",
    "AuditSeal",
    "Decision",
    "DecisionDraft",
    "Drain",
    "Event",
    "EventCounter",
    "Pulse",
    "Run",
    "SignIn",
    "StackPicture",
    "Step",
    "Thread",
    "ToolExecution",
    "Trial",
    "User",
    "Verdict",
]

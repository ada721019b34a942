"""What pages show, one module per page. Templates get these and decide nothing but the look."""

from approvals.contexts.case import CaseRow, Conversation, conversation
from approvals.contexts.decision import PRESETS, Pane, Typed, pane
from approvals.contexts.navigation import Frame, frame
from approvals.contexts.queue import Inbox, inbox
from approvals.contexts.run import RUN_TONES, Timeline, timeline
from approvals.contexts.trail import Entry

__all__ = [
    "PRESETS", "RUN_TONES", "CaseRow", "Conversation", "Entry", "Frame", "Inbox", "Pane", "Timeline", "Typed",
    "conversation", "frame", "inbox", "pane", "timeline",
]  # fmt: skip

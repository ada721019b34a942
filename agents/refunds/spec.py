"""The refund agent as data. Every choice here can be changed in the console; this is what ships."""

from __future__ import annotations

import os

from agents.catalogue import AgentSpec
from agents.refunds.prompts import SYSTEM

DEFAULT_MODEL = "demo:refunds"
READS = ["lookup_order", "read_policy", "compute_refund"]


def spec() -> AgentSpec:
    """Reads COUNTERSEAL_MODEL, COUNTERSEAL_MODEL_BASE_URL and COUNTERSEAL_MODEL_KEY_ENV."""
    return AgentSpec(
        slug="refunds",
        title="Refund agent",
        description="Looks orders up, applies the refund policy and pays money back; amounts over 1,000 need a person.",
        model=os.environ.get("COUNTERSEAL_MODEL") or DEFAULT_MODEL,
        base_url=os.environ.get("COUNTERSEAL_MODEL_BASE_URL") or None,
        api_key_env=os.environ.get("COUNTERSEAL_MODEL_KEY_ENV") or None,
        system_prompt=SYSTEM,
        tools=("lookup_order", "read_policy", "compute_refund", "issue_refund", "ask_staff"),
        middleware=(
            {"use": "model_call_limit", "run_limit": 25, "hard_cap": 60, "on_limit": "ask"},
            {
                "use": "tool_call_limit",
                "tool_name": "issue_refund",
                "run_limit": 3,  # else a large refund could be made of many small ones
                "hard_cap": 40,
                "on_limit": "ask",
            },
            {"use": "pii", "pii_type": "credit_card", "strategy": "mask"},
            {
                "use": "human_in_the_loop",
                "interrupt_on": {
                    "issue_refund": {
                        "allowed_decisions": ["approve", "edit", "reject"],
                        "when": {"use": "amount_over", "arg": "amount", "value": 1000},
                        "queue": "refund-reviewers",
                        "expires_in": 1800,
                        "remind_after": 1200,
                    },
                    "ask_staff": {"allowed_decisions": ["respond"], "queue": "support", "expires_in": 86400},
                },
            },
            {"use": "tool_error", "tools": READS},
            {"use": "write_guard"},
            {"use": "tool_retry", "tools": READS, "max_retries": 2, "initial_delay": 0.3, "max_delay": 2.0},
        ),
    )

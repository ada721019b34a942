"""What is wrong or doubtful about a stack, with reasons. Light."""

from __future__ import annotations

from middleware.lints import gates, limits, order, privacy, providers
from middleware.lints.finding import Lint, Rule, Stack

__all__ = ["RULES", "Lint", "Stack"]

RULES: tuple[Rule, ...] = (*gates.RULES, *order.RULES, *limits.RULES, *privacy.RULES, *providers.RULES)

"""Which test proves which middleware in the whole product. `tests/middleware` checks that each is there. Light."""

from __future__ import annotations

from collections.abc import Mapping

PROOFS: Mapping[str, tuple[str, ...]] = {}

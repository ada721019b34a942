"""Rows without workers, and hints that nobody hears."""

from tests.engine.conftest import checkpoint_tables, desk, hints, shop

__all__ = ["checkpoint_tables", "desk", "hints", "shop"]

"""Rows without workers, hints that nobody hears; and offices with workers."""

from tests.engine.conftest import checkpoint_tables, desk, hints, shop
from tests.processes.conftest import office

__all__ = ["checkpoint_tables", "desk", "hints", "office", "shop"]

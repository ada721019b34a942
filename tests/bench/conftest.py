"""The fixtures of the process tests."""

from tests.processes.conftest import checkpoint_tables, office, shop, web

__all__ = ["checkpoint_tables", "office", "shop", "web"]

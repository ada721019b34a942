"""The fixtures of the process tests."""

from tests.processes.conftest import checkpoint_tables, module_shop, office, shop

__all__ = ["checkpoint_tables", "module_shop", "office", "shop"]

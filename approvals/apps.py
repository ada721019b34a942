"""The app."""

from importlib import import_module

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = "Counterseal"

    def ready(self) -> None:
        import_module("approvals.checks")  # registers them

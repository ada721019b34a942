"""`manage.py prepare`: what an installation needs besides its tables. Safe to run at every start, by several at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management.base import BaseCommand
from django.db import connection
from psycopg import sql

from agents.catalogue import AgentSpec, shipped_specs
from approvals import demo
from approvals.actors import SYSTEM
from approvals.enums import Role
from approvals.errors import NotPublishable
from approvals.services import agents

LOCK = 0x636F756E746572  # "counter"
CHECKPOINTS = "checkpoint_migrations"  # LangGraph's own list of what it has set up


class Command(BaseCommand):
    help = "Set up checkpoint tables, groups, shipped agents and, in demo mode, demo accounts."
    requires_system_checks = ()  # quick: this runs at every start

    verbosity = 1

    def handle(self, *args: Any, **options: Any) -> None:
        self.verbosity = options["verbosity"]
        with only_one():
            if set_up_checkpoints():
                self.say("checkpoint tables are set up")
            make_groups()
            for spec in shipped_specs():
                self.publish(spec)
            if settings.DEMO and (made := demo.make_accounts()):
                self.say(f"demo accounts: {', '.join(made)}")

    def publish(self, spec: AgentSpec) -> None:
        """A shipped agent that must not run leaves the version that is in force, and the rest of the installation."""
        try:
            self.say(f"agent {agents.publish_shipped(actor=SYSTEM, spec=spec)}", verbosity=2)
        except NotPublishable as error:
            self.stderr.write(self.style.ERROR(f"agent {spec.slug} is not published: {error}"))

    def say(self, text: str, verbosity: int = 1) -> None:
        if self.verbosity >= verbosity:
            self.stdout.write(text)


@contextmanager
def only_one() -> Iterator[None]:
    """Two replicas may start at the same moment; LangGraph's set-up must not run twice at once."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_lock(%s)", [LOCK])
        try:
            yield
        finally:
            cursor.execute("select pg_advisory_unlock(%s)", [LOCK])


def set_up_checkpoints() -> bool:
    """Let the installed LangGraph make its tables, unless this very version has done so: loading it takes seconds."""
    mark = f"langgraph-checkpoint-postgres {version('langgraph-checkpoint-postgres')} with store"
    with connection.cursor() as cursor:
        cursor.execute("select obj_description(to_regclass(%s), 'pg_class')", [CHECKPOINTS])
        (found,) = cursor.fetchone()
    if found == mark:
        return False
    from agents.checkpointing import set_up  # noqa: PLC0415 -- slow: only when there is something to do

    set_up(connection_string())
    with connection.cursor() as cursor:
        statement = sql.SQL("comment on table {} is {}").format(
            sql.Identifier(CHECKPOINTS), sql.Literal(mark)
        )
        cursor.execute(statement.as_string(cursor.connection))
    return True


def connection_string() -> str:
    """Django's own database, as libpq spells it."""
    connection.ensure_connection()
    return str(connection.connection.info.dsn)


def make_groups() -> None:
    """A right is membership in a group: the names of `enums.Role` must exist."""
    known = set(Group.objects.values_list("name", flat=True))
    Group.objects.bulk_create(
        [Group(name=role) for role in Role.values if role not in known], ignore_conflicts=True
    )

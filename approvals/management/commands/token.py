"""`manage.py token create|list|revoke`: API tokens from the command line."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from approvals.actors import Actor
from approvals.enums import ActorKind, Scope
from approvals.errors import Invalid
from approvals.models import ApiToken, User
from approvals.services import tokens

NAME = "Command line"


class Command(BaseCommand):
    help = "Make, list and revoke API tokens."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        create = acts.add_parser("create", help="print a new token, which cannot be shown again")
        create.add_argument("--user", required=True, help="user name of the person it acts for")
        create.add_argument("--scope", required=True, help=f"one or more of {','.join(Scope.values)}")
        create.add_argument("--days", type=int, default=90, help="how long it lives (default 90)")
        create.add_argument("--name", default="", help="a note for the list")
        listing = acts.add_parser("list", help="list tokens, without their secrets")
        listing.add_argument("--user", help="only those of this person")
        revoke = acts.add_parser("revoke", help="end a token at once")
        revoke.add_argument("prefix", help="the part after cseal_, or the whole token")

    def handle(self, *args: Any, **options: Any) -> None:
        {"create": self.create, "list": self.list, "revoke": self.revoke}[options["act"]](options)

    def create(self, options: dict[str, Any]) -> None:
        user = _user(options["user"])
        scopes = [scope.strip() for scope in options["scope"].split(",") if scope.strip()]
        actor = Actor(ActorKind.SYSTEM, NAME)
        try:
            _token, text = tokens.create(
                actor=actor, user=user, scopes=scopes, days=options["days"], name=options["name"]
            )
        except Invalid as error:
            raise CommandError(" ".join(error.errors.values())) from None
        self.stdout.write(text)

    def list(self, options: dict[str, Any]) -> None:
        rows = ApiToken.objects.select_related("user").order_by("user__username", "created_at")
        if options["user"]:
            rows = rows.filter(user=_user(options["user"]))
        for row in rows:
            state = (
                "revoked"
                if row.revoked_at
                else f"until {row.expires_at:%Y-%m-%d}"
                if row.expires_at
                else "no end"
            )
            self.stdout.write(
                f"{row.prefix}  {row.user.username}  {','.join(row.scopes)}  {state}  {row.name}".rstrip()
            )

    def revoke(self, options: dict[str, Any]) -> None:
        prefix = options["prefix"].removeprefix(f"{tokens.BRAND}_").partition("_")[0]
        token = ApiToken.objects.select_related("user").filter(prefix=prefix).first()
        if token is None:
            raise CommandError(f"There is no token {prefix}: see `manage.py token list`.")
        tokens.revoke(actor=Actor(ActorKind.SYSTEM, NAME, token.user), token_pk=token.pk)
        self.stdout.write(f"{prefix} of {token.user.username} is revoked.")


def _user(name: str) -> User:
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        known = ", ".join(
            User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)[:20]
        )
        raise CommandError(f"There is no active user called {name!r}. Known: {known or 'none'}.")
    return user

"""What an installation does about itself: prepare, tokens, checks, health, admin."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import Client
from django.urls import reverse

from approvals import checks, demo, dispatch, models
from approvals.enums import Role
from approvals.management.commands import prepare
from approvals.models import Agent, ApiToken, AuditEvent, User
from approvals.services import tokens
from approvals.views import health
from tests import factories

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def hints(monkeypatch):
    monkeypatch.setattr(dispatch, "_put", lambda hint: None)


def said(*command: Any) -> str:
    out = StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


class TestPrepare:
    @pytest.fixture(autouse=True)
    def demo_mode(self, transactional_db, settings):
        settings.DEMO = True
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

    def test_it_makes_groups_agents_tables_and_demo_accounts(self):
        said("prepare")
        assert set(Group.objects.values_list("name", flat=True)) >= set(Role.values)
        assert Agent.objects.get().current.number == 1
        with connection.cursor() as cursor:
            cursor.execute("select to_regclass('checkpoints'), to_regclass('checkpoint_writes')")
            assert None not in cursor.fetchone()
        people = {u.username: sorted(u.groups.values_list("name", flat=True)) for u in User.objects.all()}
        assert people == {
            "rita": ["refund-reviewers"], "chen": ["refund-reviewers"], "fay": ["finance"], "sam": ["support"],
            "tomas": ["support"], "ada": ["administrators"], "audra": ["auditors"], "otto": [],
        }  # fmt: skip
        assert all(check_password("counterseal", user.password) for user in User.objects.all())
        assert list(User.objects.filter(is_superuser=True).values_list("username", flat=True)) == ["ada"]

    def test_again_it_changes_nothing_and_loads_no_engine(self):
        said("prepare")
        before = list(User.objects.order_by("pk").values()), AuditEvent.objects.count(), Group.objects.count()
        assert said("prepare") == ""
        assert before == (
            list(User.objects.order_by("pk").values()),
            AuditEvent.objects.count(),
            Group.objects.count(),
        )
        script = (
            "import django, sys; django.setup(); from django.core.management import call_command; "
            "call_command('prepare'); print([n for n in sys.modules if n.startswith(('langchain', 'langgraph'))])"
        )
        env = child_environment()
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr

    def test_another_version_of_langgraph_sets_its_tables_up_again(self, monkeypatch):
        said("prepare")
        assert prepare.set_up_checkpoints() is False
        monkeypatch.setattr(prepare, "version", lambda name: "99.0")
        assert prepare.set_up_checkpoints() is True
        monkeypatch.undo()
        assert prepare.set_up_checkpoints() is True

    def test_a_changed_password_stays(self):
        said("prepare")
        User.objects.filter(username="rita").update(password="changed")
        User.objects.filter(username="otto").delete()
        assert said("prepare") == "demo accounts: otto\n"
        assert User.objects.get(username="rita").password == "changed"

    def test_two_at_once(self):
        failures: list[BaseException] = []

        def one() -> None:
            try:
                said("prepare")
            except BaseException as error:  # noqa: BLE001 -- handed to the test
                failures.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=one) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert (User.objects.count(), models.AgentVersion.objects.count()) == (8, 1)

    def test_no_demo_accounts_where_others_can_reach_them(self, settings):
        settings.ALLOWED_HOSTS = ["localhost", "desk.example.com"]
        said("prepare")
        assert User.objects.count() == 0

    def test_no_demo_accounts_without_demo_mode(self, settings):
        settings.DEMO = False
        said("prepare")
        assert (User.objects.count(), Agent.objects.count()) == (0, 1)


def child_environment() -> dict[str, str]:
    """Of a process that works on the database of the tests."""
    import os
    from urllib.parse import quote

    at = connection.settings_dict
    url = f"postgresql://{at['USER']}@/{at['NAME']}?host={quote(str(at['HOST']), safe='')}&port={at['PORT']}"
    return os.environ | {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}


class TestToken:
    def test_create_prints_the_token_alone(self, db):
        rita = factories.make_user("rita", "refund-reviewers")
        out = said(
            "token", "create", "--user", "rita", "--scope", "decide, read", "--days", "5", "--name", "ci"
        )
        assert out == out.strip() + "\n"
        token = tokens.find(out.strip())
        assert token is not None
        assert (token.user, token.scopes, token.name) == (rita, ["decide", "read"], "ci")
        assert 4 <= (token.expires_at - token.created_at).days <= 5
        assert out.strip() not in str(list(AuditEvent.objects.values()))
        assert AuditEvent.objects.get(action="token.created").actor_name == "Command line"

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--user", "nobody", "--scope", "read"), ("'nobody'", "rita")),
            (("--user", "rita", "--scope", "reed"), ("reed", "cases, read, decide, audit, admin")),
            (("--user", "rita", "--scope", ","), ("(none)",)),
            (("--user", "rita", "--scope", "read", "--days", "0"), ("1 to 365 days",)),
        ],
    )
    def test_errors_name_what_is_wrong(self, db, options, words):
        factories.make_user("rita")
        with pytest.raises(CommandError) as refused:
            said("token", "create", *options)
        assert all(word in str(refused.value) for word in words)
        assert ApiToken.objects.count() == 0

    def test_list_and_revoke(self, db):
        text = factories.make_token(factories.make_user("rita"), "read")
        prefix = text.split("_")[1]
        listed = said("token", "list", "--user", "rita")
        assert prefix in listed
        assert text.split("_", 2)[2] not in listed
        assert "revoked" in said("token", "revoke", prefix)
        assert tokens.find(text) is None
        assert "revoked" in said("token", "list")
        assert AuditEvent.objects.get(action="token.revoked").data == {"prefix": prefix}
        with pytest.raises(CommandError, match="There is no token x"):
            said("token", "revoke", "x")


class TestChecks:
    def test_demo_accounts_stay_on_loopback(self, settings):
        settings.DEMO = True
        assert checks.demo_stays_at_home(None) == []
        settings.ALLOWED_HOSTS = ["127.0.0.1", "desk.example.com"]
        (found,) = checks.demo_stays_at_home(None)
        assert (found.id, "desk.example.com" in found.msg) == ("counterseal.E001", True)
        settings.DEMO = False
        assert checks.demo_stays_at_home(None) == []

    def test_origins(self, settings):
        settings.HTTPS, settings.ORIGINS = True, []
        assert [found.id for found in checks.origins_are_named(None)] == ["counterseal.W001"]
        settings.ORIGINS = [
            "https://desk.example.com",
            "desk.example.com",
            "https://*.example.com",
            "https://a/b",
        ]
        assert [found.id for found in checks.origins_are_named(None)] == ["counterseal.E002"] * 3

    def test_any_host(self, settings):
        settings.ALLOWED_HOSTS = ["*"]
        assert [found.id for found in checks.hosts_are_named(None)] == ["counterseal.W002"]

    def test_shipped_agents_are_whole(self, monkeypatch):
        assert checks.shipped_agents_are_whole(None) == []
        spec = checks.shipped_specs()[0]
        broken = spec.model_copy(
            update={
                "tools": (*spec.tools, "delete_account"),
                "middleware": tuple(entry for entry in spec.middleware if entry["use"] != "write_guard"),
            }
        )
        monkeypatch.setattr(checks, "shipped_specs", lambda: [broken])
        assert [found.id for found in checks.shipped_agents_are_whole(None)] == [
            "counterseal.E003",
            "counterseal.E004",
        ]

    def test_they_are_registered(self):
        from django.core.checks.registry import registry

        assert {checks.demo_stays_at_home, checks.shipped_agents_are_whole} <= registry.registered_checks


class TestHealth:
    def test_alive_asks_nobody(self, client, monkeypatch):
        monkeypatch.setattr(health, "_database", pytest.fail)
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.head("/healthz").status_code == 200
        assert client.post("/healthz").status_code == 405

    def test_ready(self, client, db):
        sent = client.get("/readyz")
        assert (sent.status_code, sent.json()) == (200, {"status": "ok", "database": "ok", "broker": "ok"})

    def test_not_ready(self, client, db, settings, monkeypatch):
        settings.REDIS_URL = "redis://127.0.0.1:1"
        assert client.get("/readyz").json() == {"status": "unavailable", "database": "ok", "broker": "down"}

        monkeypatch.setattr(health, "connection", Dead())
        sent = client.get("/readyz")
        assert (sent.status_code, sent.json()["database"]) == (503, "down")

    def test_a_database_that_hangs_is_down_after_two_seconds(self, client, db, monkeypatch):
        monkeypatch.setattr(health, "connection", Dead(seconds=3))
        began = time.monotonic()
        assert client.get("/readyz").json()["database"] == "down"
        assert 1.9 < time.monotonic() - began < 2.9


class Dead:
    """A database connection that does not work, at once or after a while."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds = seconds

    def cursor(self) -> None:
        time.sleep(self.seconds)
        raise OperationalError

    def close(self) -> None:
        pass


ROWS = [model for model in admin.site._registry if model._meta.app_label == "approvals" and model is not User]


class TestAdmin:
    @pytest.fixture
    def ada(self, db):
        client = Client()
        client.force_login(factories.make_user("ada", "administrators", is_staff=True, is_superuser=True))
        return client

    @pytest.fixture
    def rows(self, db):
        request = factories.make_request(status="approved")
        factories.make_token(request.run.requested_by, "read")
        models.Verdict.objects.create(
            thread=request.thread,
            ai_message_id="a",
            tool_call_id="c",
            tool="issue_refund",
            asks=True,
            rule="r",
        )
        models.ToolExecution.objects.create(
            thread=request.thread, run=request.run, ai_message_id="a", tool_call_id="c", tool="issue_refund",
            digest="d", provider_key="k", fence=1,
        )  # fmt: skip
        models.SignIn.objects.create(account="ada", address="192.0.2.1", succeeded=True)
        models.Pulse.objects.create(name="sweep")
        models.Drain.objects.create(by="ada")
        with connection.cursor() as cursor:  # what the triggers do at the commit
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        agent = request.run.version.agent
        models.AgentDraft.objects.create(agent=agent, spec={}, edited_by="ada")
        models.StackPicture.objects.create(key="k", middleware=[])
        models.Trial.objects.create(agent=agent, spec={}, message="Refund A-20931", started_by="ada")

    def test_every_model_is_there(self):
        ours = {model for model in vars(models).values() if isinstance(model, type)} - {models.EventCounter}
        assert {model for model in ours if model is not models.DecisionDraft} <= set(admin.site._registry)

    @pytest.mark.parametrize("model", ROWS, ids=lambda model: model.__name__)
    def test_rows_can_be_looked_at_and_nothing_else(self, ada, rows, model):
        name = f"admin:approvals_{model._meta.model_name}"
        assert ada.get(reverse(f"{name}_changelist")).status_code == 200
        row = model._default_manager.first()
        shown = ada.get(reverse(f"{name}_change", args=[row.pk]))
        assert shown.status_code == 200
        assert b'name="_save"' not in shown.content
        before = model._default_manager.filter(pk=row.pk).values().get()
        assert ada.post(reverse(f"{name}_change", args=[row.pk]), {}).status_code == 403
        assert ada.get(reverse(f"{name}_add")).status_code == 403
        assert ada.post(reverse(f"{name}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
        assert model._default_manager.filter(pk=row.pk).values().get() == before

    def test_the_hash_of_a_token_is_not_shown(self, ada, rows):
        token = ApiToken.objects.get()
        shown = ada.get(reverse("admin:approvals_apitoken_change", args=[token.pk])).content.decode()
        assert token.secret_sha256 not in shown

    def test_people_and_groups_are_edited_by_superusers(self, ada, db):
        rita = factories.make_user("rita")
        page = reverse("admin:approvals_user_change", args=[rita.pk])
        assert b'name="_save"' in ada.get(page).content
        assert ada.get(reverse("admin:approvals_user_delete", args=[rita.pk])).status_code == 403
        assert ada.get(reverse("admin:auth_group_add")).status_code == 200
        clerk = Client()
        clerk.force_login(factories.make_user("clerk", is_staff=True))
        assert clerk.get(page).status_code == 403
        assert clerk.get(reverse("admin:auth_group_changelist")).status_code == 403

    def test_others_are_sent_to_the_login(self, rows, client):
        client.force_login(factories.make_user("sam", "support"))
        assert client.get("/admin/").status_code == 302


def test_demo_people_are_the_ones_that_the_tests_know():
    assert [person.username for person in demo.PEOPLE] == [
        "rita",
        "chen",
        "fay",
        "sam",
        "tomas",
        "ada",
        "audra",
        "otto",
    ]

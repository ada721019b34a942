"""Whoever gives a right is on the trail, with what it was before."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client

from approvals.models import AuditEvent, User
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def root():
    user = factories.make_user("root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    return client


def entries():
    found = AuditEvent.objects.order_by("id").values_list("action", "actor_name", "object_name", "data")
    return [entry for entry in found if entry[0].startswith(("person.", "role."))]


def form_of(user, **changes):
    """What the admin's form of a person sends."""
    sent = {
        name: getattr(user, name) for name in ("username", "first_name", "last_name", "email", "time_zone")
    }
    sent |= {"language": user.language, "theme": user.theme, "undo_seconds": user.undo_seconds}
    sent |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_active": "on"}
    sent["groups"] = list(user.groups.values_list("pk", flat=True))
    return {name: value for name, value in {**sent, **changes}.items() if value is not None}


def test_a_role_is_granted(root):
    rita = factories.make_user("rita", "support")
    group, _ = Group.objects.get_or_create(name="administrators")
    sent = form_of(rita, groups=[group.pk], is_superuser="on")
    assert root.post(f"/admin/approvals/user/{rita.pk}/change/", sent).status_code == 302
    assert entries() == [
        (
            "person.changed",
            "root",
            "rita",
            {
                "from": {"is_superuser": False, "roles": ["support"]},
                "to": {"is_superuser": True, "roles": ["administrators"]},
            },
        )
    ]


def test_a_person_is_deactivated(root):
    rita = factories.make_user("rita", "support")
    root.post(f"/admin/approvals/user/{rita.pk}/change/", form_of(rita, is_active=None))
    assert not User.objects.get(pk=rita.pk).is_active
    assert [(action, data["to"]) for action, _, _, data in entries()] == [
        ("person.changed", {"is_active": False})
    ]


def test_nothing_changed_is_no_entry(root):
    rita = factories.make_user("rita", "support")
    assert root.post(f"/admin/approvals/user/{rita.pk}/change/", form_of(rita)).status_code == 302
    assert entries() == []


def test_a_person_is_added_and_given_a_password(root):
    secret = "a-Long-enough-secret-7"
    sent = {"username": "nina", "password1": secret, "password2": secret, "usable_password": "true"}
    assert root.post("/admin/approvals/user/add/", sent).status_code == 302
    nina = User.objects.get(username="nina")
    again = {"password1": secret + "x", "password2": secret + "x", "usable_password": "true"}
    assert root.post(f"/admin/approvals/user/{nina.pk}/password/", again).status_code == 302
    assert [(action, who, what) for action, who, what, _ in entries()] == [
        ("person.added", "root", "nina"),
        ("person.password_set", "root", "nina"),
    ]
    assert secret not in str(entries())


def test_a_role_is_added_changed_and_removed(root):
    right = Permission.objects.get(codename="view_auditevent")
    root.post("/admin/auth/group/add/", {"name": "watchers"})
    group = Group.objects.get(name="watchers")
    root.post(f"/admin/auth/group/{group.pk}/change/", {"name": "watchers", "permissions": [right.pk]})
    factories.make_user("rita", "watchers")
    root.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})
    assert not Group.objects.filter(name="watchers").exists()
    assert [(action, data) for action, _, _, data in entries()] == [
        ("role.added", {"to": {"name": "watchers", "permissions": []}}),
        ("role.changed", {"from": {"permissions": []}, "to": {"permissions": ["approvals.view_auditevent"]}}),
        (
            "role.removed",
            {"from": {"name": "watchers", "permissions": ["approvals.view_auditevent"], "members": ["rita"]}},
        ),
    ]


def test_several_roles_are_removed_at_once(root):
    pks = [Group.objects.create(name=name).pk for name in ("one", "two")]
    sent = {"action": "delete_selected", "_selected_action": pks, "post": "yes"}
    root.post("/admin/auth/group/", sent)
    assert sorted(what for action, _, what, _ in entries() if action == "role.removed") == ["one", "two"]


def test_who_is_no_superuser_grants_nothing(root):
    ada = factories.make_user("ada", "administrators", is_staff=True)
    client = Client()
    client.force_login(ada)
    sent = form_of(ada, is_superuser="on")
    assert client.post(f"/admin/approvals/user/{ada.pk}/change/", sent).status_code == 403
    assert (entries(), User.objects.get(pk=ada.pk).is_superuser) == ([], False)

"""The admin: look at everything, change only people and groups. Rows that move by rules are moved by services."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from approvals import models
from approvals.actors import Actor
from approvals.services import people

admin.site.site_header = admin.site.site_title = "Counterseal"
admin.site.unregister(Group)


class SuperuserOnly:
    """Users and groups carry rights: whoever edits them must have all of them."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)


class Recorded:
    """Every change goes on the trail, in the transaction that Django's admin makes of it."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        stored = type(obj).objects.get(pk=obj.pk) if change else None
        form.rights_before = people.rights_of(stored) if stored else None
        super().save_model(request, obj, form, change)  # type: ignore[misc]

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)  # type: ignore[misc]
        people.record_rights(actor=_actor(request), subject=form.instance, before=form.rights_before)


@admin.register(Group)
class RoleAdmin(SuperuserOnly, Recorded, GroupAdmin):
    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        people.remove_role(actor=_actor(request), role=obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for role in queryset:
            people.remove_role(actor=_actor(request), role=role)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)


@admin.register(models.User)
class PersonAdmin(SuperuserOnly, Recorded, UserAdmin):  # type: ignore[type-arg]
    """People are deactivated, never deleted: their decisions stay."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        if request.resolver_match and request.resolver_match.url_name == "auth_user_password_change":
            people.record_password(actor=_actor(request), person=obj)
        return super().log_change(request, obj, message)

    fieldsets = (
        *(UserAdmin.fieldsets or ()),
        ("Settings", {"fields": ("language", "time_zone", "theme", "single_keys", "undo_seconds")}),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """No add, change or delete, for anybody."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(models.Agent)
class AgentAdmin(ReadOnly):
    list_display = ("slug", "title", "is_paused")


@admin.register(models.AgentVersion)
class AgentVersionAdmin(ReadOnly):
    list_display = ("agent", "number", "published_by", "published_at")
    list_filter = ("agent",)


@admin.register(models.AgentDraft)
class AgentDraftAdmin(ReadOnly):
    list_display = ("agent", "rev", "edited_by", "edited_at")


@admin.register(models.StackPicture)
class StackPictureAdmin(ReadOnly):
    list_display = ("key", "asked_at", "made_at")


@admin.register(models.Trial)
class TrialAdmin(ReadOnly):
    list_display = ("agent", "status", "started_by", "created_at")


@admin.register(models.Thread)
class ThreadAdmin(ReadOnly):
    list_display = ("number", "title", "agent", "requester", "status", "updated_at")
    list_filter = ("status", "agent")
    search_fields = ("title", "order_id", "customer_name")


@admin.register(models.Run)
class RunAdmin(ReadOnly):
    list_display = ("id", "thread", "number", "status", "requested_by", "created_at")
    list_filter = ("status",)


@admin.register(models.Step)
class StepAdmin(ReadOnly):
    list_display = ("run", "position", "kind", "tool", "created_at")
    list_filter = ("kind",)


@admin.register(models.Verdict)
class VerdictAdmin(ReadOnly):
    list_display = ("thread", "tool", "asks", "rule", "created_at")


@admin.register(models.ApprovalRequest)
class ApprovalRequestAdmin(ReadOnly):
    list_display = ("title", "kind", "status", "queue", "created_at", "closed_by")
    list_filter = ("status", "kind", "queue")
    readonly_fields = ("proposed", "may_run")

    @admin.display(description="Arguments as proposed")
    def proposed(self, row: models.ApprovalRequest) -> str:
        return _text(row.canonical)

    @admin.display(description="Arguments that may run")
    def may_run(self, row: models.ApprovalRequest) -> str:
        return _text(row.final)


@admin.register(models.Decision)
class DecisionAdmin(ReadOnly):
    list_display = ("request", "type", "actor_name", "decided_at", "sent_at", "undone_at")
    list_filter = ("type",)


@admin.register(models.ToolExecution)
class ToolExecutionAdmin(ReadOnly):
    list_display = ("tool", "status", "attempt", "started_at", "finished_at", "resolved_by")
    list_filter = ("status", "tool")


@admin.register(models.ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("prefix", "user", "name", "scopes", "expires_at", "last_used_at", "revoked_at")
    exclude = ("secret_sha256",)


@admin.register(models.SignIn)
class SignInAdmin(ReadOnly):
    list_display = ("at", "account", "address", "succeeded")
    list_filter = ("succeeded",)


@admin.register(models.AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("id", "at", "action", "actor_name", "object_name")
    list_filter = ("action", "actor_kind")
    search_fields = ("actor_name", "object_name")


@admin.register(models.AuditSeal)
class AuditSealAdmin(ReadOnly):
    list_display = ("seq", "event")


@admin.register(models.AuditHead)
class AuditHeadAdmin(ReadOnly):
    list_display = ("chain", "seq")


@admin.register(models.Event)
class EventAdmin(ReadOnly):
    list_display = ("seq", "topic", "kind", "created_at")


@admin.register(models.Pulse)
class PulseAdmin(ReadOnly):
    list_display = ("name", "at", "data")


@admin.register(models.Drain)
class DrainAdmin(ReadOnly):
    list_display = ("since", "by")


def _is_superuser(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def _actor(request: HttpRequest) -> Actor:
    return Actor.of(request.user)  # type: ignore[arg-type]


def _text(data: bytes | memoryview | None) -> str:
    return "" if data is None else bytes(data).decode()

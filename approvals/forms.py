"""What people may send. The arguments of an edit are read by argform, from the same POST."""

from __future__ import annotations

import zoneinfo
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from approvals import access, phrases
from approvals.argform.fields import build, leaves
from approvals.argform.patch import Edit, apply_edit
from approvals.argform.problems import schema_errors
from approvals.contexts import PRESETS
from approvals.enums import DecisionType, Scope
from approvals.models import Agent, ApprovalRequest, User
from approvals.services.decisions import Answer, Seen

UNDO_CHOICES = [(0, _("None")), (5, _("5 seconds")), (10, _("10 seconds")), (30, _("30 seconds"))]
MAX_TEXT = 20_000


class DecisionForm(forms.Form):
    """Hidden fields and the texts beside them. A page of ours always sends the hidden ones right."""

    HIDDEN = frozenset({"answer", "rev", "digest", "key"})

    answer = forms.ChoiceField(choices=DecisionType.choices)
    rev = forms.IntegerField(min_value=1, max_value=2**31 - 1)
    digest = forms.RegexField(r"[0-9a-f]{64}")
    key = forms.UUIDField()
    message = forms.CharField(required=False, max_length=MAX_TEXT)
    preset = forms.CharField(required=False)
    grant = forms.CharField(required=False, max_length=12)
    reference = forms.CharField(required=False, max_length=200)

    @property
    def is_malformed(self) -> bool:
        """A field the person cannot see is wrong: not their mistake, so there is no form to correct."""
        return bool(self.HIDDEN & set(self.errors)) and not self.is_unanswered

    @property
    def is_unanswered(self) -> bool:
        """Where the answer is chosen by a radio button, none may be."""
        return set(self.errors) == {"answer"} and "answer" not in self.data

    @property
    def problems(self) -> dict[str, str]:
        if self.is_unanswered:
            return {"answer": _t("Choose what you found.")}
        return {name: str(errors[0]) for name, errors in self.errors.items()}

    @property
    def seen(self) -> Seen:
        sent = self.cleaned_data
        return Seen(sent["rev"], sent["digest"], str(sent["key"]))


def read_answer(
    request: ApprovalRequest, form: DecisionForm, edit: Edit | None
) -> tuple[Answer, dict[str, str]]:
    """The answer as the services take it, and what is wrong with it by name of the control."""
    sent = form.cleaned_data
    kind = DecisionType(sent["answer"])
    message, errors = sent["message"].strip(), dict(edit.errors) if edit else {}
    grant: int | None = None
    match kind:
        case DecisionType.REJECT:
            preset = (
                str(PRESETS[sent["preset"]]())
                if sent["preset"] in PRESETS and sent["preset"] != "other"
                else ""
            )
            message = ": ".join(part for part in (preset, message) if part)
            if not message:
                errors["message"] = _t("Say why: the agent and the audit trail need a reason.")
        case DecisionType.RESPOND if not message:
            errors["message"] = _t("Write the answer.")
        case DecisionType.HAPPENED if not sent["reference"].strip():
            errors["reference"] = _t("Enter the provider’s reference, so that the record can be checked.")
        case DecisionType.GRANT:
            grant = int(sent["grant"]) if sent["grant"].isascii() and sent["grant"].isdigit() else None
            most = int(request.value.get("max_extra", 0) or 0)
            if grant is None or not 1 <= grant <= most:
                errors["grant"] = _t("Enter a whole number from 1 to %(most)s.") % {"most": most}
    args = edit.args if edit else None
    return Answer(kind, args=args, message=message, grant=grant, reference=sent["reference"].strip()), errors


def read_edit(request: ApprovalRequest, posted: dict[str, str]) -> Edit:
    """The posted fields as a patch on the proposal, checked field by field: text, locks, unknown names, schema."""
    schema, proposed, locked = request.args_schema, request.args, frozenset(request.locked)
    edit = apply_edit(schema, proposed, posted, locked=locked)
    known = {node.name for node in leaves(build(schema, proposed, locked=locked))}
    for name in posted:
        if name.startswith("args/") and name not in known:
            edit.errors[name] = _t("The tool has no such argument: remove it.")
    if not edit.errors:
        edit.errors |= schema_errors(schema, edit.args)
    if not edit.errors and not edit.changes:
        edit.errors["args"] = _t("Nothing was changed: change a field, or go back and approve.")
    return edit


class WrittenField(forms.CharField):
    """Text as it was typed, but not nothing."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_TEXT, strip=False, **kwargs)

    def clean(self, value: Any) -> Any:
        return super().clean("" if isinstance(value, str) and not value.strip() else value)


class CaseForm(forms.Form):
    agent = forms.ChoiceField(label=_("Agent"))
    message = WrittenField(
        label=_("What should the agent do?"), widget=forms.Textarea,
        error_messages={"required": _("Write what the agent should do.")},
    )  # fmt: skip
    customer_name = forms.CharField(label=_("Customer’s name"), required=False, max_length=120)
    customer_id = forms.CharField(label=_("Customer’s number"), required=False, max_length=80)
    order_id = forms.CharField(label=_("Order"), required=False, max_length=80)
    language = forms.ChoiceField(label=_("Customer’s language"), required=False)
    key = forms.UUIDField()

    LANGUAGES = (
        ("", _("Not known")), ("en", "English"), ("zh-CN", "简体中文"), ("zh-TW", "繁體中文"), ("ja", "日本語"),
        ("ko", "한국어"), ("de", "Deutsch"), ("fr", "Français"), ("es", "Español"), ("pt", "Português"),
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.filter(versions__isnull=False).distinct().order_by("title")
        self.fields["agent"].choices = [(agent.slug, _named(agent)) for agent in agents]  # type: ignore[attr-defined]
        self.fields["language"].choices = self.LANGUAGES  # type: ignore[attr-defined]


def _named(agent: Agent) -> str:
    title = phrases.agent(agent.title)
    return _t("%(agent)s (paused)") % {"agent": title} if agent.is_paused else title


class NewAgentForm(forms.Form):
    """What a new agent starts from: a template, or a spec as a file or text."""

    start = forms.CharField(max_length=60, required=False)
    slug = forms.RegexField(
        r"^[a-z][a-z0-9-]{0,39}$", label=_("Short name"), required=False, strip=True,
        error_messages={"invalid": _("Small letters, digits and hyphens, beginning with a letter.")},
    )  # fmt: skip
    title = forms.CharField(label=_("Title"), max_length=120, required=False)
    file = forms.FileField(label=_("File"), required=False)
    text = forms.CharField(label=_("Or its text"), max_length=200_000, required=False, strip=False)

    def clean(self) -> dict[str, Any]:
        sent: dict[str, Any] = super().clean() or self.cleaned_data
        if sent.get("start") != "file":
            for name in ("slug", "title"):
                if not sent.get(name) and name not in self.errors:
                    self.add_error(name, _t("Fill in this field."))
        return sent


class MessageForm(forms.Form):
    message = WrittenField(error_messages={"required": _("Write a message.")})
    while_pending = forms.ChoiceField(choices=[("queue", ""), ("withdraw", "")], required=False)
    key = forms.UUIDField()


class ReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=2000,
        error_messages={"required": _("Say why: the agent and the audit trail need a reason.")},
    )


class SettingsForm(forms.Form):
    language = forms.ChoiceField(label=_("Language"), required=False)
    time_zone = forms.ChoiceField(label=_("Time zone"), required=False)
    theme = forms.ChoiceField(label=_("Colours"))
    single_keys = forms.BooleanField(label=_("Single-letter keys"), required=False)
    undo_seconds = forms.TypedChoiceField(
        label=_("Time to undo a decision"), coerce=int, choices=UNDO_CHOICES
    )

    THEMES = (
        (User.Theme.SYSTEM, _("As the system")),
        (User.Theme.LIGHT, _("Light")),
        (User.Theme.DARK, _("Dark")),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zones = sorted(
            zone for zone in zoneinfo.available_timezones() if "/" in zone and not zone.startswith("Etc")
        )
        languages = [("", _("As the browser asks")), ("en", "English"), ("zh-hans", "简体中文")]
        assert {code for code, _name in languages} - {""} == set(dict(settings.LANGUAGES))
        self.fields["language"].choices = languages  # type: ignore[attr-defined]
        self.fields["time_zone"].choices = [("", "UTC"), *((zone, zone.replace("_", " ")) for zone in zones)]  # type: ignore[attr-defined]
        self.fields["theme"].choices = self.THEMES  # type: ignore[attr-defined]


class TokenForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=80, required=False)
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Pick at least one.")},
    )  # fmt: skip
    days = forms.IntegerField(label=_("Days it lives"), min_value=1, max_value=365, initial=90)


def scopes_for(user: User) -> list[tuple[str, Any]]:
    """A token is never wider than its person: what could not work is not offered."""
    useful = {
        Scope.CASES: access.may_open_cases(user),
        Scope.READ: True,
        Scope.DECIDE: access.is_reviewer(user) or access.is_support(user),
        Scope.AUDIT: access.may_see_audit(user),
        Scope.ADMIN: access.is_administrator(user),
    }
    return [(scope.value, scope.label) for scope, offered in useful.items() if offered]

"""A person's own page: how the pages look, and API tokens."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from approvals.errors import Invalid
from approvals.forms import SettingsForm, TokenForm, scopes_for
from approvals.services import people, tokens
from approvals.views.common import PageRequest, actor, page


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: PageRequest) -> HttpResponse:
    if request.method != "POST":
        return _show(request, _settings(request))
    form = SettingsForm(request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    people.change_settings(actor=actor(request), settings=form.cleaned_data)
    return redirect(f"{reverse('approvals:me')}?saved=1")  # said on the next page, in the language chosen now


def _settings(request: PageRequest) -> SettingsForm:
    return SettingsForm(initial={name: getattr(request.user, name) for name in people.SETTINGS})


def _show(
    request: PageRequest,
    form: SettingsForm,
    *,
    token_form: TokenForm | None = None,
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    token_form = token_form or TokenForm()
    token_form.fields["scopes"].choices = scopes_for(request.user)  # type: ignore[attr-defined]
    context = {
        "form": form,
        "token_form": token_form,
        "tokens": request.user.tokens.filter(revoked_at=None).order_by("-created_at"),
        "secret": secret,
        "saved": request.method == "GET" and "saved" in request.GET,
        "now": timezone.now(),
    }
    return page(request, "me.html", context, status=status)


@require_POST
def create_token(request: PageRequest) -> HttpResponse:
    """The secret is in this answer and nowhere else."""
    form = TokenForm(request.POST)
    form.fields["scopes"].choices = scopes_for(request.user)  # type: ignore[attr-defined]
    if not form.is_valid():
        return _show(request, _settings(request), token_form=form, status=422)
    sent = form.cleaned_data
    try:
        _token, secret = tokens.create(
            actor=actor(request),
            user=request.user,
            scopes=sent["scopes"],
            days=sent["days"],
            name=sent["name"],
        )
    except Invalid as error:
        for text in error.errors.values():
            form.add_error(None, text)
        return _show(request, _settings(request), token_form=form, status=422)
    return _show(request, _settings(request), secret=secret)


@require_POST
def revoke_token(request: PageRequest, pk: UUID) -> HttpResponse:
    tokens.revoke(actor=actor(request), token_pk=pk)
    return redirect("approvals:me")

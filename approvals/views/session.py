"""Signing in and out."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from approvals.services import sessions
from approvals.views.common import PageRequest


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """One message for every failure: whether a name exists is nobody's business."""
    target = _target(request)
    if request.user.is_authenticated:
        return HttpResponseRedirect(target)
    if request.method != "POST":
        return render(request, "login.html", {"next": request.GET.get("next", "")})
    who = {"username": request.POST.get("username", ""), "address": request.META.get("REMOTE_ADDR", "")}
    context = {"next": request.POST.get("next", ""), "username": who["username"]}
    if wait := sessions.seconds_to_wait(**who):  # before the password is looked at: that costs us, not them
        sessions.throttled(**who, seconds=wait)
        answer = render(
            request, "login.html", {**context, "wait": wait, "minutes": ceil(wait / 60)}, status=429
        )
        answer["Retry-After"] = str(wait)
        return answer
    form = AuthenticationForm(request, request.POST)
    if not form.is_valid():
        sessions.failed(**who)
        return render(request, "login.html", {**context, "failed": True}, status=422)
    user: Any = form.get_user()
    login(request, user)
    sessions.signed_in(user=user, address=who["address"])
    return HttpResponseRedirect(target)


def _target(request: HttpRequest) -> str:
    """Where to go afterwards: never to another site."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours and wanted.startswith("/") else resolve_url("approvals:home")


def to_our_login(request: HttpRequest) -> HttpResponse:
    """The admin has a login page of its own, which knows neither the trail nor the throttle."""
    return redirect_to_login(
        request.GET.get("next") or resolve_url("admin:index"), resolve_url("approvals:login")
    )


@require_POST
def sign_out(request: PageRequest) -> HttpResponse:
    sessions.signed_out(user=request.user)
    logout(request)
    return redirect("approvals:login")


def language(switch: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Django's own switch by cookie, for people who are not signed in yet."""
    return login_not_required(require_POST(switch))

"""Where a person starts."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from approvals import access
from approvals.views.common import PageRequest


@require_safe
def home(request: PageRequest) -> HttpResponse:
    user = request.user
    if access.is_reviewer(user):
        return redirect("approvals:inbox")
    if access.is_support(user):
        return redirect("approvals:support")
    if access.may_see_audit(user):
        return redirect("approvals:audit")
    return render(request, "no_role.html")

"""URLs of the web process."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path, re_path

from approvals.api import api, nothing_here
from approvals.views.session import sign_out, to_our_login

urlpatterns = [
    path("api/v1/", api.urls),
    re_path(r"^api/", nothing_here),
    path("admin/login/", login_not_required(to_our_login)),
    path("admin/logout/", sign_out),
    path("admin/", admin.site.urls),
    path("", include("approvals.urls")),
]

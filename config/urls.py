"""URLs of the web process."""

from django.contrib import admin
from django.urls import include, path, re_path

from approvals.api import api, nothing_here

urlpatterns = [
    path("api/v1/", api.urls),
    re_path(r"^api/", nothing_here),
    path("admin/", admin.site.urls),
    path("", include("approvals.urls")),
]

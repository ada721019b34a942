"""URLs of the web process."""

from django.contrib import admin
from django.urls import include, path

from approvals.api import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("admin/", admin.site.urls),
    path("", include("approvals.urls")),
]

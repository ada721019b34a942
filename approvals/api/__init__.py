"""JSON API v1. Errors are problem documents, everywhere under /api/."""

from __future__ import annotations

from functools import wraps
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, re_path
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from approvals.api import agents, audit, cases, problems, requests, runs
from approvals.api.parser import StrictParser

__all__ = ["api", "nothing_here"]


class Api(NinjaAPI):
    """ninja's routes, reachable without the login page, with problem documents for wrong methods and addresses."""

    @property
    def urls(self) -> tuple[list[Any], str, str]:
        patterns, app_name, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = _plain(pattern.callback)
        return [*patterns, re_path(r"^.*$", _plain(problems.not_found))], app_name, namespace

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**options)
        document["components"]["schemas"]["Problem"] = problems.SCHEMA
        for path, item in document["paths"].items():
            for method, operation in item.items():
                operation["responses"].update(_problems_of(path, method, operation))
        return document

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__


def _problems_of(path: str, method: str, operation: dict[str, Any]) -> dict[int, Any]:
    """The errors that an operation can answer with."""
    codes = [401, 403]
    codes += [404] if "{" in path else []
    codes += [409] if method == "post" else []
    codes += [422] if operation["parameters"] or "requestBody" in operation else []
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {code: {"description": HTTPStatus(code).phrase, "content": content} for code in codes}


def _plain(view: Any) -> Any:
    """No redirect to the login page, no CSRF check before we know who calls (a token needs none)."""

    @wraps(getattr(view, "func", view))
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            response: HttpResponse = view(request, *args, **kwargs)
        except Http404:  # the root, which exists to be reversed
            response = problems.not_found(request)
        if response.status_code == 405:
            response = problems.not_allowed(request, response.headers["Allow"])
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    wrapped.csrf_exempt = True  # type: ignore[attr-defined]
    wrapped.login_required = False  # type: ignore[attr-defined]
    return wrapped


api = Api(
    title="Counterseal",
    version="1",
    description="Agents propose; people decide. Errors are problem documents (RFC 9457).",
    docs_url=None,
    parser=StrictParser(),
    urls_namespace="api",
)
problems.install(api)
for module in (cases, runs, requests, audit, agents):
    api.add_router("", module.router)

nothing_here = _plain(problems.not_found)  # for the rest of /api/

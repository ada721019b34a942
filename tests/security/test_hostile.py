"""Whatever is sent, the answer is one of ours: never a server error, and nothing changes."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from django.test import Client

from approvals import urls, views
from approvals.actors import Actor
from approvals.api import api
from approvals.models import ApprovalRequest, AuditEvent, Decision, DecisionDraft, Run
from approvals.services import drafts
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = (
    "%00",
    "a%00b",
    "9" * 5000,
    "9" * 25,
    "-1",
    "1e400",
    "٣",
    "%ed%a0%80",
    "%ff",
    "x" * 5000,
    "",
    "[]",
    "NaN",
    "%E2%80%AE",
    "'\"><",
)
VIEWS = Path(views.__file__).parent
READS = re.compile(r'GET(?:\.get)?[(\[]"(\w+)"|given\.get\("(\w+)"')


def page_parameters() -> list[str]:
    """Every name that any page reads from its address."""
    source = "".join(path.read_text() for path in VIEWS.glob("*.py"))
    return sorted({first or second for first, second in READS.findall(source)})


def pages(request: ApprovalRequest) -> list[str]:
    """Every page of ours, with the id of something where it wants one."""
    found = []
    for pattern in urls.urlpatterns:
        route = str(pattern.pattern)
        owner = {"support": request.thread_id, "runs": request.run_id}.get(route.split("/")[0], request.pk)
        route = re.sub(r"<slug:\w+>", "refunds", re.sub(r"<uuid:\w+>", str(owner), route))
        found.append("/" + re.sub(r"<int:\w+>", "1", route))
    return found


def reading_operations(pk: object) -> list[tuple[str, list[str]]]:
    """Every GET of the API and the names of its parameters, out of its own description."""
    found = []
    for path, item in api.get_openapi_schema()["paths"].items():
        if "get" in item:
            names = [entry["name"] for entry in item["get"]["parameters"] if entry["in"] == "query"]
            found.append((re.sub(r"{\w+_id}", str(pk), path).replace("{slug}", "refunds"), names))
    return found


BODIES = (
    b"\x00", b"{", b"[]", b'"x"', b"null", b'{"type": "approve", "rev": ' + b"9" * 5000 + b"}",
    b'{"type": "edit", "rev": 1, "digest": "x", "args": {"amount": ' + b"9" * 5000 + b"}}",
    b'{"type": "edit", "rev": 1, "digest": "x", "args": {"amount": 1e400}}',
    b'{"type": "edit", "rev": 1, "digest": "x", "args": {"amount": NaN}}',
    b'{"type": "\\u0000", "rev": 1, "digest": "\\ud800"}',
    b'{"message": "\\ud800", "agent": "refunds"}', b'{"message": "a\\u0000b", "agent": "re\\u0000funds"}',
    b'{"a":' * 600 + b"1" + b"}" * 600, b"[" * 100_000, b'{"reason": "\\u0000"}', b"\xff\xfe", b'{"rev": 1, "rev": 2}',
)  # fmt: skip


@pytest.fixture
def everything():
    """Somebody who may do all of it, and one of each thing."""
    user = factories.make_user(
        "max", "support", "administrators", "refund-reviewers", is_superuser=True, is_staff=True
    )
    request = factories.make_request()
    drafts.begin(actor=Actor.of(user), slug="refunds", number=1)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    token = factories.make_token(user, "cases", "read", "decide", "audit", "admin")
    return client, request, {"HTTP_AUTHORIZATION": f"Bearer {token}"}


def state(request):
    request.refresh_from_db()
    return (
        request.status,
        request.rev,
        Decision.objects.count(),
        Run.objects.count(),
        ApprovalRequest.objects.count(),
    )


def test_no_parameter_of_any_page_breaks_it(everything):
    """All of a page's parameters at once: pages leave out what they cannot read."""
    client, request, _ = everything
    names = page_parameters()
    assert {"q", "case", "before", "mode", "queue", "next"} <= set(names)
    before = state(request)
    walked, broken = 0, []
    for path in pages(request):
        for text in TEXTS:
            answer = client.get(f"{path}?" + "&".join(f"{name}={text}" for name in names))
            walked += 1
            if answer.status_code >= 500:
                broken.append(f"{path}?...={text[:20]} {answer.status_code}")
    assert broken == [], "\n".join(broken)
    assert walked > 400
    assert state(request) == before


def test_no_parameter_of_any_operation_breaks_it_and_the_answer_names_it(everything):
    client, request, bearer = everything
    before = state(request)
    walked, broken = 0, []
    for pk in (request.pk, request.run_id):
        for path, names in reading_operations(pk):
            for name in names:
                for text in TEXTS:
                    answer = client.get(f"{path}?{name}={text}", **bearer)
                    walked += 1
                    if answer.status_code >= 500:
                        broken.append(f"{path}?{name}={text[:20]} {answer.status_code}")
                    elif answer.status_code == 422:
                        assert [error["field"] for error in answer.json()["errors"]] == [name]
    assert broken == [], "\n".join(broken)
    assert walked > 400
    assert state(request) == before


def test_no_path_breaks_it(everything):
    client, request, bearer = everything
    before = state(request)
    broken = []
    for text in (*TEXTS, str(request.pk) + "%00"):
        for path in (
            "/inbox/{}/",
            "/support/{}/",
            "/runs/{}/",
            "/audit/{}/",
            "/api/v1/runs/{}",
            "/api/v1/requests/{}",
            "/api/v1/agents/{}",
            "/api/v1/requests/{}/decisions",
            "/api/v1/cases/{}/messages",
            "/{}",
        ):
            for method in ("get", "post"):
                sent = bearer if path.startswith("/api/") else {}
                answer = getattr(client, method)(path.format(text), **sent)
                if answer.status_code >= 500:
                    broken.append(f"{method} {path.format(text)[:60]} {answer.status_code}")
    assert broken == [], "\n".join(broken)
    assert state(request) == before


def test_no_body_breaks_it(everything):
    client, request, bearer = everything
    before = state(request)
    trail = AuditEvent.objects.count()
    paths = (
        "/api/v1/cases",
        f"/api/v1/requests/{request.pk}/decisions",
        f"/api/v1/requests/{request.pk}/withdraw",
        f"/api/v1/cases/{request.thread_id}/messages",
        f"/api/v1/runs/{request.run_id}/cancel",
    )
    broken = []
    for path in paths:
        for body in BODIES:
            if path.endswith(("cancel", "withdraw")) and body == b'{"reason": "\\u0000"}':
                continue  # a readable reason: it would be done
            for key in ("k", "k" * 5000, ""):
                answer = client.generic(
                    "POST", path, body, content_type="application/json", HTTP_IDEMPOTENCY_KEY=key, **bearer
                )
                if answer.status_code >= 500 or answer.status_code < 400:
                    broken.append(f"{path[8:30]} {body[:40]!r} {answer.status_code}")
    assert broken == [], "\n".join(broken)
    assert (state(request), AuditEvent.objects.count()) == (before, trail)


def test_no_form_breaks_it(everything):
    client, request, _ = everything
    before = state(request)
    broken = []
    forms = {
        f"/inbox/{request.pk}/decide/": (
            "answer",
            "rev",
            "digest",
            "key",
            "message",
            "preset",
            "grant",
            "args.amount",
        ),
        f"/inbox/{request.pk}/draft/": ("answer", "rev", "args.amount", "message"),
        "/me/": ("language", "time_zone", "theme", "undo_seconds"),
        "/me/tokens/": ("name", "days", "scopes"),
        "/support/new/": ("agent", "customer_name", "order_id", "language"),
    }
    for path, names in forms.items():
        for name in names:
            for text in ("\x00", "9" * 5000, "\ud800", "-1", "1e400", "x" * 100_000):
                answer = client.post(path, {name: text.encode("utf-8", "surrogatepass")})
                if answer.status_code >= 500:
                    broken.append(f"{path[:20]} {name}={text[:10]!r} {answer.status_code}")
    assert broken == [], "\n".join(broken)
    assert state(request) == before


@pytest.mark.parametrize("message", ["\u200b\u200d\ufeff", "\u202e \u2066", "\u3164\u2800", "\xad\n\t"])
def test_a_message_that_nobody_sees_opens_no_case(message):
    sam = factories.make_user("sam", "support")
    client = Client()
    client.force_login(sam)
    sent = {"agent": "refunds", "message": message, "key": str(uuid.uuid4())}
    factories.make_case()
    before = Run.objects.count()
    assert client.post("/support/new/", sent).status_code == 422
    assert Run.objects.count() == before


def test_a_draft_has_an_end(everything):
    client, request, _ = everything
    sent = {"answer": "reject", "rev": "1", "message": "x" * 300_000}
    assert client.post(f"/inbox/{request.pk}/draft/", sent).status_code == 413
    assert not DecisionDraft.objects.exists()

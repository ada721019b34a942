"""Runs, steps, requests, agents, audit trail: what callers read, page by page."""

from __future__ import annotations

import json
import uuid

import pytest
from jsonschema import Draft202012Validator

from approvals.models import Run, Step
from tests import factories
from tests.api.conftest import caller, fields, refusals


@pytest.fixture
def request_(db):
    return factories.make_request()


def test_a_run(sam, request_):
    sent = sam.get(f"/runs/{request_.run_id}")
    assert sent.status_code == 200
    run = sent.json()
    assert {name: run[name] for name in ("id", "thread_id", "agent", "agent_version", "status", "error", "answer")} == {
        "id": str(request_.run_id), "thread_id": str(request_.thread_id), "agent": "refunds", "agent_version": 1,
        "status": "interrupted", "error": "", "answer": "",
    }  # fmt: skip
    assert run["requests"] == [str(request_.pk)]
    assert run["created_at"].endswith("Z")
    assert (run["requested_by"], run["usage"], run["stopping"]) == ("sam", {}, False)


@pytest.mark.parametrize("wait", ["-1", "soon"])
def test_a_useless_wait_is_refused(sam, request_, wait):
    assert list(fields(sam.get(f"/runs/{request_.run_id}?wait={wait}"))) == ["wait"]


def test_steps_in_order_from_a_position(sam, request_):
    run = request_.run
    calls = [{"id": "c1", "name": "lookup_order", "args": {"order_id": "A-20931"}}]
    for position, kind in enumerate(["model", "tool", "model"], start=2):
        Step.objects.create(
            run=run, position=position, kind=kind, message_id=f"m{position}", tool_calls=calls
        )
    first = sam.get(f"/runs/{run.pk}/steps?limit=3").json()
    assert ([step["position"] for step in first["items"]], first["next"]) == ([1, 2, 3], "3")
    assert first["items"][0]["text"] == run.message
    assert first["items"][1]["tool_calls"] == calls
    last = sam.get(f"/runs/{run.pk}/steps?after={first['next']}").json()
    assert ([step["position"] for step in last["items"]], last["next"]) == ([4], None)


def test_stop_a_run(sam, rita, request_):
    assert rita.post(f"/runs/{request_.run_id}/cancel", {"reason": "x"}).status_code == 403
    sent = sam.post(f"/runs/{request_.run_id}/cancel", {"reason": "Customer left."})
    assert (sent.status_code, sent.json()["stopping"]) == (200, True)
    late = sam.post(f"/runs/{request_.run_id}/cancel", {"reason": "again"})
    assert (late.status_code, late.json()["type"][-8:]) == (409, "too-late")


def test_one_request_has_what_a_decision_needs(rita, request_):
    shown = rita.get(f"/requests/{request_.pk}").json()
    assert shown["args"] == factories.REFUND
    assert (shown["rev"], shown["digest"], shown["kind"], shown["status"]) == (
        1,
        request_.digest,
        "tool_call",
        "pending",
    )
    assert shown["args_schema"]["additionalProperties"] is False
    assert shown["allowed_decisions"] == ["approve", "edit", "reject"]
    assert (shown["may_decide"], shown["decisions"], shown["execution"]) == (True, [], None)
    assert (shown["path"], shown["checks"], shown["locked"]) == ([], [], ["/order_id", "/currency"])
    assert shown["expires_at"].endswith("Z")
    assert shown["tool_call_id"] == request_.tool_call_id


def test_arguments_arrive_as_they_were_proposed(rita, db):
    args = {
        "lines": [{"sku": "A", "qty": 2, "tax": None}], "vip": True, "amount": 12.0, "n": 9007199254740993, "s": "007",
        "note": "退款给👩‍👩‍👧\u202e<script>\x00", "d": "1e3",
    }  # fmt: skip
    request = factories.make_request(args=args, title="x")
    raw = rita.get(f"/requests/{request.pk}").content.decode()
    assert json.loads(raw)["args"] == args
    assert '"amount": 12.0' in raw
    assert '"n": 9007199254740993' in raw


def test_requests_by_filter(sam, rita, request_):
    done = factories.make_request(factories.make_case(), status="rejected")
    ask = factories.make_request(
        factories.make_case(), kind="question", tool="ask_staff", args={"question": "?"}
    )

    def listed(who, query=""):
        return [item["id"] for item in who.get(f"/requests{query}").json()["items"]]

    everything = [str(row.pk) for row in (ask, done, request_)]
    assert listed(sam) == everything
    assert listed(rita) == everything  # a question may be answered by any colleague
    assert listed(sam, "?status=pending") == [everything[0], everything[2]]
    assert listed(sam, "?kind=question") == [str(ask.pk)]
    assert listed(sam, f"?thread={done.thread_id}") == [str(done.pk)]
    assert listed(sam, f"?run={done.run_id}") == [str(done.pk)]
    assert listed(sam, "?queue=support") == [str(ask.pk)]
    assert listed(sam, f"?run={uuid.uuid4()}") == []
    assert rita.get("/requests").json()["items"][1]["decisions"][0]["type"] == "reject"


def test_requests_page_by_page(sam):
    rows = [str(factories.make_request(factories.make_case(sam.user)).pk) for _ in range(5)]
    seen, after = [], ""
    for _ in range(3):
        page = sam.get(f"/requests?limit=2{after}").json()
        seen += [item["id"] for item in page["items"]]
        after = f"&after={page['next']}"
    assert (seen, page["next"]) == (rows[::-1], None)
    assert list(fields(sam.get(f"/requests?after={uuid.uuid4()}"))) == ["after"]


def test_the_list_costs_the_same_for_one_and_for_many(sam, django_assert_max_num_queries):
    for _ in range(6):
        factories.make_request(factories.make_case(sam.user), status="rejected")
    with django_assert_max_num_queries(8):
        assert len(sam.get("/requests").json()["items"]) == 6
    with django_assert_max_num_queries(8):
        assert [len(run["requests"]) for run in sam.get("/runs").json()["items"]] == [1] * 6


@pytest.mark.parametrize(
    ("query", "field"),
    [("status=open", "status"), ("kind=x", "kind"), ("thread=1", "thread"), ("limit=0", "limit")],
)
def test_a_wrong_filter_is_named(sam, query, field):
    assert list(fields(sam.get(f"/requests?{query}"))) == [field]


def test_runs_by_filter(sam, request_):
    other = factories.make_case()

    def listed(query=""):
        return [item["id"] for item in sam.get(f"/runs{query}").json()["items"]]

    assert listed() == [str(other.pk), str(request_.run_id)]
    assert listed("?status=pending") == [str(other.pk)]
    assert listed(f"?thread={request_.thread_id}") == [str(request_.run_id)]
    assert listed("?agent=refunds&limit=1") == [str(other.pk)]
    assert listed("?agent=nobody") == []


def test_the_audit_trail(ada, rita, request_):
    rita.post(f"/requests/{request_.pk}/decisions", {"type": "approve", "rev": 1, "digest": request_.digest})
    page = ada.get(f"/audit?thread={request_.thread_id}").json()
    assert [entry["action"] for entry in page["items"]] == [
        "case.opened",
        "request.asked",
        "request.approved",
    ]
    last = page["items"][-1]
    assert (last["actor"], last["actor_name"], last["actor_kind"]) == ("rita", rita.user.name, "token")
    assert (last["label"], last["object_kind"], last["object_id"]) == (
        "Approved",
        "approvalrequest",
        str(request_.pk),
    )
    assert (last["run_id"], last["at"][-1]) == (str(request_.run_id), "Z")
    ids = [entry["id"] for entry in page["items"]]
    assert [
        e["id"] for e in ada.get(f"/audit?thread={request_.thread_id}&after={ids[0]}").json()["items"]
    ] == ids[1:]
    first = ada.get(f"/audit?thread={request_.thread_id}&limit=1").json()
    assert first["next"] == str(ids[0])
    assert {e["action"] for e in ada.get("/audit?actor=rita").json()["items"]} == {"request.approved"}
    assert {e["actor"] for e in ada.get("/audit?action=case.opened").json()["items"]} == {"sam"}


def test_the_audit_trail_is_for_administrators_and_auditors(rita, sam, otto):
    assert caller("audra", "auditors").get("/audit").status_code == 200
    for who in (rita, sam, otto):
        assert who.get("/audit").status_code == 403
        assert refusals(who.user.username) == [("see_audit", "/api/v1/audit")]
    weak = caller("ada", "administrators", scopes=("read",))
    assert weak.get("/audit").json()["type"].endswith("scope")


def test_agents(sam, request_, settings):
    (agent,) = sam.get("/agents").json()["items"]
    assert (agent["slug"], agent["version"], agent["is_paused"]) == ("refunds", 1, False)
    settings.DEMO, settings.SHOP_URL = True, "http://127.0.0.1:8009"
    shown = sam.get("/agents/refunds").json()
    assert shown["spec"]["slug"] == "refunds"
    assert {tool["name"]: tool["effect"] for tool in shown["tools"]}["issue_refund"] == "write"
    assert [version["number"] for version in shown["versions"]] == [1]
    assert shown["shop_url"] == "http://127.0.0.1:8009"
    settings.DEMO = False
    assert sam.get("/agents/refunds").json()["shop_url"] is None
    assert sam.get("/agents/nobody").status_code == 404


def test_me(rita, client):
    me = rita.get("/me").json()
    assert (me["username"], me["groups"], me["queues"]) == (
        "rita",
        ["refund-reviewers"],
        ["refund-reviewers"],
    )
    assert (me["may_open_cases"], me["may_see_audit"]) == (True, False)
    assert set(me["scopes"]) == {"cases", "read", "decide", "audit", "admin"}
    client.force_login(rita.user)
    assert client.get("/api/v1/me").json()["scopes"] is None


def test_an_account_without_rights_sees_nothing(otto, request_):
    for path in ("/requests", "/runs", "/agents", "/agents/refunds", "/audit"):
        assert otto.get(path).status_code == 403, path
    for path in (f"/requests/{request_.pk}", f"/runs/{request_.run_id}", f"/runs/{request_.run_id}/steps"):
        assert otto.get(path).status_code == 404, path
    assert len(refusals("otto")) == 8
    assert otto.get("/me").json()["groups"] == []


def test_what_does_not_exist_and_what_is_hidden_look_the_same(rita):
    hidden = factories.make_case()
    answers = [rita.get(f"/runs/{pk}") for pk in (hidden.pk, uuid.uuid4())]
    assert [answer.status_code for answer in answers] == [404, 404]
    first, second = (answer.json() | {"instance": ""} for answer in answers)
    assert first == second


EVERY = [
    ("GET", "/runs", "read"), ("GET", "/runs/{run}", "read"), ("GET", "/runs/{run}/steps", "read"),
    ("GET", "/requests", "read"), ("GET", "/requests/{request}", "read"), ("GET", "/agents", "read"),
    ("GET", "/agents/refunds", "read"), ("GET", "/audit", "audit"), ("POST", "/cases", "cases"),
    ("POST", "/cases/{thread}/messages", "cases"), ("POST", "/requests/{request}/withdraw", "cases"),
    ("POST", "/runs/{run}/cancel", "cases"), ("POST", "/requests/{request}/decisions", "decide"),
    ("POST", "/agents/refunds/versions", "admin"), ("POST", "/agents/refunds/pause", "admin"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "scope"), EVERY)
def test_every_call_needs_a_caller_and_a_scope(request_, nobody, method, path, scope):
    path = path.format(run=request_.run_id, request=request_.pk, thread=request_.thread_id)
    unknown = nobody.send(method, path)
    assert (unknown.status_code, unknown["WWW-Authenticate"]) == (401, 'Bearer realm="counterseal"')
    weak = caller("ada", "administrators", scopes=("audit",) if scope == "admin" else ("admin",))
    assert weak.send(method, path, {}).status_code == 403
    assert refusals("ada") == [(f"scope {scope}", f"/api/v1{path}")]
    in_url = nobody.send(method, f"{path}?token={weak.token}")
    assert (in_url.status_code, in_url.json()["type"].rpartition(":")[2]) == (400, "token-in-url")


@pytest.mark.parametrize(
    "header", ["", "cseal_x_y", "Basic YTpi", "Bearer", "Bearer cseal_", "Bearer " + "x" * 9000]
)
def test_a_useless_authorization_is_refused(nobody, db, header):
    assert nobody.get("/me", headers={"Authorization": header}).status_code == 401


def test_ended_tokens_are_refused(sam):
    from django.db.models.functions import Now

    assert sam.get("/me").status_code == 200
    sam.user.tokens.update(expires_at=Now())
    assert sam.get("/me").status_code == 401
    sam.user.tokens.update(expires_at=None)
    sam.user.is_active = False
    sam.user.save()
    assert sam.get("/me").status_code == 401


@pytest.mark.parametrize("path", ["", "/", "/nope", "/runs/1", "/runs/", "/cases/x/messages", "/../admin"])
def test_unknown_addresses_answer_with_a_problem(client, path):
    sent = client.get(f"/api/v1{path}")
    assert (sent.status_code, sent["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("path", ["/api/", "/api/v2/cases"])
def test_also_outside_the_version(client, path):
    assert client.get(path)["Content-Type"] == "application/problem+json"


def test_wrong_methods_say_which_are_right(client):
    sent = client.post("/api/v1/agents")
    assert (sent.status_code, sent["Allow"], sent["Content-Type"]) == (405, "GET", "application/problem+json")


def test_a_defect_is_a_problem_too(sam, monkeypatch):
    from approvals import access

    def broken(user):
        raise ZeroDivisionError

    monkeypatch.setattr(access, "may_see_runs", broken)
    sent = sam.get("/runs")
    assert (sent.status_code, "ZeroDivision" in sent.content.decode()) == (500, False)


def test_a_dead_database_is_said(sam, monkeypatch):
    from django.db import OperationalError

    from approvals import access

    def broken(user):
        raise OperationalError

    monkeypatch.setattr(access, "may_see_runs", broken)
    sent = sam.get("/runs")
    assert (sent.status_code, sent["Retry-After"]) == (503, "2")


def test_the_openapi_document_lists_every_operation(client):
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    listed = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    templates = {
        (method, "/api/v1" + path.format(run="{run_id}", request="{request_id}", thread="{thread_id}"))
        for method, path, _scope in EVERY
    }
    assert {path.replace("{slug}", "refunds") for _method, path in listed} == {
        path for _method, path in templates
    } | {"/api/v1/me"}
    assert len(listed) == len(EVERY) + 1
    assert {"BearerToken", "SessionCookie"} <= set(document["components"]["securitySchemes"])
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert operation["security"], path
            named = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert all(f"{{{name}}}" in path for name in named), path
            assert path.count("{") == len(named), path
            codes = set(operation["responses"])
            assert codes & {"200", "201"}, (path, method)
            assert {"401", "403"} <= codes, (path, method)
    decide = document["paths"]["/api/v1/requests/{request_id}/decisions"]["post"]
    assert {"200", "201", "404", "409", "422"} <= set(decide["responses"])
    problem = decide["responses"]["409"]["content"]["application/problem+json"]["schema"]
    assert problem == {"$ref": "#/components/schemas/Problem"}


def test_refs_of_the_openapi_document_lead_somewhere(client):
    raw = client.get("/api/v1/openapi.json").content.decode()
    document = json.loads(raw)
    targets = {part.split('"')[0] for part in raw.split('"$ref": "#/components/schemas/')[1:]}
    assert targets
    assert targets <= set(document["components"]["schemas"])


def test_a_finished_run_carries_its_answer(sam, db):
    run = factories.make_case()
    Run.objects.filter(pk=run.pk).update(
        status="success", answer="Done.", usage={"model_calls": 2}, finished_at="2026-01-05T09:00:00Z"
    )
    shown = sam.get(f"/runs/{run.pk}").json()
    assert (shown["status"], shown["answer"], shown["usage"]) == ("success", "Done.", {"model_calls": 2})
    assert shown["finished_at"] == "2026-01-05T09:00:00Z"

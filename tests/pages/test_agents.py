"""Agents: looked at by administrators and auditors, changed by administrators, press by press."""

from __future__ import annotations

import json
import re
import threading

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection, transaction

from agents.catalogue import AgentSpec, shipped_specs
from approvals.actors import SYSTEM, Actor
from approvals.errors import AgentPaused, DraftChanged, Invalid, NotAllowed, NotPublishable
from approvals.models import Agent, AgentDraft, AgentVersion, AuditEvent, Run
from approvals.optionform import reading, schema, tree
from approvals.services import agents, cases, drafts, runs
from middleware.catalogue import ENTRIES
from tests import factories
from tests.pages.conftest import Person, actions, text

URL = "/agents/refunds/"
DRAFT = "/agents/refunds/draft/"


@pytest.fixture
def v1(db: None) -> AgentVersion:
    return agents.publish(actor=SYSTEM, spec=shipped_specs()[0])


@pytest.fixture
def draft(v1: AgentVersion, ada: Person) -> AgentDraft:
    return drafts.begin(actor=Actor.of(ada.user), slug="refunds", number=1)


@pytest.fixture
def eve(db: None) -> Person:
    return Person("eve", "administrators", first_name="Eve", last_name="Adams")


def uses(slug: str = "refunds") -> list[str]:
    return [one["use"] for one in AgentDraft.objects.get(pk=slug).spec["middleware"]]


def press(
    person: Person, what: str, *, htmx: bool = True, rev: int | None = None, at: object = "agent", **sent
):
    now = AgentDraft.objects.filter(pk="refunds").values_list("rev", flat=True).first()
    return person.post(f"{DRAFT}{what}", {"rev": rev or now, "at": at, **sent}, htmx=htmx)


def save(person: Person, at: object, changed: dict[str, object] | None = None, *, do: str = "", **sent):
    """The form of an entry, or of the agent, as a browser sends it."""
    spec = AgentDraft.objects.get(pk="refunds").spec
    if at == "agent":
        use, stored = (
            "agent",
            {name: spec[name] for name in ("title", "description", "model", "system_prompt", "tools")},
        )
    else:
        use = spec["middleware"][int(str(at)) - 1]["use"]
        stored = {key: value for key, value in spec["middleware"][int(str(at)) - 1].items() if key != "use"}
    base = sent.pop("base", json.dumps(stored))
    return press(person, f"options/{do}", at=at, use=use, base=base, **{**(changed or {}), **sent})


# --- who may what ----------------------------------------------------------------------------------------------------
LOOK = [
    "/agents/", URL, f"{URL}v1/", f"{URL}v1/?at=4", f"{URL}v1/spec.json", f"{URL}compare/", DRAFT, f"{DRAFT}?at=3",
    f"{DRAFT}spec.json",
]  # fmt: skip
WRITE = [
    f"{URL}pause/", f"{URL}v1/edit/", f"{DRAFT}add/", f"{DRAFT}move/", f"{DRAFT}remove/", f"{DRAFT}options/",
    f"{DRAFT}undo/", f"{DRAFT}import/", f"{DRAFT}discard/", f"{DRAFT}publish/",
]  # fmt: skip


@pytest.mark.parametrize("path", [*LOOK, "/agents/new/"])
def test_administrators_see_it_auditors_too_everybody_else_is_refused_on_record(
    draft, ada, audra, rita, sam, otto, path
):
    assert ada.get(path).status_code == 200
    assert audra.get(path).status_code == (403 if "new" in path else 200)
    before = AuditEvent.objects.filter(action="access.refused").count()
    for person in (rita, sam, otto):
        assert person.get(path).status_code == 403
    assert AuditEvent.objects.filter(action="access.refused").count() == before + 3


@pytest.mark.parametrize("path", [*WRITE, "/agents/new/"])
def test_only_administrators_write(draft, audra, rita, otto, path):
    before = (AgentDraft.objects.values().get(), AgentVersion.objects.count(), Agent.objects.values().get())
    sent = {"rev": draft.rev, "at": "agent", "use": "observer", "from": 1, "to": 2, "current": 1}
    for person in (audra, rita, otto):
        assert person.post(path, sent).status_code == 403
    assert before == (
        AgentDraft.objects.values().get(),
        AgentVersion.objects.count(),
        Agent.objects.values().get(),
    )
    rights = set(AuditEvent.objects.filter(action="access.refused").values_list("data__right", flat=True))
    assert rights <= {"see_agents", "set_up"}


def test_services_ask_for_the_right_themselves(draft, audra):
    me = Actor.of(audra.user)
    spec = shipped_specs()[0]
    for act in (
        lambda: agents.publish(actor=me, spec=spec), lambda: agents.pause(actor=me, slug="refunds"),
        lambda: drafts.begin(actor=me, slug="refunds", number=1), lambda: drafts.create(actor=me, spec=spec, source="x"),
        lambda: drafts.change(actor=me, slug="refunds", rev=1, spec={}, said={}),
        lambda: drafts.undo(actor=me, slug="refunds", rev=1), lambda: drafts.discard(actor=me, slug="refunds", rev=1),
        lambda: drafts.publish(actor=me, slug="refunds", rev=1, current=1),
    ):  # fmt: skip
        with pytest.raises(NotAllowed):
            act()


def test_an_auditor_has_nothing_to_press(draft, audra):
    for path in LOOK:
        sent = audra.get(path)
        if "html" in sent["Content-Type"]:
            main = sent.content.decode().partition("<main")[2].partition("</main>")[0]
            assert 'method="post"' not in main, path


def test_unknown_ones_are_not_there(draft, ada):
    for path in (
        "/agents/nobody/",
        f"{URL}v9/",
        f"{URL}v9/spec.json",
        "/agents/nobody/draft/",
        "/agents/a%00b/",
    ):
        assert ada.get(path).status_code == 404


def test_nothing_is_changed_by_looking(draft, ada):
    before = AgentDraft.objects.values().get()
    for path in WRITE:
        assert ada.get(path).status_code == 405
    assert AgentDraft.objects.values().get() == before


# --- the list, an agent ------------------------------------------------------------------------------------------------
def test_the_list_says_what_is_in_force(ada):
    assert "No agent yet" in text(ada.get("/agents/"))
    run = factories.make_case()
    drafts.begin(actor=Actor.of(ada.user), slug="refunds", number=1)
    said = text(ada.get("/agents/"))
    for part in ("Refund agent", "In service", "Draft", "v1", "demo:refunds", "Counterseal"):
        assert part in said
    assert f" {Run.objects.filter(pk=run.pk).count()} " in said


def test_an_agent_shows_its_versions_and_what_runs_on_them(ada):
    factories.make_case()
    spec = shipped_specs()[0].model_copy(update={"description": "Another."})
    agents.publish(actor=Actor.of(ada.user), spec=spec)
    said = text(ada.get(URL))
    assert "v2 in force" in said
    assert said.index("v2 in force") < said.index("v1")
    assert "What changed" in said
    current = AgentVersion.objects.get(number=2)
    AgentVersion.objects.filter(pk=current.pk).update(
        fingerprint="0" * 64
    )  # as if the code of its tools had changed
    assert "The tools of v2 have changed in the installed code" in text(ada.get(URL))


# --- pausing -----------------------------------------------------------------------------------------------------------
def test_a_paused_agent_takes_no_new_work_and_says_so_everywhere(ada, sam):
    run = factories.make_case(sam.user)
    assert ada.post(f"{URL}pause/").status_code == 302
    assert "it takes no new work" in text(ada.get(URL))
    before = Run.objects.count()
    case = cases.NewCase(agent="refunds", message="hello")
    with pytest.raises(Invalid) as refused:
        cases.open_case(actor=Actor.of(sam.user), case=case)
    assert refused.value.errors == {"agent": AgentPaused.TEXT}
    form = {"agent": "refunds", "message": "hello", "key": "00000000-0000-4000-8000-000000000001"}
    page = sam.post("/support/new/", form)
    assert page.status_code == 422
    assert AgentPaused.TEXT in text(page)
    assert "(paused)" in text(page)
    assert AgentPaused.TEXT in text(sam.get(f"/support/{run.thread_id}/"))
    with pytest.raises(AgentPaused):
        cases.post_message(
            actor=Actor.of(sam.user), thread_pk=run.thread_id, message="more", while_pending=None
        )
    posted = sam.post(f"/support/{run.thread_id}/messages/", {"message": "more", "key": form["key"]})
    assert posted.status_code == 409
    assert AgentPaused.TEXT in text(posted)
    token = {"HTTP_AUTHORIZATION": f"Bearer {factories.make_token(sam.user, 'cases', 'read')}"}
    body = {"content_type": "application/json", **token}
    refused = sam.client.post("/api/v1/cases", {"agent": "refunds", "message": "hello"}, **body)
    assert (refused.status_code, refused.json()["errors"]) == (
        422,
        [{"field": "agent", "message": AgentPaused.TEXT}],
    )
    refused = sam.client.post(f"/api/v1/cases/{run.thread_id}/messages", {"message": "more"}, **body)
    assert (refused.status_code, refused.json()["detail"]) == (409, AgentPaused.TEXT)
    assert Run.objects.count() == before
    assert runs.claim_next(thread_pk=run.thread_id).pk == run.pk  # what was open goes on

    ada.post(f"{URL}pause/", {"to": "resume"})
    cases.open_case(actor=Actor.of(sam.user), case=case)
    assert Run.objects.count() == before + 1
    assert [name for name in actions() if name.startswith("agent.")] == [
        "agent.published", "agent.paused", "agent.resumed"
    ]  # fmt: skip


def test_pausing_twice_is_one_entry(v1, ada):
    assert [ada.post(f"{URL}pause/").status_code for _ in range(2)] == [302, 302]
    assert actions().count("agent.paused") == 1


@pytest.mark.django_db(transaction=True)
def test_no_run_begins_behind_a_pause():
    """Whoever pauses waits for a case that is just being opened, and the next one is refused."""
    sam, boss = factories.make_user("sam", "support"), factories.make_user("ada", "administrators")
    agents.publish(actor=SYSTEM, spec=shipped_specs()[0])
    case = cases.NewCase(agent="refunds", message="hello")
    said: list[object] = []

    def pause_at_once() -> None:
        with connection.cursor() as cursor:
            cursor.execute("set lock_timeout to '50ms'")
        try:
            said.append(agents.pause(actor=Actor.of(boss), slug="refunds"))
        except OperationalError as error:
            said.append(type(error).__name__)
        finally:
            connection.close()

    with transaction.atomic():
        cases.open_case(actor=Actor.of(sam), case=case)
        in_a_thread(pause_at_once)
    in_a_thread(pause_at_once)
    assert said == ["OperationalError", True]
    with pytest.raises(Invalid):
        cases.open_case(actor=Actor.of(sam), case=case)
    assert Run.objects.count() == 1


def in_a_thread(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


# --- a new agent ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("start", "tools"), [("refunds", 5), ("careful", 3), ("chat", 0)])
def test_every_template_makes_a_draft_that_can_be_published(ada, start, tools):
    sent = ada.post("/agents/new/", {"start": start, "slug": "mine", "title": "My agent"})
    assert sent["Location"] == "/agents/mine/draft/"
    draft = AgentDraft.objects.get(pk="mine")
    assert (len(draft.spec["tools"]), draft.spec["title"], draft.base) == (tools, "My agent", None)
    page = text(ada.get("/agents/mine/draft/"))
    assert "Order looks right" in page or "Nobody is in the group" in page
    assert "Never published" in page
    version = drafts.publish(actor=Actor.of(ada.user), slug="mine", rev=1, current=0)
    assert (version.number, version.published_by) == (1, ada.user.name)


def test_a_draft_alone_cannot_be_used(ada, sam):
    ada.post("/agents/new/", {"start": "chat", "slug": "mine", "title": "My agent"})
    with pytest.raises(Invalid):
        cases.open_case(actor=Actor.of(sam.user), case=cases.NewCase(agent="mine", message="hello"))
    assert "My agent" not in text(sam.get("/support/new/"))
    assert "never published" in text(ada.get("/agents/"))


@pytest.mark.parametrize(("sent", "said"), [
    ({"start": "chat", "slug": "refunds", "title": "x"}, "There is an agent of that name already"),
    ({"start": "chat", "slug": "new", "title": "x"}, "There is an agent of that name already"),
    ({"start": "chat", "slug": "No Spaces", "title": "x"}, "Small letters, digits and hyphens"),
    ({"start": "chat", "slug": "", "title": ""}, "Fill in this field"),
    ({"start": "nothing", "slug": "mine", "title": "x"}, "Choose what to start from"),
    ({"start": "file", "text": "{"}, "This is not valid JSON"),
    ({"start": "file", "text": "[]"}, "a spec is a JSON object"),
    ({"start": "file", "text": "[" * 5000}, "nested too deeply"),
    ({"start": "file"}, "Choose a file"),
])  # fmt: skip
def test_what_cannot_become_an_agent_is_said_at_its_field(v1, ada, sent, said):
    page = ada.post("/agents/new/", sent)
    assert page.status_code == 422
    assert said in text(page)
    assert not AgentDraft.objects.exists()


def test_a_file_with_older_spellings_is_translated_and_says_so(ada):
    spec = {
        "slug": "old", "title": "Old one", "model": "demo:refunds", "system_prompt": "x", "tools": ["lookup_order"],
        "middleware": [{"use": "ModelCallLimitMiddleware", "run_limit": 5, "on_limit": "ask"}, {"use": "write_guard"}],
    }  # fmt: skip
    file = SimpleUploadedFile("old.json", json.dumps(spec).encode())
    assert ada.post("/agents/new/", {"start": "file", "file": file})["Location"] == "/agents/old/draft/"
    assert uses("old") == ["model_call_limit", "write_guard"]
    assert "ModelCallLimitMiddleware is called model_call_limit here" in text(ada.get("/agents/old/draft/"))


def test_export_and_import_are_the_same_spec(draft, ada):
    press(ada, "add/", use="observer")
    exported = ada.get(f"{DRAFT}spec.json")
    assert exported["Content-Disposition"] == 'attachment; filename="refunds-draft.json"'
    wanted = AgentDraft.objects.get().spec
    assert exported.json() == wanted
    press(ada, "remove/", **{"from": 1})
    file = SimpleUploadedFile("spec.json", exported.content)
    assert press(ada, "import/", htmx=False, file=file)["Location"] == DRAFT
    assert AgentDraft.objects.get().spec == wanted
    assert ada.get(f"{URL}v1/spec.json").json() == AgentVersion.objects.get().spec


# --- the draft: presses -------------------------------------------------------------------------------------------------
SHIPPED = [
    "model_call_limit", "tool_call_limit", "pii", "human_in_the_loop", "tool_error", "write_guard", "tool_retry",
]  # fmt: skip


def test_a_version_becomes_a_draft_once(v1, ada, eve):
    assert ada.post(f"{URL}v1/edit/")["Location"] == DRAFT
    assert uses() == SHIPPED
    second = eve.post(f"{URL}v1/edit/")
    assert second.status_code == 409
    assert f"There is a draft already, last changed by {ada.user.name}" in text(second)
    assert actions().count("draft.begun") == 1


def test_add_puts_it_at_its_usual_place_and_undo_takes_it_back(draft, ada):
    sent = press(ada, "add/", use="observer")
    assert (sent.status_code, sent["HX-Push-Url"]) == (200, f"{DRAFT}?at=1")
    assert uses() == ["observer", *SHIPPED]
    assert "Added Observer." in text(sent)
    undone = press(ada, "undo/")
    assert "Took the last change back." in text(undone)
    assert uses() == SHIPPED
    press(ada, "undo/")
    assert uses() == ["observer", *SHIPPED]
    assert AgentDraft.objects.get().rev == 4
    assert actions().count("draft.changed") == 3


@pytest.mark.parametrize(("start", "to", "at", "follows", "wanted"), [
    (4, 5, 4, "5", [0, 1, 2, 4, 3, 5, 6]), (4, 1, 4, "1", [3, 0, 1, 2, 4, 5, 6]), (1, 7, 4, "3", [1, 2, 3, 4, 5, 6, 0]),
    (7, 1, "agent", "agent", [6, 0, 1, 2, 3, 4, 5]), (4, 99, 4, "7", [0, 1, 2, 4, 5, 6, 3]), (4, 0, 2, "3", [3, 0, 1, 2, 4, 5, 6]),
])  # fmt: skip
def test_moves(draft, ada, start, to, at, follows, wanted):
    sent = press(ada, "move/", at=at, **{"from": start, "to": to})
    assert sent["HX-Push-Url"] == f"{DRAFT}?at={follows}"
    assert uses() == [SHIPPED[n] for n in wanted]


def test_without_a_script_every_press_leads_to_the_page(draft, ada):
    for what, sent in (
        ("add/", {"use": "observer"}), ("move/", {"from": 1, "to": 2}), ("remove/", {"from": 2}), ("undo/", {}),
    ):  # fmt: skip
        answer = press(ada, what, htmx=False, **sent)
        assert answer.status_code == 302
        assert ada.get(answer["Location"]).status_code == 200
    assert uses() == ["model_call_limit", "observer", *SHIPPED[1:]]


@pytest.mark.parametrize(("what", "sent", "status"), [
    ("move/", {"from": 99, "to": 1}, 400), ("move/", {"from": "x", "to": 1}, 400), ("move/", {"from": 1, "to": "x"}, 422),
    ("remove/", {"from": 0}, 400), ("add/", {"use": "nothing"}, 400), ("options/", {"use": "pii", "base": "{}"}, 400),
    ("options/", {"use": "agent", "base": "["}, 400), ("undo/", {"rev": "x"}, 400), ("publish/", {"current": "x"}, 400),
])  # fmt: skip
def test_what_makes_no_sense_changes_nothing(draft, ada, what, sent, status):
    before = AgentDraft.objects.values().get()
    assert press(ada, what, **sent).status_code == status
    assert AgentDraft.objects.values().get() == before


def test_a_move_to_where_it_stands_is_no_change(draft, ada):
    press(ada, "move/", **{"from": 4, "to": 4})
    assert AgentDraft.objects.get().rev == 1
    assert "draft.changed" not in actions()


def test_who_is_second_is_told_who_was_first_and_loses_nothing(draft, ada, eve):
    press(ada, "move/", rev=1, **{"from": 1, "to": 2})
    after = AgentDraft.objects.values().get()
    for what, sent in (
        ("add/", {"use": "observer"}), ("move/", {"from": 2, "to": 1}), ("remove/", {"from": 1}), ("undo/", {}),
        ("discard/", {}), ("publish/", {"current": 1}),
    ):  # fmt: skip
        answer = press(eve, what, rev=1, **sent)
        assert answer.status_code == 409, what
        assert f"{ada.user.name} changed this draft before you" in text(answer)
    late = save(eve, 3, {"o/pii_type": "email"}, rev=1)
    assert late.status_code == 409
    assert b'value="email"' in late.content  # typed, not written
    assert AgentDraft.objects.values().get() == after


def test_a_draft_that_is_gone_says_who_ended_it(draft, ada, eve):
    press(ada, "discard/", htmx=False)
    late = press(eve, "move/", rev=1, **{"from": 1, "to": 2})
    assert late.status_code == 409
    assert f"{ada.user.name} has discarded this draft" in text(late)
    drafts.begin(actor=Actor.of(ada.user), slug="refunds", number=1)
    press(ada, "add/", use="observer")
    press(ada, "publish/", htmx=False, current=1)
    late = save_gone(eve)
    assert late.status_code == 409
    assert f"{ada.user.name} has published this draft as v2" in text(late)
    assert "pii_type: email" in text(late)


def save_gone(person):
    return person.post(
        f"{DRAFT}options/", {"rev": 2, "at": 3, "use": "pii", "base": "{}", "o/pii_type": "email"}, htmx=True
    )


def test_what_is_typed_beside_a_press_stays(draft, ada):
    spec = draft.spec["middleware"][2]
    base = json.dumps({key: value for key, value in spec.items() if key != "use"})
    sent = press(
        ada,
        "move/",
        at=3,
        use="pii",
        base=base,
        **{"o/pii_type": "email", "o/strategy": "mask", "from": 1, "to": 2},
    )
    assert b'value="email"' in sent.content
    assert "not saved" in text(sent)
    assert AgentDraft.objects.get().spec["middleware"][2] == spec


# --- the draft: options --------------------------------------------------------------------------------------------------
def test_options_are_saved_and_what_stands_at_its_default_stays_unsaid(draft, ada):
    sent = save(ada, 3, {
        "o/pii_type": "email", "o/strategy": "mask", "o/apply_to_input": "true", "o/apply_to_output": "false",
        "o/apply_to_tool_results": "true", "o/id": "",
    })  # fmt: skip
    assert sent.status_code == 200
    assert AgentDraft.objects.get().spec["middleware"][2] == {
        "use": "pii", "pii_type": "email", "strategy": "mask", "apply_to_tool_results": True,
    }  # fmt: skip
    entry = AuditEvent.objects.filter(action="draft.changed").get()
    assert (entry.actor, entry.data["what"]) == (ada.user, "pii")
    assert {row["field"]: row["new"] for row in entry.data["changes"]} == {
        "/middleware/pii/pii_type": "email", "/middleware/pii/apply_to_tool_results": True,
    }  # fmt: skip
    assert "Kind of data" not in text(ada.get(f"/audit/{entry.pk}/"))  # the trail keeps the names of a spec
    assert "middleware.pii.pii_type" in text(ada.get(f"/audit/{entry.pk}/"))


@pytest.mark.parametrize(("at", "sent", "said"), [
    (1, {"o/run_limit": "0"}, "Enter at least 1."), (1, {"o/run_limit": "many"}, "Enter a whole number."),
    (1, {"o/hard_cap": "5"}, "hard_cap goes with on_limit"), (3, {"o/pii_type": "Nonsense!"}, "Small letters, digits and hyphens"),
    (3, {"o/pii_type": "licence"}, "is not built in: give a detector"), (3, {"o/pii_type": ""}, "Fill in this field."),
    (3, {"o/strategy": "burn"}, "Pick one of the listed values."), (5, {"o/tools": [""]}, "Choose or add at least one."),
    (4, {"o/interrupt_on/issue_refund/queue": "No Such"}, "Small letters, digits and hyphens"),
    (4, {"o/interrupt_on/issue_refund/remind_after": "99999"}, "remind_after must be shorter than expires_in"),
    (4, {"o/interrupt_on/issue_refund/when/value": "-5"}, "Rule amount_over: value"),
    ("agent", {"o/api_key_env": "sk-proj-abc123"}, "never the key itself"),
    ("agent", {"o/title": ""}, "Fill in this field."), ("agent", {"o/model_options": "{"}, "This is not valid JSON"),
    ("agent", {"o/system_prompt": "a\x00b"}, "Remove the NUL character."),
])  # fmt: skip
def test_a_wrong_option_is_said_at_its_field_and_nothing_is_lost(draft, ada, at, sent, said):
    before = AgentDraft.objects.values().get()
    answer = save(ada, at, {**sent, "o/id": "kept-as-typed"} if at != "agent" else sent)
    assert answer.status_code == 422
    assert said in text(answer)
    if at != "agent":
        assert b"kept-as-typed" in answer.content
    assert AgentDraft.objects.values().get() == before


def test_lists_grow_shrink_and_move_before_they_are_saved(draft, ada):
    press(ada, "add/", use="context_editing", to=1)
    grown = save(ada, 1, {"o/edits/0/trigger": "500"}, do="?do=add&of=/edits")
    assert grown.status_code == 200
    assert "not saved" in text(grown)
    assert b'name="o/edits/1/trigger"' in grown.content
    assert AgentDraft.objects.get().spec["middleware"][0] == {"use": "context_editing"}
    base = json.dumps({"edits": [{"trigger": 500}, {}]})
    moved = save(ada, 1, do="?do=down&of=/edits/0", base=base)
    assert b'name="o/edits/1/trigger" value="500"' in moved.content
    base = json.dumps({"edits": [{}, {"trigger": 500}]})
    assert save(ada, 1, {"o/edits/0/keep": "1"}, base=base).status_code == 200
    assert AgentDraft.objects.get().spec["middleware"][0]["edits"] == [{"keep": 1}, {"trigger": 500}]
    for wrong in ("?do=add&of=/nothing", "?do=remove&of=/edits/9", "?do=up&of=/keep", "?do=switch&of=/edits"):
        assert save(ada, 1, do=wrong).status_code == 422
    assert save(ada, 1, do="?do=burn").status_code == 400


def test_a_tool_that_waits_is_added_by_name_and_its_rule_chosen(draft, ada):
    grown = save(ada, 4, do="?do=add&of=/interrupt_on", **{"key/interrupt_on": "lookup_order"})
    assert b'name="o/interrupt_on/lookup_order/queue"' in grown.content
    again = save(ada, 4, do="?do=add&of=/interrupt_on", **{"key/interrupt_on": "issue_refund"})
    assert again.status_code == 422
    assert "Enter a name that is not in the list yet." in text(again)
    switched = save(
        ada,
        4,
        do="?do=switch&of=/interrupt_on/issue_refund/when",
        **{"branch/interrupt_on/issue_refund/when": 5},
    )
    assert b'name="o/interrupt_on/issue_refund/when/allow"' in switched.content
    saved = save(
        ada, 4,
        {"o/interrupt_on/issue_refund/when/arg": "reason", "o/interrupt_on/issue_refund/when/allow": "broken\nlate"},
        base=json.dumps({"interrupt_on": {
            **draft.spec["middleware"][3]["interrupt_on"],
            "issue_refund": {"queue": "refund-reviewers", "when": {"use": "text_outside"}},
        }}),
    )  # fmt: skip
    assert saved.status_code == 200, text(saved)
    gate = AgentDraft.objects.get().spec["middleware"][3]["interrupt_on"]["issue_refund"]
    assert gate["when"] == {"use": "text_outside", "arg": "reason", "allow": ["broken", "late"]}


def test_nothing_is_nested_without_end(draft, ada):
    deep = '{"a":' * 500 + "1" + "}" * 500
    answer = save(ada, "agent", {"o/model_options": deep})
    assert answer.status_code == 422
    assert "This is nested too deeply." in text(answer)
    assert save(ada, "agent", base=f'{{"model_options": {deep}}}').status_code == 400
    assert AgentDraft.objects.get().rev == 1


def test_the_agent_itself_is_a_form_too(draft, ada):
    sent = save(ada, "agent", {
        "o/title": "Refunds of the north", "o/system_prompt": "Be kind.\r\nBe brief.", "o/api_key_env": "NORTH_KEY",
        "o/tools": ["", "lookup_order", "issue_refund", "ask_staff"], "o/model_options": '{"temperature": 0}',
    })  # fmt: skip
    assert sent.status_code == 200
    spec = AgentDraft.objects.get().spec
    assert (spec["title"], spec["system_prompt"]) == ("Refunds of the north", "Be kind.\nBe brief.")
    assert (spec["api_key_env"], spec["tools"]) == (
        "NORTH_KEY",
        ["lookup_order", "issue_refund", "ask_staff"],
    )
    assert spec["model_options"] == {"temperature": 0}
    assert "Tool errors names read_policy, which is not a tool of this agent" in text(sent)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_every_option_of_every_entry_has_a_field_and_an_untouched_form_changes_nothing(name):
    entry = ENTRIES[name]
    made = schema.of_entry(entry, ["lookup_order"])
    form = tree.build(made, {})
    shown = {node.code for node in form.children} | {
        key for key, part in made["properties"].items() if "const" in part
    }
    assert shown == set(entry.options.model_fields)
    sent = Sent()
    for node in tree.walk(form):
        if node.kind == "set":
            sent.put(node.name, ["", *(box.value for box in node.boxes if box.is_chosen)])
        elif node.kind not in tree.GROUPS:
            sent.put(node.name, [node.text.replace("\n", "\r\n")])
    read = reading.read(form, sent)
    filled = {
        node.pointer
        for node in tree.walk(form)
        if node.required and node.kind not in tree.GROUPS and not node.text
    }
    assert set(read.errors) <= filled
    if not filled:
        assert {key: value for key, value in read.value.items() if value not in ([], {})} == {}


class Sent(dict):
    """As Django's QueryDict."""

    def put(self, name, values):
        self[name] = values

    def getlist(self, name):
        return self.get(name, [])


# --- findings ------------------------------------------------------------------------------------------------------------
def test_advice_names_the_place_says_what_helps_and_a_press_does_it(draft, ada):
    wrong = press(ada, "move/", **{"from": 5, "to": 4})
    said = text(wrong)
    assert "1 error: this cannot be published." in said
    assert (
        "4 Tool errors must stand behind Human in the loop in the list. Move it behind human in the loop."
        in said
    )
    assert "Move Tool errors to position 5" in said
    assert b'id="publish"' in wrong.content
    assert b' disabled id="publish"' in wrong.content
    right = press(ada, "move/", **{"from": 4, "to": 5})
    assert "Order looks right." in text(right) or "Nobody is in the group" in text(right)
    assert uses() == SHIPPED


def test_what_is_missing_is_offered(draft, ada):
    gone = press(ada, "remove/", **{"from": 6})
    assert "Add Write guard" in text(gone)
    assert "Removed Write guard." in text(gone)
    press(ada, "add/", use="write_guard", to=6)
    assert uses() == SHIPPED


def test_a_group_without_anybody_is_a_doubt(draft, ada, eve):
    assert "Nobody is in the group refund-reviewers" in text(ada.get(DRAFT))
    factories.make_user("rita", "refund-reviewers")
    factories.make_user("sam", "support")
    assert "Order looks right." in text(ada.get(DRAFT))


def test_the_catalogue_is_grouped_and_says_what_cannot_be_used(draft, ada, monkeypatch):
    body = ada.get(DRAFT)
    said = text(body)
    for family in (
        "People decide",
        "Around the model",
        "Around tool calls",
        "Personal data",
        "One provider only",
    ):
        assert family in said
    monkeypatch.setattr("middleware.entry.find_spec", lambda name: None)
    said = text(ada.get(DRAFT))
    assert "unavailable: needs the package" in said
    assert ada.get(DRAFT).content.decode().count("pip install") > 3


# --- compare ---------------------------------------------------------------------------------------------------------------
def test_compare_shows_entries_fields_and_the_words_of_the_instructions(draft, ada):
    press(ada, "add/", use="observer")
    press(ada, "move/", **{"from": 2, "to": 4})
    save(ada, 3, {"o/strategy": "hash"})
    prompt = draft.spec["system_prompt"].splitlines()
    save(ada, "agent", {"o/system_prompt": "\r\n".join([prompt[0], "A new line.", *prompt[2:]])})
    said = text(ada.get(f"{URL}compare/?a=v1&b=draft"))
    for part in (
        "Added",
        "Moved",
        "Changed",
        "Observer",
        "What becomes of it",
        "mask",
        "hash",
        "A new line.",
    ):
        assert part in said
    assert "They are the same." in text(ada.get(f"{URL}compare/?a=v1&b=v1"))
    for odd in ("?a=x&b=y", "?a=v9", "?a=%00&b=draft", "?b=draft"):
        assert ada.get(f"{URL}compare/{odd}").status_code == 200


CODES = {
    "Counterseal", "Ctrl", "Esc", "API", "JSON", "ada", "demo", "refunds", "credit_card", "issue_refund", "email",
}  # fmt: skip


def test_a_chinese_reader_meets_no_english_but_names(draft, ada):
    press(ada, "add/", use="pii")
    for path in ("/agents/", "/agents/new/", URL, f"{URL}compare/?a=v1&b=draft"):
        sent = ada.client.get(path, headers={"Accept-Language": "zh-CN"})
        body = sent.content.decode().partition("<body")[2]
        sent.content = re.sub(r"<code.*?</code>|<pre.*?</pre>", "", f"<body{body}", flags=re.S).encode()
        assert set(re.findall(r"[A-Za-z]{3,}\w*", text(sent))) <= CODES, path


# --- publish and discard -----------------------------------------------------------------------------------------------------
def test_publish_makes_a_version_with_its_diff_on_the_trail_and_running_threads_keep_theirs(draft, ada, eve):
    run = factories.make_case()
    press(eve, "add/", use="observer")
    sent = press(ada, "publish/", htmx=False, current=1)
    assert sent["Location"] == URL
    v2 = AgentVersion.objects.get(number=2)
    assert (v2.published_by, v2.spec["middleware"][0]) == (ada.user.name, {"use": "observer"})
    assert not AgentDraft.objects.exists()
    entry = AuditEvent.objects.filter(action="agent.published").last()
    assert (entry.actor, entry.data["version"], entry.data["edited_by"]) == (ada.user, 2, eve.user.name)
    assert entry.data["changes"] == [
        {"field": "/middleware/observer", "old": None, "new": {"use": "observer"}}
    ]
    run.refresh_from_db()
    assert run.version.number == 1
    new = cases.open_case(
        actor=Actor.of(run.requested_by), case=cases.NewCase(agent="refunds", message="again")
    ).run
    assert new.version.number == 2


def test_nothing_wrong_is_ever_published(draft, ada):
    press(ada, "remove/", **{"from": 4})
    refused = press(ada, "publish/", htmx=False, current=1)
    assert refused.status_code == 409
    assert "This cannot be published: issue_refund writes but is not listed in Human in the loop." in text(
        refused
    )
    spec = AgentSpec.model_validate(AgentDraft.objects.get().spec)
    with pytest.raises(NotPublishable) as found:
        agents.publish(actor=SYSTEM, spec=spec)
    assert {finding.code for finding in found.value.findings} == {"ungated-write", "unasked"}
    assert AgentVersion.objects.count() == 1
    assert actions().count("agent.published") == 1
    assert AgentDraft.objects.exists()


def test_what_was_compared_with_another_version_is_not_published(draft, ada):
    press(ada, "add/", use="observer")
    agents.publish(actor=SYSTEM, spec=shipped_specs()[0].model_copy(update={"description": "Meanwhile."}))
    assert "v2 was published since this draft was begun" in text(ada.get(DRAFT))
    assert press(ada, "publish/", htmx=False, current=1).status_code == 409
    assert press(ada, "publish/", htmx=False, current=2).status_code == 302
    assert AgentVersion.objects.filter(agent="refunds").count() == 3


def test_a_draft_like_the_version_is_no_version(draft, ada):
    assert "Nothing differs from v1 yet." in text(ada.get(DRAFT))
    refused = press(ada, "publish/", htmx=False, current=1)
    assert refused.status_code == 422
    assert "Nothing differs from the current version." in text(refused)
    assert AgentVersion.objects.count() == 1
    assert AgentDraft.objects.exists()


def test_discarding_keeps_on_record_what_it_would_have_changed(draft, ada):
    press(ada, "add/", use="observer")
    assert press(ada, "discard/", htmx=False)["Location"] == URL
    assert not AgentDraft.objects.exists()
    entry = AuditEvent.objects.get(action="draft.discarded")
    assert entry.data["changes"] == [
        {"field": "/middleware/observer", "old": None, "new": {"use": "observer"}}
    ]
    ada.post("/agents/new/", {"start": "chat", "slug": "mine", "title": "My agent"})
    sent = ada.post("/agents/mine/draft/discard/", {"rev": 1, "at": "agent"})
    assert sent["Location"] == "/agents/"
    assert not Agent.objects.filter(pk="mine").exists()


def test_what_people_published_outlives_the_next_start(v1, ada):
    changed = shipped_specs()[0].model_copy(update={"description": "Ours."})
    ours = agents.publish(actor=Actor.of(ada.user), spec=changed)
    assert agents.publish_shipped(actor=SYSTEM, spec=shipped_specs()[0]).pk == ours.pk
    assert AgentVersion.objects.count() == 2


def test_what_ships_is_published_while_nobody_has_touched_it(v1):
    newer = shipped_specs()[0].model_copy(update={"description": "A newer release."})
    assert agents.publish_shipped(actor=SYSTEM, spec=newer).number == 2


def test_two_people_cannot_both_change_one_revision(draft, ada, eve):
    first = {**draft.spec, "title": "First"}
    drafts.change(
        actor=Actor.of(ada.user), slug="refunds", rev=1, spec=first, said={"did": "changed", "what": "agent"}
    )
    with pytest.raises(DraftChanged) as late:
        drafts.change(
            actor=Actor.of(eve.user), slug="refunds", rev=1, spec={**draft.spec, "title": "Second"}, said={}
        )
    assert late.value.draft.edited_by == ada.user.name
    assert AgentDraft.objects.get().spec["title"] == "First"


# --- the other ways in -------------------------------------------------------------------------------------------------
def test_the_api_publishes_and_refuses_the_same(v1, ada, rita):
    token = {"HTTP_AUTHORIZATION": f"Bearer {factories.make_token(ada.user, 'admin')}"}
    send = {"content_type": "application/json", **token}
    url = "/api/v1/agents/refunds/versions"
    spec = shipped_specs()[0].model_dump(mode="json")
    same = ada.client.post(url, {"spec": spec}, **send)
    assert (same.status_code, same.json()["version"]["number"]) == (200, 1)
    new = ada.client.post(url, {"spec": {**spec, "title": "By machine"}}, **send)
    assert (new.status_code, new.json()["version"]["number"]) == (201, 2)
    bad = ada.client.post(url, {"spec": {**spec, "middleware": []}}, **send)
    assert (bad.status_code, bad.json()["type"]) == (409, "urn:counterseal:problem:not-publishable")
    assert {"field": "spec/no-guard", "message": "write_guard is missing"} in bad.json()["errors"]
    assert ada.client.post(url, {"spec": {"title": 3}}, **send).status_code == 422
    paused = ada.client.post("/api/v1/agents/refunds/pause", {"paused": True}, **send)
    assert (paused.status_code, paused.json()["is_paused"]) == (200, True)
    assert AgentVersion.objects.count() == 2

    weak = {"HTTP_AUTHORIZATION": f"Bearer {factories.make_token(rita.user, 'admin')}"}
    for path, body in ((url, {"spec": spec}), ("/api/v1/agents/refunds/pause", {"paused": False})):
        assert ada.client.post(path, body, content_type="application/json", **weak).status_code == 403
    assert Agent.objects.get().is_paused


def test_the_command_publishes_and_refuses_the_same(v1, tmp_path):
    from django.core.management import CommandError, call_command

    spec = shipped_specs()[0].model_dump(mode="json")
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps({**spec, "title": "From a file"}))
    bad.write_text(json.dumps({**spec, "title": "Bad", "middleware": []}))
    with pytest.raises(CommandError, match=r"1 of 2 must not be published\."):
        call_command("agent", "publish", str(good), str(bad))
    assert AgentVersion.objects.count() == 1
    call_command("agent", "publish", str(good))
    assert AgentVersion.objects.latest("number").published_by == "Command line"
    assert actions().count("agent.published") == 2

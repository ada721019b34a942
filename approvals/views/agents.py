"""Agents: the list, versions, a draft that is edited press by press, its publication. Administrators write, auditors look.

Every press on a draft is a post with the revision it was made on. With htmx the editor alone is sent, without it the
whole page; what was typed beside a press comes along and is kept.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import push_url
from pydantic import ValidationError

from agents.catalogue import AgentSpec
from agents.exchange import BadSpec, Imported
from agents.exchange import read as read_file
from approvals import access, advice, cleaning
from approvals.contexts import agents as contexts
from approvals.errors import DraftChanged, Invalid, NotPublishable
from approvals.forms import NewAgentForm
from approvals.models import Agent, AgentDraft, AgentVersion
from approvals.optionform import reading
from approvals.optionform.tree import build
from approvals.services import agents, drafts
from approvals.views.common import PageRequest, actor, number_or_none, page
from middleware.catalogue import ENTRIES

MAX_FILE = 200_000


# --- looking ------------------------------------------------------------------------------------------------------------
@require_safe
def index(request: PageRequest) -> HttpResponse:
    access.require(request.user, access.may_see_agents(request.user), "see_agents")
    context = {"rows": contexts.rows(), "may_edit": access.may_set_up(request.user)}
    return page(request, "agents/index.html", context)


@require_safe
def show(request: PageRequest, slug: str) -> HttpResponse:
    return _agent(request, access.agent_for(request.user, slug))


def _agent(request: PageRequest, agent: Agent, *, problem: str = "", status: int = 200) -> HttpResponse:
    context = {"page": contexts.AgentPage(agent, request.user), "problem": problem}
    return page(request, "agents/show.html", context, status=status)


@require_safe
def version(request: PageRequest, slug: str, number: int) -> HttpResponse:
    agent = access.agent_for(request.user, slug)
    found = get_object_or_404(AgentVersion, agent=agent, number=number)
    view = contexts.View(agent, found, request.GET.get("at", ""), access.may_set_up(request.user))
    context = {"view": view, "version": found, "page": contexts.AgentPage(agent, request.user)}
    return page(request, "agents/version.html", context, part="parts")


@require_safe
def export(request: PageRequest, slug: str, number: int | None = None) -> HttpResponse:
    """The spec as a file: of a version, or of the draft."""
    agent = access.agent_for(request.user, slug)
    if number is None:
        spec, name = get_object_or_404(AgentDraft, agent=agent).spec, f"{slug}-draft.json"
    else:
        spec, name = (
            get_object_or_404(AgentVersion, agent=agent, number=number).spec,
            f"{slug}-v{number}.json",
        )
    answer = JsonResponse(spec, json_dumps_params={"indent": 2, "ensure_ascii": False})
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


@require_safe
def compare(request: PageRequest, slug: str) -> HttpResponse:
    """Two of its versions, or the draft and a version: `?a=v1&b=draft`. Without a choice the newest two."""
    agent = access.agent_for(request.user, slug)
    known: dict[str, Any] = {f"v{row.number}": row.spec for row in agent.versions.order_by("number")}
    if draft := AgentDraft.objects.filter(agent=agent).first():
        known["draft"] = draft.spec
    if not known:
        raise Http404
    names = list(known)
    b = request.GET.get("b", "")
    b = b if b in known else names[-1]
    a = request.GET.get("a", "")
    a = a if a in known else names[max(0, names.index(b) - 1)]
    labels = {name: _("Draft") if name == "draft" else name for name in names}
    context = {
        "page": contexts.AgentPage(agent, request.user),
        "sides": list(labels.items()),
        "between": f"{labels[a]} → {labels[b]}",
        "a": a,
        "b": b,
        "found": contexts.compare(known[a], known[b]),
    }
    return page(request, "agents/compare.html", context)


# --- agents -------------------------------------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: PageRequest) -> HttpResponse:
    """From a template, or from a file."""
    access.require(request.user, access.may_set_up(request.user), "set_up")
    form = NewAgentForm(request.POST or None, request.FILES or None)
    if request.method != "POST":
        return _new(request, form)
    if not form.is_valid():
        return _new(request, form, status=422)
    sent = form.cleaned_data
    try:
        spec, source, notes = _chosen(sent)
        draft = drafts.create(actor=actor(request), spec=spec, source=source, notes=notes)
    except Invalid as error:
        for name, text in error.errors.items():
            form.add_error(name if name in form.fields else None, _(text))
        return _new(request, form, status=422)
    return redirect("approvals:agent-draft", slug=draft.pk)


def _new(request: PageRequest, form: NewAgentForm, status: int = 200) -> HttpResponse:
    context = {"form": form, "templates": contexts.templates()}
    return page(request, "agents/new.html", context, status=status)


def _chosen(sent: dict[str, Any]) -> tuple[AgentSpec, str, list[dict[str, Any]]]:
    """The spec to begin with, its source, and what became of older spellings."""
    named = {name: sent[name] for name in ("slug", "title") if sent[name]}
    if sent["start"] == "file":
        found = _imported(sent["text"] or _text_of(sent["file"]), named)
        return found.spec, _file_name(sent["file"]), _notes(found)
    template = next((one for one in contexts.templates() if one.name == sent["start"]), None)
    if template is None:
        raise Invalid({"start": _("Choose what to start from.")})
    return _revalidated({**template.spec.model_dump(mode="json"), **named}), template.name, []


def _revalidated(data: dict[str, Any]) -> AgentSpec:
    try:
        return AgentSpec.model_validate(data)
    except ValidationError as error:
        where = str(error.errors()[0]["loc"][0])
        raise Invalid({where: error.errors()[0]["msg"]}) from error


def _imported(text: str, named: dict[str, str]) -> Imported:
    try:
        data = json.loads(text)
        if cleaning.is_deep(data):
            raise Invalid({"file": _("This is nested too deeply.")})
        return read_file({**data, **named} if isinstance(data, dict) else data)
    except BadSpec as error:
        raise Invalid({"file": str(error)}) from error
    except ValueError as error:
        raise Invalid({"file": _("This is not valid JSON: %(why)s") % {"why": error}}) from error
    except RecursionError as error:
        raise Invalid({"file": _("This is nested too deeply.")}) from error


def _text_of(file: Any) -> str:
    if file is None:
        raise Invalid({"file": _("Choose a file, or paste its text.")})
    if file.size > MAX_FILE:
        raise Invalid({"file": _("This file is too large for a spec.")})
    try:
        return str(file.read().decode())
    except UnicodeDecodeError as error:
        raise Invalid({"file": _("This is not a text file.")}) from error


def _file_name(file: Any) -> str:
    return str(file.name)[:80] if file else _("a pasted spec")


def _notes(found: Imported) -> list[dict[str, Any]]:
    return [{"text": note.text, "params": dict(note.params)} for note in found.notes]


@require_POST
def pause(request: PageRequest, slug: str) -> HttpResponse:
    """Take no new work, or take it again."""
    access.agent_to_set_up(request.user, slug)
    if request.POST.get("to") == "resume":
        agents.resume(actor=actor(request), slug=slug)
    else:
        agents.pause(actor=actor(request), slug=slug)
    return redirect("approvals:agent", slug=slug)


@require_POST
def begin(request: PageRequest, slug: str, number: int) -> HttpResponse:
    """A version as a draft."""
    agent = access.agent_to_set_up(request.user, slug)
    get_object_or_404(AgentVersion, agent=agent, number=number)
    try:
        drafts.begin(actor=actor(request), slug=slug, number=number)
    except DraftChanged as error:
        said = _("There is a draft already, last changed by %(who)s. Publish or discard it first.")
        return _agent(request, agent, problem=said % {"who": error.draft.edited_by}, status=409)
    return redirect("approvals:agent-draft", slug=slug)


# --- the draft ----------------------------------------------------------------------------------------------------------
def _editor(request: PageRequest, slug: str, at: str) -> contexts.Editor:
    agent = access.agent_for(request.user, slug)
    draft = get_object_or_404(AgentDraft.objects.select_related("base", "agent"), agent=agent)
    return contexts.Editor(agent, draft, at, access.may_set_up(request.user), user=request.user)


@require_safe
def draft(request: PageRequest, slug: str) -> HttpResponse:
    return _shown(request, _editor(request, slug, request.GET.get("at", "")))


def _shown(request: PageRequest, editor: contexts.Editor, status: int = 200) -> HttpResponse:
    return page(request, "agents/draft.html", {"view": editor}, part="editor", status=status)


def _after(request: PageRequest, slug: str, at: str, *, keep: bool = True) -> HttpResponse:
    """What a press led to. `keep`: the form beside it was not sent; with htmx its texts come along and stay."""
    address = f"/agents/{slug}/draft/?at={at}"
    if not request.htmx:
        return redirect(address)
    editor = _editor(request, slug, at)
    if keep and "base" in request.POST:
        _keep_typed(request, editor)
    return push_url(_shown(request, editor), address)


def _keep_typed(request: PageRequest, editor: contexts.Editor) -> None:
    """The form as it was typed, if it is still about the same entry."""
    if (editor.row.use if editor.row else contexts.AGENT) != request.POST.get("use"):
        return
    try:
        base = reading.from_base(request.POST["base"])
    except (ValueError, RecursionError):
        return
    if editor.schema is None:
        return
    tree = build(editor.schema, base)
    said = reading.read(tree, request.POST)
    if said.errors or said.value != editor.stored:
        editor.typed, editor.base, editor.is_dirty = tree, reading.as_base(base), True
        reading.show_errors(tree, {}, request.POST)


class _Press:
    """What every press on a draft sends."""

    def __init__(self, request: PageRequest, slug: str) -> None:
        self.agent = access.agent_to_set_up(request.user, slug)
        self.request, self.slug = request, slug
        self.rev = number_or_none(request.POST.get("rev", ""), most=2**31 - 1)
        self.at = request.POST.get("at", contexts.AGENT)

    def position(self, name: str) -> int | None:
        return number_or_none(self.request.POST.get(name, "").strip(), most=999)

    def draft(self) -> AgentDraft:
        """The draft as it was seen. Raises `DraftChanged`."""
        found = AgentDraft.objects.select_related("agent", "base").filter(agent=self.agent).first()
        if found is None or found.rev != self.rev:
            raise DraftChanged(found)
        return found

    def listed(self) -> list[dict[str, Any]]:
        return list(self.draft().spec.get("middleware", ()))

    def write(self, did: str, what: str, **spec: Any) -> AgentDraft:
        seen = self.draft()
        return drafts.change(
            actor=actor(self.request),
            slug=self.slug,
            rev=seen.rev,
            spec={**seen.spec, **spec},
            said={"did": did, "what": what},
        )


def _malformed() -> HttpResponse:
    return HttpResponseBadRequest(_("This form is damaged. Load the page again."), content_type="text/plain")


def _changed(request: PageRequest, press: _Press, error: DraftChanged) -> HttpResponse:
    """Somebody was faster. What was typed is shown again beside what is there now."""
    if error.draft is None:
        return _gone(request, press)
    editor = _editor(request, press.slug, press.at)
    editor.conflict = _(
        "%(who)s changed this draft before you. Nothing of yours was written: look again, then press."
    )
    editor.conflict %= {"who": error.draft.edited_by}
    if "base" in request.POST:
        _keep_typed(request, editor)
        same = (editor.row.use if editor.row else contexts.AGENT) == request.POST.get("use")
        editor.lost = "" if same else _typed_text(request)
    return _shown(request, editor, status=409)


def _typed_text(request: PageRequest) -> str:
    return "\n".join(
        f"{name[2:]}: {text}" for name, text in request.POST.items() if name.startswith("o/") and text
    )


def _gone(request: PageRequest, press: _Press) -> HttpResponse:
    agent = Agent.objects.filter(pk=press.slug).first()
    if agent is None:
        return redirect("approvals:agents")
    context = {"agent": agent, "text": contexts.who_ended(press.slug), "typed": _typed_text(request)}
    return page(request, "agents/gone.html", context, part="editor", status=409)


@require_POST
def add(request: PageRequest, slug: str) -> HttpResponse:
    """A middleware of the catalogue, at its usual place or at `to`."""
    press = _Press(request, slug)
    use = request.POST.get("use", "")
    if press.rev is None or use not in ENTRIES:
        return _malformed()
    try:
        spec, listed = press.draft().spec, press.listed()
        entry = advice.starter(use, spec)
        to = press.position("to") or advice.best_place(spec, entry)
        place = min(max(1, to), len(listed) + 1)
        press.write("added", use, middleware=[*listed[: place - 1], entry, *listed[place - 1 :]])
    except DraftChanged as error:
        return _changed(request, press, error)
    except Invalid as error:
        return _refused(request, press, error)
    return _after(request, slug, str(place), keep=False)


@require_POST
def move(request: PageRequest, slug: str) -> HttpResponse:
    """The entry at `from` to the position `to`, counted from 1; beyond the ends means to the end."""
    press = _Press(request, slug)
    start, to = press.position("from"), press.position("to")
    if press.rev is None or start is None:
        return _malformed()
    try:
        listed = press.listed()
        if not 1 <= start <= len(listed):
            return _malformed()
        if to is None:
            said = _("Enter a position from 1 to %(most)s.") % {"most": len(listed)}
            return _refused(request, press, Invalid({"to": said}))
        to = min(max(1, to), len(listed))
        press.write("moved", str(listed[start - 1].get("use")), middleware=advice.moved(listed, start, to))
    except DraftChanged as error:
        return _changed(request, press, error)
    return _after(request, slug, _follow(press.at, start, to))


def _follow(at: str, start: int, to: int) -> str:
    """The selected entry stays selected wherever it goes."""
    if not at.isdigit():
        return at
    order = advice.moved(range(1, max(int(at), start, to) + 1), start, to)
    return str(order.index(int(at)) + 1)


@require_POST
def remove(request: PageRequest, slug: str) -> HttpResponse:
    press = _Press(request, slug)
    start = press.position("from")
    if press.rev is None or start is None:
        return _malformed()
    try:
        listed = press.listed()
        if not 1 <= start <= len(listed):
            return _malformed()
        gone = listed.pop(start - 1)
        press.write("removed", str(gone.get("use")), middleware=listed)
    except DraftChanged as error:
        return _changed(request, press, error)
    at = int(press.at) if press.at.isdigit() else 0
    after = contexts.AGENT if at in (0, start) else str(at - (at > start))
    return _after(request, slug, after)


@require_POST
def undo(request: PageRequest, slug: str) -> HttpResponse:
    press = _Press(request, slug)
    if press.rev is None:
        return _malformed()
    try:
        drafts.undo(actor=actor(request), slug=slug, rev=press.rev)
    except DraftChanged as error:
        return _changed(request, press, error)
    return _after(request, slug, press.at)


@require_POST
def options(request: PageRequest, slug: str) -> HttpResponse:
    """The form of the selected entry or of the agent itself: saved, or grown by a press inside it (`?do=…&of=…`)."""
    press = _Press(request, slug)
    if press.rev is None:
        return _malformed()
    try:
        press.draft()
        editor = _editor(request, slug, press.at)
        if (editor.row.use if editor.row else contexts.AGENT) != request.POST.get(
            "use"
        ) or editor.schema is None:
            return _malformed()
        base = reading.from_base(request.POST.get("base", ""))
    except DraftChanged as error:
        return _changed(request, press, error)
    except (ValueError, RecursionError):
        return _malformed()
    tree = build(editor.schema, base)
    said = reading.read(tree, request.POST)
    if cleaning.is_deep(said.value):
        said.errors[""] = _("This is nested too deeply.")
    if said.errors:
        return _wrong(request, editor, tree, base, said.errors)
    if request.GET.get("do"):
        return _grown(request, editor, said.value)
    return _saved(request, press, editor, tree, base, said.value)


def _wrong(
    request: PageRequest, editor: contexts.Editor, tree: Any, base: Any, errors: dict[str, str]
) -> HttpResponse:
    """The form again, as it was typed, with each sentence at its field."""
    editor.typed, editor.base, editor.is_dirty = tree, reading.as_base(base), True
    editor.homeless = reading.show_errors(tree, errors, request.POST)
    return _shown(request, editor, status=422)


def _grown(request: PageRequest, editor: contexts.Editor, value: Any) -> HttpResponse:
    """A list with one part more or less, another alternative: not saved yet."""
    did, of = request.GET.get("do", ""), request.GET.get("of", "")
    if did not in reading.ACTS:
        return _malformed()
    assert editor.schema is not None
    try:
        new = reading.act(
            editor.schema, value, did, of,  # type: ignore[arg-type]
            key=request.POST.get(f"key{of}", ""), to=number_or_none(request.POST.get(f"branch{of}", "")) or 0,
        )  # fmt: skip
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        tree = build(editor.schema, value)
        said = {of: _("Enter a name that is not in the list yet.")} if did == "add" else {"": str(error)}
        return _wrong(request, editor, tree, value, said)
    editor.typed, editor.base, editor.is_dirty = build(editor.schema, new), reading.as_base(new), True
    return _shown(request, editor)


def _saved(
    request: PageRequest, press: _Press, editor: contexts.Editor, tree: Any, base: Any, value: dict[str, Any]
) -> HttpResponse:
    row = editor.row
    try:
        if row is not None and row.entry is not None:
            row.entry.options.model_validate(value)
            listed = press.listed()
            listed[row.n - 1] = {"use": row.use, **value}
            press.write("changed", row.use, middleware=listed)
        else:
            AgentSpec.model_validate({**editor.spec, **value, "middleware": []})
            press.write("changed", contexts.AGENT, **value)
    except ValidationError as error:
        return _wrong(request, editor, tree, base, reading.place(tree, error))
    except DraftChanged as error:
        return _changed(request, press, error)
    except Invalid as error:
        return _wrong(request, editor, tree, base, {"": " ".join(map(_, error.errors.values()))})
    return _after(request, press.slug, press.at, keep=False)


def _refused(request: PageRequest, press: _Press, error: Invalid) -> HttpResponse:
    """A press that cannot be done, with the reason above the list."""
    editor = _editor(request, press.slug, press.at)
    editor.problem = " ".join(_(text) for text in error.errors.values())
    if "base" in request.POST:
        _keep_typed(request, editor)
    return _shown(request, editor, status=422)


@require_POST
def import_draft(request: PageRequest, slug: str) -> HttpResponse:
    """A file takes the place of the draft, or becomes one."""
    press = _Press(request, slug)
    file = request.FILES.get("file")
    try:
        found = _imported(request.POST.get("text") or _text_of(file), {"slug": slug})
        drafts.replace(
            actor=actor(request), slug=slug, spec=found.spec, rev=press.rev, source=_file_name(file), notes=_notes(found)
        )  # fmt: skip
    except DraftChanged as error:
        return _changed(request, press, error)
    except Invalid as error:
        if not AgentDraft.objects.filter(agent=press.agent).exists():
            return _agent(request, press.agent, problem=" ".join(map(_, error.errors.values())), status=422)
        return _refused(request, press, error)
    return redirect("approvals:agent-draft", slug=slug)


@require_POST
def discard(request: PageRequest, slug: str) -> HttpResponse:
    press = _Press(request, slug)
    if press.rev is None:
        return _malformed()
    try:
        drafts.discard(actor=actor(request), slug=slug, rev=press.rev)
    except DraftChanged as error:
        return _changed(request, press, error)
    return redirect("approvals:agent" if Agent.objects.filter(pk=slug).exists() else "approvals:agents", *(
        [slug] if Agent.objects.filter(pk=slug).exists() else []
    ))  # fmt: skip


@require_POST
def publish(request: PageRequest, slug: str) -> HttpResponse:
    """The draft becomes the next version, unless something is wrong with it or it is not what was seen."""
    press = _Press(request, slug)
    current = press.position("current")
    if press.rev is None or current is None:
        return _malformed()
    try:
        drafts.publish(actor=actor(request), slug=slug, rev=press.rev, current=current)
    except DraftChanged as error:
        return _changed(request, press, error)
    except NotPublishable as error:
        editor = _editor(request, slug, press.at)
        editor.problem = _("This cannot be published: %(why)s") % {
            "why": " ".join(map(contexts.finding_text, error.findings))
        }
        return _shown(request, editor, status=409)
    except Invalid as error:
        return _refused(request, press, error)
    return redirect("approvals:agent", slug=slug)

"""The agents page: the list, versions, the editor of a draft, the comparison of two specs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from django.db.models import Count, OuterRef, Q, Subquery
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from pydantic import ValidationError

from agents.catalogue import AgentSpec, all_tools, fingerprint, shipped_specs
from agents.words import gettext_noop
from approvals import access, advice, phrases, queries, specdiff
from approvals.argform.diff import halves
from approvals.argform.fields import humanize
from approvals.argform.patch import Change
from approvals.contexts import picture
from approvals.contexts.shared import Chip, flat
from approvals.display import visible
from approvals.models import OPEN, Agent, AgentDraft, AgentVersion, AuditEvent, User
from approvals.optionform import schema as schemas
from approvals.optionform.tree import LABELS, Field, build
from approvals.services import agents
from middleware.catalogue import ENTRIES, BadEntry, Entry
from middleware.lints import Lint
from middleware.policy import HITL, gates
from middleware.stack import added_tools

FAMILIES = {
    "people": gettext_noop("People decide"),
    "models": gettext_noop("Around the model"),
    "tools": gettext_noop("Around tool calls"),
    "context": gettext_noop("Memory and plan"),
    "privacy": gettext_noop("Personal data"),
    "files": gettext_noop("Files, shell, helpers"),
    "providers": gettext_noop("One provider only"),
    "own": gettext_noop("Your own"),
}
DID = {
    "added": gettext_noop("Added %(what)s."),
    "removed": gettext_noop("Removed %(what)s."),
    "moved": gettext_noop("Moved %(what)s."),
    "changed": gettext_noop("Changed %(what)s."),
    "undone": gettext_noop("Took the last change back."),
    "imported": gettext_noop("Read %(what)s."),
}
AGENT = "agent"
NAME = re.compile(
    rf"\b(?:{'|'.join(sorted(map(re.escape, ENTRIES), key=len, reverse=True))})\b"
)  # of a middleware


# --- the list ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class AgentRow:
    agent: Agent
    version: AgentVersion | None
    open: int
    draft: AgentDraft | None

    @property
    def model(self) -> str:
        spec = self.version.spec if self.version else self.draft.spec if self.draft else {}
        return str(spec.get("model", ""))

    @property
    def chips(self) -> list[Chip]:
        found = []
        if self.agent.is_paused:
            found.append(Chip(_("Paused"), "warn", "circle-pause"))
        elif self.version is not None:
            found.append(Chip(_("In service"), "ok", "check"))
        if self.draft is not None:
            found.append(Chip(_("Draft"), "acc", "file-pen-line"))
        return found


def rows() -> list[AgentRow]:
    """Every agent with its newest version, in three queries."""
    newest = AgentVersion.objects.filter(agent=OuterRef("pk")).order_by("-number").values("pk")[:1]
    working = Count("threads__runs", filter=Q(threads__runs__status__in=OPEN))
    found = list(
        Agent.objects.select_related("draft")
        .annotate(newest=Subquery(newest), working=working)
        .order_by("title")
    )
    versions = AgentVersion.objects.in_bulk([row.newest for row in found if row.newest])
    return [
        AgentRow(row, versions.get(row.newest), row.working, getattr(row, "draft", None)) for row in found
    ]


@dataclass(frozen=True)
class Template:
    """Something to start from."""

    name: str
    title: str
    text: str
    icon: str
    spec: AgentSpec


def templates() -> list[Template]:
    """The shipped agents, a careful one with reads only, one that only talks."""
    shipped = shipped_specs()
    known = all_tools()
    reads = tuple(name for name, facts in known.items() if facts.effect == "read")
    model = shipped[0].model if shipped else "openai:gpt-5.4"
    address: dict[str, Any] = (
        {"base_url": shipped[0].base_url, "api_key_env": shipped[0].api_key_env} if shipped else {}
    )
    limit = {"use": "model_call_limit", "run_limit": 25, "hard_cap": 60, "on_limit": "ask"}
    careful = AgentSpec(
        slug="assistant",
        title="Careful assistant",
        description="Looks things up and explains them; it cannot change anything.",
        model=model,
        **address,
        system_prompt="You help the support team. Look things up before you answer, say where a fact comes from, "
        "and say so when you do not know.",
        tools=reads,
        middleware=(
            limit,
            {"use": "pii", "pii_type": "credit_card", "strategy": "mask"},
            {"use": "tool_error", "tools": list(reads)},
            {"use": "write_guard"},
        ) if reads else (limit, {"use": "write_guard"}),
    )  # fmt: skip
    chat = AgentSpec(
        slug="chat",
        title="Chat only",
        description="Answers from its instructions; it has no tools.",
        model=model,
        **address,
        system_prompt="You help the support team with wording and explanations. You cannot look anything up.",
        tools=(),
        middleware=(limit, {"use": "write_guard"}),
    )
    return [
        *(Template(spec.slug, phrases.agent(spec.title), spec.description, "package", spec) for spec in shipped),
        Template("careful", _("Careful assistant"), _("Looks things up and explains them; it cannot change anything."),
                 "book-open", careful),
        Template("chat", _("Chat only"), _("Answers from its instructions; it has no tools."), "message-square", chat),
    ]  # fmt: skip


# --- an agent and its versions -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class VersionRow:
    version: AgentVersion
    is_current: bool
    open: int
    parked: int
    changed: list[str]  # what differs in the installed code


@dataclass
class AgentPage:
    """One agent: what is in force, what was, what comes."""

    agent: Agent
    user: User

    @cached_property
    def may_edit(self) -> bool:
        return access.may_set_up(self.user)

    @cached_property
    def draft(self) -> AgentDraft | None:
        return AgentDraft.objects.select_related("base").filter(agent=self.agent).first()

    @cached_property
    def versions(self) -> list[VersionRow]:
        used = {use.version.pk: use for use in agents.in_use() if use.version.agent_id == self.agent.pk}
        found = []
        for n, version in enumerate(self.agent.versions.order_by("-number")[:200]):
            use = used.get(version.pk)
            drift = use.differences if use else agents.drift_of(version) if n == 0 else []
            said = [_(one.text) % one.params for one in drift]
            found.append(VersionRow(version, n == 0, use.open if use else 0, use.parked if use else 0, said))
        return found

    @property
    def current(self) -> VersionRow | None:
        return self.versions[0] if self.versions else None

    @property
    def title(self) -> str:
        return phrases.agent(self.agent.title)


# --- the stack as a list ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Row:
    """One middleware of the list. `n`: position from 1."""

    n: int
    use: str
    entry: Entry | None
    options: Mapping[str, Any]
    level: str = ""  # the worst finding about it: error, warning
    is_selected: bool = False

    @property
    def label(self) -> str:
        return _(self.entry.label) if self.entry else self.use

    @property
    def detail(self) -> str:
        """What tells it from another of its kind."""
        return next((str(self.options[name]) for name in specdiff.TELLS_APART if self.options.get(name)), "")

    @property
    def hooks(self) -> str:
        return " + ".join(self.entry.hooks) if self.entry else ""

    @property
    def summary(self) -> str:
        return _(self.entry.summary) if self.entry else ""

    @property
    def help(self) -> str:
        return _(self.entry.help) if self.entry else ""

    @property
    def notes(self) -> list[str]:
        return [_(note) for note in self.entry.notes] if self.entry else []

    @property
    def unavailable(self) -> str:
        return why_unavailable(self.entry) if self.entry else ""


def why_unavailable(entry: Entry) -> str:
    if entry.unavailable() is None:
        return ""
    return _("needs the package %(name)s: pip install %(name)s") % {"name": entry.install or entry.package}


def stack(spec: Mapping[str, Any], selected: int | None, levels: Mapping[int, str]) -> list[Row]:
    return [
        Row(
            n, str(one.get("use", "")), ENTRIES.get(str(one.get("use"))),
            {key: value for key, value in one.items() if key != "use"}, levels.get(n, ""), n == selected,
        )
        for n, one in enumerate(spec.get("middleware", ()), 1)
    ]  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A finding in the reader's language, with what helps."""

    level: str
    text: str
    remedy: str
    at: int | None
    step: advice.Step | None

    @property
    def press(self) -> str:
        if self.step is None:
            return ""
        label = _(ENTRIES[self.step.use].label)
        text = _("Move %(what)s to position %(to)s") if self.step.did == "move" else _("Add %(what)s")
        return text % {"to": self.step.to, "what": label}


def finding_text(lint: Lint) -> str:
    said = str(lint.params["why"]) if lint.code == "unreadable" else _(lint.message) % lint.params
    said = f"{lint.where}: {said}" if lint.where else said
    return phrases.sentence(_named(said))


def say(found: Sequence[advice.Advice]) -> list[Said]:
    offered: set[advice.Step] = set()
    said = []
    for one in found:
        remedy = _(one.remedy) % one.lint.params if one.remedy else ""
        step = one.step if one.step not in offered else None  # the same press helps several: once is enough
        said.append(Said(one.lint.level, finding_text(one.lint), _named(remedy), one.at, step))
        offered |= {step} if step else set()
    return said


def _named(text: str) -> str:
    """Middleware as it is called in the list."""
    return NAME.sub(lambda found: _(ENTRIES[found[0]].label), text)


@dataclass
class View:
    """What a draft and a version show alike: the list, the findings, the picture, one entry."""

    agent: Agent
    subject: AgentDraft | AgentVersion
    at: str  # "agent", or a position from 1; "": nothing was chosen, which shows the agent
    may_edit: bool

    @cached_property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.subject.spec
        return found

    @cached_property
    def title(self) -> str:
        return phrases.agent(str(self.spec.get("title") or self.agent.title))

    @property
    def is_open(self) -> bool:
        """On a narrow screen the options take the place of the rest."""
        return bool(self.at)

    @cached_property
    def selected(self) -> int | None:
        n = int(self.at) if self.at.isascii() and self.at.isdigit() and len(self.at) < 4 else 0
        return n if 1 <= n <= len(self.spec.get("middleware", ())) else None

    @cached_property
    def advices(self) -> list[advice.Advice] | None:
        return advice.advise(self.spec)

    @cached_property
    def findings(self) -> list[Said]:
        if self.advices is None:
            text = _("The agent’s own fields are not complete.")
            return [Said("error", text, _("Open them and fill in what is missing."), None, None)]
        return [*say(self.advices), *self.lonely]

    @property
    def lonely(self) -> list[Said]:
        """Groups that are asked and have nobody in them."""
        at = next((n for n, one in enumerate(self.spec["middleware"], 1) if one.get("use") == HITL), None)
        try:
            asked = {gate.queue for gate in gates(self.spec["middleware"]).values()}
        except ValidationError:
            return []
        text = _("Nobody is in the group %(queue)s: its questions would wait in vain.")
        remedy = _("Put somebody into the group, or name another.")
        found = sorted(asked - queries.staffed(asked))
        return [Said("warning", text % {"queue": name}, remedy, at, None) for name in found]

    @property
    def errors(self) -> list[Said]:
        return [one for one in self.findings if one.level == "error"]

    @cached_property
    def rows(self) -> list[Row]:
        levels: dict[int, str] = {}
        for one in self.findings:
            if one.at is not None:
                levels[one.at] = "error" if "error" in (one.level, levels.get(one.at)) else "warning"
        return stack(self.spec, self.selected, levels)

    @cached_property
    def row(self) -> Row | None:
        return self.rows[self.selected - 1] if self.selected else None

    @cached_property
    def picture(self) -> Any:
        return picture.of(self.subject)

    @cached_property
    def praise(self) -> str:
        """Why the order looks right."""
        places = {row.use: row for row in self.rows}
        hitl, guard = places.get("human_in_the_loop"), places.get("write_guard")
        said = []
        inner = [row for row in (places.get("tool_retry"), places.get("tool_error")) if row]
        if hitl and inner:
            said.append(
                _(
                    "%(outer)s (%(n)s) stands outside %(inner)s (%(m)s): a call that nobody approved is never repeated."
                )
                % {"outer": hitl.label, "n": hitl.n, "inner": inner[0].label, "m": inner[0].n}
            )
        if guard:
            said.append(
                _("%(guard)s (%(n)s) lets no write through without a decision.")
                % {"guard": guard.label, "n": guard.n}
            )
        return " ".join(said)

    @cached_property
    def form(self) -> Field | None:
        """Of the selected entry, or of the agent itself; None for an entry that nobody knows."""
        schema = self.schema
        return build(schema, self.stored) if schema is not None else None

    @cached_property
    def schema(self) -> schemas.Schema | None:
        if self.selected is None:
            return schemas.of_agent(list(all_tools()))
        entry = self.row.entry if self.row else None
        return schemas.of_entry(entry, tool_names(self.spec), queries.queue_names()) if entry else None

    @property
    def stored(self) -> dict[str, Any]:
        """What the form is about, as it is stored."""
        if self.row is not None:
            return dict(self.row.options)
        return {name: self.spec[name] for name in specdiff.OWN if name in self.spec}

    @property
    def tool_effects(self) -> dict[str, str]:
        return {name: facts.effect for name, facts in all_tools().items()}


def tool_names(spec: Mapping[str, Any]) -> list[str]:
    """The agent's own tools, and what its middleware brings as far as it can be read."""
    found = [str(name) for name in spec.get("tools", ())]
    for one in spec.get("middleware", ()):
        try:
            found += added_tools([one])
        except BadEntry:
            continue
    return list(dict.fromkeys(found))


# --- the draft ---------------------------------------------------------------------------------------------------------
@dataclass
class Editor(View):
    """A draft that is being changed."""

    user: User | None = None
    conflict: str = ""
    problem: str = ""  # of a press that could not be done
    homeless: list[str] = field(default_factory=list)  # errors that belong to no field
    typed: Field | None = None  # the form as it was sent, in place of the stored one
    base: str = ""  # the value it was made from
    is_dirty: bool = False
    lost: str = ""  # what was typed for an entry that is not there any more

    @property
    def draft(self) -> AgentDraft:
        assert isinstance(self.subject, AgentDraft)
        return self.subject

    @property
    def shown(self) -> Field | None:
        return self.typed or self.form

    @property
    def base_text(self) -> str:
        return self.base or json.dumps(self.stored, ensure_ascii=False)

    @cached_property
    def current(self) -> AgentVersion | None:
        return self.agent.current

    @property
    def next_number(self) -> int:
        return self.current.number + 1 if self.current else 1

    @property
    def is_behind(self) -> bool:
        """Somebody published another version since it was begun."""
        return self.draft.base_id != (self.current.pk if self.current else None)

    @cached_property
    def differs(self) -> bool:
        if self.current is None:
            return True
        try:
            return fingerprint(AgentSpec.model_validate(self.spec)) != self.current.fingerprint
        except ValueError:
            return True

    @property
    def open_runs(self) -> int:
        return sum(use.open for use in agents.in_use() if use.version.agent_id == self.agent.pk)

    @property
    def may_publish(self) -> bool:
        return self.may_edit and not self.errors and self.differs

    @property
    def is_own(self) -> bool:
        """Whether one person alone would make and publish this."""
        return self.may_publish and self.user is not None and self.draft.edited_by == self.user.name

    @property
    def last(self) -> str:
        """The last change, as long as it can be undone."""
        said = self.draft.undo.get("said", {})
        if said.get("did") not in DID:
            return ""
        return _(DID[said["did"]]) % {"what": what_name(str(said.get("what", "")))}

    @property
    def notes(self) -> list[str]:
        """What became of older spellings in a file that was read."""
        listed = self.draft.undo.get("said", {}).get("notes", [])
        return [_(note["text"]) % {**note["params"], **_why(note["params"])} for note in listed]

    @property
    def families(self) -> Iterator[tuple[str, list[Row]]]:
        """The catalogue by family; what cannot be used here comes last and says why."""
        for family, label in FAMILIES.items():
            members = [entry for entry in ENTRIES.values() if entry.family == family]
            if members:
                listed = [Row(0, entry.name, entry, {}) for entry in members]
                yield _(label), sorted(listed, key=lambda row: bool(row.unavailable))


def _why(params: Mapping[str, Any]) -> dict[str, str]:
    return {"why": _(params["why"])} if params.get("why") else {}


def what_name(what: str) -> str:
    """The label of an entry; a name of a file or the word for the agent's own fields stays."""
    if what == AGENT:
        return _("the agent’s own fields")
    return _(ENTRIES[what].label) if what in ENTRIES else what


def who_ended(slug: str) -> str:
    """A sentence about a draft that is gone."""
    found = (
        AuditEvent.objects.filter(object_kind="agent", object_id=slug, action__in=["agent.published", "draft.discarded"])
        .order_by("-pk")
        .first()
    )  # fmt: skip
    if found is None:
        return _("This draft is gone. Nothing of yours was written.")
    if found.action == "agent.published":
        said = _("%(who)s has published this draft as v%(version)s. Nothing of yours was written.")
    else:
        said = _("%(who)s has discarded this draft. Nothing of yours was written.")
    return said % {"who": found.actor_name, "version": found.data.get("version", "")}


# --- two specs side by side --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Line:
    """One line of a text on both sides."""

    state: str  # same, changed, added, removed
    old: SafeString | str
    new: SafeString | str


@dataclass(frozen=True)
class FieldPair:
    name: str
    label: str
    old: str
    new: str
    lines: Sequence[Line] = ()


@dataclass(frozen=True)
class EntryPair:
    pair: specdiff.Pair
    label: str
    detail: str
    fields: Sequence[FieldPair]
    whole: str  # the options of one that was added or removed

    @property
    def chip(self) -> Chip | None:
        return {
            "added": Chip(_("Added"), "ok", "plus"),
            "removed": Chip(_("Removed"), "bad", "minus"),
            "changed": Chip(_("Changed"), "acc", "pencil"),
            "moved": Chip(_("Moved"), "acc", "move-vertical"),
        }.get(self.pair.state)


@dataclass(frozen=True)
class Comparison:
    fields: Sequence[FieldPair]
    entries: Sequence[EntryPair]

    @property
    def is_same(self) -> bool:
        return not self.fields and all(one.pair.state == "same" for one in self.entries)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> Comparison:
    fields = [_field_pair(change) for change in specdiff.own_changes(old, new)]
    return Comparison(fields, [_entry_pair(pair, old, new) for pair in specdiff.pairs(old, new)])


def _entry_pair(pair: specdiff.Pair, old: Mapping[str, Any], new: Mapping[str, Any]) -> EntryPair:
    side, place = (new, pair.after) if pair.after else (old, pair.before)
    one = side["middleware"][(place or 1) - 1]
    row = Row(place or 1, pair.use, ENTRIES.get(pair.use), one)
    options = {key: value for key, value in one.items() if key != "use"}
    whole = (
        json.dumps(options, ensure_ascii=False, indent=2)
        if pair.state in ("added", "removed") and options
        else ""
    )
    return EntryPair(pair, row.label, row.detail, [_field_pair(change) for change in pair.changes], whole)


def _field_pair(change: Change) -> FieldPair:
    old, new = flat(change.old), flat(change.new)
    name = change.pointer.strip("/").replace("/", ".")
    lines = line_diff(old, new) if "\n" in old or "\n" in new else ()
    label = option_label(change.pointer)
    return FieldPair(name, label, old, new, lines)


def option_label(pointer: str) -> str:
    name = pointer.rpartition("/")[2]
    return _(LABELS.get(name) or humanize(name))


def line_diff(old: str, new: str) -> list[Line]:
    """Two texts line by line; a line that was changed shows what changed in it."""
    before, after = visible(old).split("\n"), visible(new).split("\n")
    found: list[Line] = []
    for did, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if did == "equal":
            found += [Line("same", line, line) for line in before[a:b]]
            continue
        for n in range(max(b - a, d - c)):
            left = before[a + n] if a + n < b else None
            right = after[c + n] if c + n < d else None
            state = "added" if left is None else "removed" if right is None else "changed"
            sides = (
                halves(left, right) if left is not None and right is not None else (left or "", right or "")
            )
            found.append(Line(state, *sides))
    return found

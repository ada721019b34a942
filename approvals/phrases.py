"""Sentences about rows, in the reader's language. Rows are stored in English; what people read is said again here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from pydantic import ValidationError

from agents.catalogue import ToolFacts, known_tools
from agents.words import gettext_noop
from approvals import money
from approvals.enums import DecisionType, RequestKind, RequestStatus, RunStatus
from approvals.models import ApprovalRequest, Decision, Run
from middleware import policy, predicates

LABELS = {
    "order_id": gettext_noop("Order"),
    "amount": gettext_noop("Amount"),
    "currency": gettext_noop("Currency"),
    "reason": gettext_noop("Reason"),
    "customer_note": gettext_noop("Message to the customer"),
    "question": gettext_noop("Question"),
    "topic": gettext_noop("Topic"),
    "policy_id": gettext_noop("Policy"),
    "percent": gettext_noop("Percent"),
}
QUEUES = {
    "refund-reviewers": gettext_noop("Refund reviewers"),
    "finance": gettext_noop("Finance"),
    "support": gettext_noop("Support"),
    "administrators": gettext_noop("Administrators"),
    "auditors": gettext_noop("Auditors"),
}
RESOURCES = {"model_calls": gettext_noop("model calls"), "tool_calls": gettext_noop("tool calls")}
NOTHING_RAN = {
    RequestStatus.REJECTED: gettext_noop("Rejected: the call did not run."),
    RequestStatus.EXPIRED: gettext_noop(
        "Nobody decided in time, so the call did not run. No person has looked at it."
    ),
    RequestStatus.WITHDRAWN: gettext_noop("Withdrawn before it was decided: the call did not run."),
    RequestStatus.SUPERSEDED: gettext_noop("Replaced before it was decided: the call did not run."),
    RequestStatus.HANDLED_ELSEWHERE: gettext_noop("Handled elsewhere: the call did not run."),
}


ORDER_STATES = {
    "placed": gettext_noop("placed"),
    "shipped": gettext_noop("shipped"),
    "delivered": gettext_noop("delivered"),
    "cancelled": gettext_noop("cancelled"),
}
ACTORS = {  # those that are not people; a row has the English name
    "Time to decide": gettext_noop("Time to decide"),
    "Look-up by key": gettext_noop("Look-up by key"),
    "Command line": gettext_noop("Command line"),
}
LEFT_UNKNOWN = {
    RequestStatus.HANDLED_ELSEWHERE: gettext_noop(
        "Settled by a look-up: the provider knows the call, it did go through."
    ),
    RequestStatus.SUPERSEDED: gettext_noop(
        "Closed without an answer: whether the call went through is still unknown."
    ),
    RequestStatus.EXPIRED: gettext_noop(
        "Closed without an answer: whether the call went through is still unknown."
    ),
    RequestStatus.WITHDRAWN: gettext_noop(
        "Closed without an answer: whether the call went through is still unknown."
    ),
}


EXPLANATIONS = (  # what the policy's computation says, sentence by sentence
    gettext_noop("Everything that was paid has been refunded already."),
    gettext_noop("%(asked)s was asked for; the policy allows up to %(most)s."),
    gettext_noop("%(percent)s%% of the amount paid was asked for."),
    gettext_noop("The order was cancelled: everything not yet refunded is returned."),
    gettext_noop("Not delivered yet: open a case with the carrier before any refund."),
    gettext_noop("Delivered %(days)s days ago."),
    gettext_noop("Delivered %(days)s day ago."),
    gettext_noop("Reported within %(days)s days: full refund."),
    gettext_noop("Reported after %(days)s days: a specialist must look."),
    gettext_noop("Changed mind: minus %(percent)s%% restocking."),
    gettext_noop("After %(days)s days unopened goods are not taken back."),
    gettext_noop("Late delivery: %(percent)s%% of the amount paid as a gesture."),
    gettext_noop("The carrier says it was delivered: check the proof of delivery first."),
    gettext_noop("No listed reason: goodwill, at the reviewer's judgement."),
)
PLACE = re.compile(r"%\((\w+)\)s")
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z\d])")


def reader() -> str:
    return translation.get_language() or "en"


def facts_of(tool: str) -> ToolFacts | None:
    return known_tools().get(tool)


def label(name: str) -> str:
    """The name of an argument; unknown ones are spelled as they are."""
    return _(LABELS[name]) if name in LABELS else name.replace("_", " ").strip().capitalize()


def sentence(text: str) -> str:
    """With a stop at its end, and a capital at its beginning unless a name of the code stands there."""
    first = text[:1] if "_" in text.partition(" ")[0] else text[:1].upper()
    return first + text[1:] + ("" if text.endswith((".", "。")) else _("."))


def agent(title: str) -> str:
    """The name of an agent; one that nobody translated is shown as it is."""
    return _(title) if title else ""


def actor(name: str) -> str:
    """Who closed something, as it is called in the reader's language."""
    return _(ACTORS[name]) if name in ACTORS else name


def order_state(state: str) -> str:
    return _(ORDER_STATES[state]) if state in ORDER_STATES else state


def queue_name(queue: str) -> str:
    return _(QUEUES[queue]) if queue in QUEUES else queue


def call(tool: str, args: Any) -> str:
    """ "Refund CN¥1,280.00": a call in words, else its name."""
    facts = facts_of(tool)
    if facts is None or not isinstance(args, Mapping):
        return tool
    return money.fill(_(facts.title), args, reader())


def title(request: ApprovalRequest) -> str:
    """What a request asks, with the amount as the reader writes it."""
    if request.kind == RequestKind.LIMIT:
        used, resource = request.value.get("used", "?"), str(request.value.get("resource", ""))
        return _("Continue past %(used)s %(resource)s?") % {
            "used": used,
            "resource": _(RESOURCES[resource]) if resource in RESOURCES else resource,
        }
    if facts_of(request.tool) is None:
        return request.title
    said = call(request.tool, decided_args(request))
    return (
        _("Did it go through? %(call)s") % {"call": said}
        if request.kind == RequestKind.UNKNOWN_OUTCOME
        else said
    )


def decided_args(request: ApprovalRequest) -> Any:
    """What ran or may run: after an edit the edited arguments, else those proposed."""
    return request.final_args if request.final is not None else request.args


def amount(request: ApprovalRequest) -> str:
    """The sum a request moves, as money; "" if it moves none."""
    args = decided_args(request)
    return amount_in(args) if request.kind != RequestKind.LIMIT else ""


def amount_in(args: Any) -> str:
    if not isinstance(args, dict) or money.decimal_of(args.get("amount")) is None:
        return ""
    currency = args.get("currency")
    return money.spoken(args["amount"], currency if isinstance(currency, str) else "", reader())


def short_rule(request: ApprovalRequest) -> str:
    """Why a person is asked, as short as a chip: "Over 1,000"."""
    match _rule_of(request):
        case {"use": "amount_over", "value": value}:
            return _("Over %(limit)s") % {"limit": f"{value:,}"}
        case {"use": "amount_over_by_currency"}:
            return _("Over the limit")
    return _("Always asked") if request.kind == RequestKind.TOOL_CALL else ""


def rule(request: ApprovalRequest) -> str:
    """Why a person is asked, as a sentence."""
    match _rule_of(request):
        case {"use": "amount_over", "value": value, "arg": arg}:
            return _("%(field)s over %(limit)s, so a person must approve.") % {
                "field": label(arg), "limit": f"{value:,}"
            }  # fmt: skip
        case {"use": "amount_over_by_currency", "arg": arg, "limits": dict(limits)}:
            listed = ", ".join(f"{currency} {limit:,}" for currency, limit in sorted(limits.items()))
            return _("%(field)s over the limit (%(limits)s), so a person must approve.") % {
                "field": label(arg), "limits": listed
            }  # fmt: skip
    return _("A person must approve every call of this tool.")


def _rule_of(request: ApprovalRequest) -> dict[str, Any]:
    """The rule as the run's own agent version has it."""
    try:
        gate = policy.gates(request.run.version.spec.get("middleware", ())).get(request.tool)
    except (ValidationError, predicates.BadRule):
        return {}
    return dict(gate.when or {}) if gate else {}


def outcome(request: ApprovalRequest) -> str:
    """How it ended, in two or three words."""
    if request.kind == RequestKind.UNKNOWN_OUTCOME and request.status == RequestStatus.RESPONDED:
        return _("Settled")
    if request.kind == RequestKind.UNKNOWN_OUTCOME and request.status == RequestStatus.HANDLED_ELSEWHERE:
        return _("Found by a look-up")
    if request.kind == RequestKind.LIMIT and request.status == RequestStatus.APPROVED:
        return _("Granted")
    if request.kind == RequestKind.LIMIT and request.status == RequestStatus.REJECTED:
        return _("Stopped")
    return str(RequestStatus(request.status).label)


PAST = {
    DecisionType.APPROVE: gettext_noop("%(who)s approved this."),
    DecisionType.EDIT: gettext_noop("%(who)s approved this with an edit."),
    DecisionType.REJECT: gettext_noop("%(who)s rejected this."),
    DecisionType.RESPOND: gettext_noop("%(who)s answered this."),
    DecisionType.GRANT: gettext_noop("%(who)s granted more."),
    DecisionType.STOP: gettext_noop("%(who)s refused more."),
    DecisionType.HAPPENED: gettext_noop("%(who)s recorded that it went through."),
    DecisionType.DID_NOT_HAPPEN: gettext_noop("%(who)s recorded that it did not go through."),
    DecisionType.STILL_UNKNOWN: gettext_noop("%(who)s recorded that it is still unknown."),
}
YOURS = {
    DecisionType.APPROVE: gettext_noop("You approved this."),
    DecisionType.EDIT: gettext_noop("You approved this with your edit."),
    DecisionType.REJECT: gettext_noop("You rejected this."),
    DecisionType.RESPOND: gettext_noop("You answered this."),
    DecisionType.GRANT: gettext_noop("You granted more."),
    DecisionType.STOP: gettext_noop("You refused more."),
    DecisionType.HAPPENED: gettext_noop("You recorded that it went through."),
    DecisionType.DID_NOT_HAPPEN: gettext_noop("You recorded that it did not go through."),
    DecisionType.STILL_UNKNOWN: gettext_noop("You recorded that it is still unknown."),
}


def decided(decision: Decision, *, is_mine: bool) -> str:
    """One sentence: who did what."""
    kind = DecisionType(decision.type)
    return _(YOURS[kind]) if is_mine else _(PAST[kind]) % {"who": decision.actor_name}


def ending(request: ApprovalRequest) -> str:
    """What an ending without a decision means; "" if a person decided."""
    status = RequestStatus(request.status)
    if status == RequestStatus.EXPIRED and request.kind == RequestKind.QUESTION:
        if request.default_answer:
            return _("Nobody answered in time: the agent went on with the answer set for this case.")
        return _("Nobody answered in time: the agent went on without an answer.")
    said = LEFT_UNKNOWN if request.kind == RequestKind.UNKNOWN_OUTCOME else NOTHING_RAN
    return _(said[status]) if status in said else ""


def ran_not(request: ApprovalRequest) -> bool:
    """It is certain that the call of this request did not run."""
    return request.kind in (RequestKind.TOOL_CALL, RequestKind.LIMIT) and request.status in NOTHING_RAN


def ago(gap: timedelta) -> str:
    seconds = max(0, round(gap.total_seconds()))
    if seconds < 120:
        return ngettext("%(n)s second", "%(n)s seconds", seconds) % {"n": seconds}
    minutes = seconds // 60
    if minutes < 120:
        return ngettext("%(n)s minute", "%(n)s minutes", minutes) % {"n": minutes}
    hours = minutes // 60
    return ngettext("%(n)s hour", "%(n)s hours", hours) % {"n": hours}


def check(found: Mapping[str, Any]) -> str:
    """A finding of the server in the reader's language; its English text if a place in it is missing."""
    text = str(found.get("text", ""))
    try:
        return _(text) % money.respoken(found.get("params") or {}, reader()) if text else ""
    except (KeyError, ValueError, TypeError):
        return text


def explanation(text: str) -> str:
    """A tool's English in the reader's language, as far as its sentences are known."""
    said = [_retold(sentence) for sentence in SENTENCE_END.split(text)]
    return ("" if reader().startswith("zh") else " ").join(said)


def _retold(sentence: str) -> str:
    for template in EXPLANATIONS:
        if found := _pattern(template).fullmatch(sentence):
            return _(template) % money.respoken(found.groupdict(), reader())
    return sentence


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """A template as an expression that finds what its places hold."""
    parts = PLACE.split(template)
    places = [
        f"(?P<{part}>[^:]+?)" if n % 2 else re.escape(part.replace("%%", "%")) for n, part in enumerate(parts)
    ]
    return re.compile("".join(places))


WHY_NOT = {
    "queue": gettext_noop("Only %(queue)s can decide this. You can read it."),
    "own_case": gettext_noop("You asked for this case, so somebody else must decide it."),
    "approver": gettext_noop("You approved this call, so somebody else must say what became of it."),
}


def why_not(code: str, request: ApprovalRequest) -> str:
    return _(WHY_NOT[code]) % {"queue": queue_name(request.queue)} if code in WHY_NOT else ""


RIGHTS = {
    "decide": gettext_noop("decide this request"),
    "write": gettext_noop("write in this case"),
    "cancel": gettext_noop("stop this run"),
    "retry": gettext_noop("put this run back to work"),
    "health": gettext_noop("see the health page"),
    "drain": gettext_noop("stop all work"),
    "withdraw": gettext_noop("withdraw this request"),
    "open_case": gettext_noop("open a case"),
    "audit": gettext_noop("read the audit trail"),
    "inbox": gettext_noop("see the inbox"),
    "support": gettext_noop("see the cases"),
    "runs": gettext_noop("see the runs"),
    "undo": gettext_noop("take this decision back"),
    "see_agents": gettext_noop("see how the agents are set up"),
    "set_up": gettext_noop("set up agents"),
}


def right(name: str) -> str:
    """The right that was missing, as in "You may not …"."""
    return _(RIGHTS[name]) if name in RIGHTS else name


def run_state(run: Run, last: ApprovalRequest | None = None, *, decided: bool = False) -> str:
    """`last`: what it asked last; a run whose last call did not run is not simply done."""
    if run.is_open and run.cancel_reason is not None:
        return _("Stopping")
    if decided:
        return _("Decided")
    state = str(run.get_status_display())
    if run.status != RunStatus.SUCCESS or last is None or not ran_not(last):
        return state
    return _("%(state)s · %(outcome)s") % {"state": state, "outcome": outcome(last)}


def waits_for_sending(decision: Decision) -> str:
    """What a decision leads to when the time to undo it is over; the countdown stands for "%(time)s"."""
    match decision.type:
        case DecisionType.APPROVE | DecisionType.EDIT:
            return _("Runs in %(time)s.")
        case DecisionType.RESPOND:
            return _("The agent gets it in %(time)s.")
    return _("The agent is told in %(time)s.")


def sent(decision: Decision) -> str:
    """The same when the time is over."""
    match decision.type:
        case DecisionType.APPROVE | DecisionType.EDIT:
            return _("On its way.")
        case DecisionType.RESPOND:
            return _("The agent has it.")
    return _("The agent is told.")


def unasked(tool: str, args: Any) -> str:
    """A call that ran without a person, because the rule did not ask for one."""
    return _("%(call)s was within the rule: nobody was asked.") % {"call": call(tool, args)}


# What services answer in English; pages say it through gettext. Sentences with values in them are said before the call.
SAID_BY_SERVICES = (
    gettext_noop("Too early: an answer of the provider may still arrive. Look again in a moment."),
    gettext_noop("This may have happened already and cannot be withdrawn: say what you found instead."),
    gettext_noop("The run has ended already."),
    gettext_noop("Only a parked run can be put back to work."),
    gettext_noop("This agent has no published version."),
    gettext_noop("Remove the NUL character."),
)

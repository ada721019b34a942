"""English is the source; Simplified Chinese is complete, and the compiled catalogue is the one of the text."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from approvals import dispatch
from tests import factories
from tests.pages.conftest import text

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("locale_messages", ROOT / "locale" / "messages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_message_is_translated(tool):
    assert tool.untranslated(tool.read()) == [], (
        "run `python locale/messages.py`, then translate what is empty"
    )


def test_no_message_is_left_over(tool):
    known = {m.id if isinstance(m.id, str) else tuple(m.id) for m in tool.read() if m.id}
    assert known - tool.messages() == set(), "run `python locale/messages.py`"


def test_the_compiled_catalogue_is_up_to_date(tool):
    assert tool.CATALOGUE.with_suffix(".mo").read_bytes() == tool.compiled(tool.read()), (
        "run `python locale/messages.py`"
    )


def test_placeholders_survive(tool):
    places = re.compile(r"%\(\w+\)s|\{\w+\}|<[^>]+>")
    for message in tool.read():
        if message.id:
            source = message.id if isinstance(message.id, str) else message.id[0]
            target = message.string if isinstance(message.string, str) else message.string[0]
            assert sorted(places.findall(source)) == sorted(places.findall(target)), source


ALLOWED = {
    "Counterseal", "A", "CNY", "RP", "JSON", "JSONL", "CSV", "UTC", "Ctrl", "K", "J", "E", "R", "Z", "N", "G", "I", "S", "Esc", "API",
}  # fmt: skip


def test_pages_hold_no_english_for_a_chinese_reader(rita, sam, ada, monkeypatch):
    monkeypatch.setattr(dispatch, "_put", lambda hint: None)
    request = factories.make_request(factories.make_case(sam.user, message="请退款"))
    factories.decide(
        factories.make_request(factories.make_case(sam.user, message="请退款")), "reject", message="不行"
    )
    pages = [
        (rita, ["/inbox/", "/inbox/?queue=done", f"/inbox/{request.pk}/", f"/inbox/{request.pk}/?mode=edit",
                f"/inbox/{request.pk}/?mode=reject", "/nope/", "/audit/"]),
        (sam, ["/support/", "/support/new/", f"/support/{request.thread_id}/", f"/runs/{request.run_id}/", "/runs/", "/me/"]),
        (ada, ["/audit/?what=request.asked"]),
    ]  # fmt: skip
    ours = {
        "Refund",
        "agent",
        "rita",
        "chen",
        "sam",
        "ada",
        "Rita",
        "Gupta",
        "Sam",
        "Ortiz",
        "Chen",
        "Yu",
        "arrived",
        "broken",
    }
    codes = {"issue_refund", "order_id", "amount", "currency", "reason", "customer_note", "cases", "read", "decide",
             "English", "Deutsch", "Français", "Español", "Português", "audit", "admin", "CN", "v1"}  # fmt: skip
    for person, paths in pages:
        for path in paths:
            sent = person.client.get(path, headers={"Accept-Language": "zh-CN"})
            body = sent.content.decode().partition("<body")[2]
            body = re.sub(r'<option value="[A-Z][A-Za-z_]+/[^"]*">[^<]*</option>', "", body)  # time zones
            body = re.sub(r"<code.*?</code>|<pre.*?</pre>", "", body, flags=re.S)
            sent.content = f"<body{body}".encode()
            words = set(re.findall(r"[A-Za-zç-ñê]{3,}\w*", text(sent))) - ALLOWED - ours - codes
            words = {word for word in words if not re.fullmatch(r"[0-9a-f]{3,}", word)}
            assert words <= {"Counterseal"}, (path, words)

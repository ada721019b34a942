"""Text of models, customers and tools: whole, readable, and never markup. In every field it can be in."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.db import transaction

from agents.contracts import Message, ToolCall
from approvals.services import runs, steps
from tests import factories
from tests.pages.conftest import text

PAYLOADS = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "[x](javascript:alert(1))",
    '"><svg/onload=alert(1)>',
    "{{7*7}} {% load static %}",
    '" hx-get="/x" hx-trigger="load"',
    "</textarea></template><b>",
    "'><a href=javascript:alert(1)>",
]


class Markup(HTMLParser):
    """What a browser would do with a page: elements and attributes."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def assert_harmless(sent, payload: str) -> None:
    assert sent.status_code in (200, 409, 422)
    page = Markup(sent.content.decode())
    assert payload in text(sent)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [
        value
        for name, value in page.attributes
        if name in ("href", "src", "action") and "javascript" in value
    ]
    assert not [value for name, value in page.attributes if name == "hx-get" and value == "/x"]
    assert "style" not in page.elements
    assert page.elements.count("script") <= 2


@pytest.mark.parametrize("payload", PAYLOADS)
def test_markup_is_text_everywhere(rita, sam, ada, chen, payload):
    case = {"customer_name": payload, "order_id": payload[:80], "title": payload, "language": ""}
    run = factories.make_case(sam.user, message=payload, **case)
    call = ToolCall("call-1", "lookup_order", {"order_id": payload})
    with transaction.atomic():
        steps.record(run=run, messages=[
            Message(id="ai-1", role="ai", text=payload, tool_calls=(call,)),
            Message(id="tool-1", role="tool", text=payload, tool="lookup_order", tool_call_id="call-1"),
        ])  # fmt: skip
    args = {**factories.REFUND, "reason": payload, "customer_note": payload}
    request = factories.make_request(run, args=args)
    for path in ("", "?mode=edit", "?mode=reject"):
        assert_harmless(rita.get(f"/inbox/{request.pk}/{path}"), payload)
    assert_harmless(rita.get("/inbox/?queue=team"), payload[:40])
    assert_harmless(rita.decide(request, "edit", message=payload, **{"args/amount": payload}), payload)
    assert_harmless(sam.get(f"/support/{run.thread_id}/"), payload)
    assert_harmless(sam.get(f"/support/{run.thread_id}/?part=log", htmx=True), payload)
    assert_harmless(sam.get(f"/runs/{run.pk}/"), payload)
    chen.decide(request, "reject", message=payload)
    assert_harmless(rita.decide(request, "reject", message=payload), payload)
    assert_harmless(rita.get(f"/inbox/{request.pk}/"), payload)
    assert_harmless(rita.get("/inbox/?queue=done"), payload)
    assert_harmless(ada.get("/audit/"), payload)
    from approvals.models import AuditEvent

    for event in AuditEvent.objects.filter(action__in=["case.opened", "request.rejected"]):
        assert_harmless(ada.get(f"/audit/{event.pk}/"), payload)
    claimed = runs.claim_next(thread_pk=run.thread_id)
    runs.finish(
        run=claimed, fence=claimed.thread.fence, status="error", note=payload, answer=payload, usage={}
    )
    assert_harmless(sam.get(f"/support/{run.thread_id}/"), payload)
    assert_harmless(sam.get(f"/support/?q={payload[:5]}"), payload[:5])


CHINESE = {"order_id": "订单一号", "amount": 1280, "currency": "CNY", "reason": "退款给👩‍👩‍👧，理由：迟到"}


def test_chinese_and_emoji_are_readable_in_fields_and_json(rita, sam, ada):
    run = factories.make_case(sam.user, message="请退款订单一号 👩‍👩‍👧", customer_name="李伟")
    request = factories.make_request(run, args=CHINESE)
    shown = rita.get(f"/inbox/{request.pk}/")
    assert text(shown).count("退款给👩‍👩‍👧，理由：迟到") >= 2
    assert "\\u" not in text(shown)
    assert 'lang="zh"' in shown.content.decode()
    assert "danger" not in shown.content.decode()
    assert "请退款订单一号" in text(sam.get("/support/?q=订单一号"))
    assert "订单一号" in text(ada.get("/audit/?q=订单一号"))


HIDDEN = {
    "A1\u202e0051": "U+202E",
    "pay\u200bpal": "U+200B",
    "10\u00a0000": "U+00A0",
    "x\U000e0100": "U+E0100",
}


@pytest.mark.parametrize("value", HIDDEN)
def test_hidden_characters_are_spelled_out(rita, value):
    request = factories.make_request(args={**factories.REFUND, "reason": value})
    sent = rita.get(f"/inbox/{request.pk}/")
    assert f'<mark class="hid">⟨{HIDDEN[value]}⟩</mark>' in sent.content.decode()
    assert HIDDEN[value] in text(sent).partition("reason")[2]
    assert value not in text(sent).replace("⟨", "")


def test_words_that_mix_scripts_are_flagged(rita):
    request = factories.make_request(args={**factories.REFUND, "reason": "p\u0430ypal"})
    assert "Words that mix scripts" in text(rita.get(f"/inbox/{request.pk}/"))


def test_long_arguments_are_shown_whole(rita):
    note = "line of a very long note\n" * 800 + "order A-99999"
    request = factories.make_request(args={**factories.REFUND, "customer_note": note})
    assert "order A-99999" in text(rita.get(f"/inbox/{request.pk}/"))

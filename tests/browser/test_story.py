"""What people live through, in two or three browsers at once."""

from __future__ import annotations

import pytest

from approvals.models import ApprovalRequest
from tests.services import wait_until

pytestmark = pytest.mark.browser

DEAF = (
    "window.WebSocket = class extends EventTarget { static OPEN = 1; readyState = 0; close() {} send() {} };"
)


def live(page):
    page.wait_for_selector("html[data-live=live]", state="attached")


def open_first(page, at_rest):
    page.click("#queue > li:first-child > a")
    page.wait_for_selector("#panel")
    at_rest(page)


def test_the_refund_case_end_to_end(desk, at_rest):
    rita = desk.sign_in("rita")
    live(rita)
    assert rita.url.endswith("/inbox/")
    sam = desk.sign_in("sam", "/support/new/")
    sam.fill("[name=message]", "Please refund order A-20931 in full, the lamp arrived broken.")
    sam.fill("[name=customer_name]", "李伟")
    sam.click("text=Start the agent")
    sam.wait_for_selector(".waitcard:has-text('Waiting for a reviewer')")
    assert "Refund CN¥1,280.00" in sam.inner_text(".waitcard")

    row = rita.wait_for_selector("#queue > li > a:has-text('Refund CN¥1,280.00')")  # by itself
    assert rita.title() == "(1) Inbox · Counterseal"
    assert rita.inner_text(".nav [data-badge=mine]") == "1"
    row.click()
    rita.wait_for_selector("#panel")
    at_rest(rita)
    assert "Nothing has been refunded for this order" in rita.inner_text(".checks")
    rita.keyboard.press("Control+Enter")
    rita.wait_for_selector(".dbar .sent:has-text('Approved: CN¥1,280.00.')")
    assert rita.evaluate("document.activeElement.classList.contains('sent')")

    rita.wait_for_selector("#run-card .chip:has-text('Done')")
    sam.wait_for_selector(".closedcard:has-text('It went through')")
    sam.wait_for_selector(".msg.agent p:has-text('1,280.00')")
    assert desk.effects("A-20931") == ["1280.00"]

    ada = desk.sign_in("ada", "/audit/?what=execution.succeeded")
    ada.click(".trail .when a")
    ada.wait_for_selector("#detail h1:has-text('The call went through')")
    assert ada.url.count("/audit/") == 1
    assert "Approved" in ada.inner_text("#detail .tl")


def test_an_edit_is_what_runs_and_a_draft_survives_a_reload(desk, at_rest):
    request = desk.waiting("A-20925", "1500")
    rita = desk.sign_in("rita", f"/inbox/{request.pk}/")
    rita.wait_for_selector("#panel")
    at_rest(rita)
    rita.keyboard.press("e")
    rita.wait_for_selector("#f-args-amount")
    with rita.expect_response("**/draft/") as saved:
        rita.fill("#f-args-amount", "1234")
    assert saved.value.status == 204
    rita.reload()
    at_rest(rita)
    rita.click("text=Continue your edit")
    rita.wait_for_selector("#f-args-amount")
    assert rita.input_value("#f-args-amount") == "1234"
    at_rest(rita)

    rita.press("#f-args-amount", "Enter")  # decides nothing
    rita.fill("#f-args-amount", "99999")
    rita.keyboard.press("Control+Enter")
    rita.wait_for_selector("#f-args-amount-error")
    assert rita.input_value("#f-args-amount") == "99999"
    at_rest(rita)
    rita.fill("#f-args-amount", "1000.50")
    assert rita.inner_text("[data-changed]") == "1"
    rita.keyboard.press("Control+Enter")
    rita.wait_for_selector(".dbar .sent:has-text('CN¥1,000.50')")
    wait_until(lambda: desk.effects("A-20925") == ["1000.50"], saying="the edit did not run")


def test_a_rejection_reaches_the_case(desk, at_rest):
    request = desk.waiting()
    sam = desk.sign_in("sam", f"/support/{request.thread_id}/")
    rita = desk.sign_in("rita", f"/inbox/{request.pk}/")
    at_rest(rita)
    rita.keyboard.press("r")
    rita.wait_for_selector("#message")
    at_rest(rita)
    rita.click("[data-decide]:visible")
    rita.wait_for_selector("#message-error")
    at_rest(rita)
    rita.check("#preset-done")
    rita.fill("#message", "RMA-771")
    rita.click("[data-decide]:visible")
    rita.wait_for_selector(".dbar .sent")
    sam.wait_for_selector(".closedcard:has-text('RMA-771')")
    sam.wait_for_selector(".tick .chip:has-text('Rejected')")
    assert desk.effects(request.args["order_id"]) == []


def test_undo_brings_it_back_everywhere(desk, at_rest):
    request = desk.waiting()
    rita, chen = desk.sign_in("rita"), desk.sign_in("chen")
    live(chen)
    chen.mouse.move(60, 300)
    open_first(rita, at_rest)
    rita.click("[data-decide]")
    ghost = f"#request-{request.pk}[data-gone]"
    chen.wait_for_selector(ghost)
    rita.keyboard.press("z")
    rita.wait_for_selector("[data-decide]:visible")
    chen.wait_for_selector(f"#request-{request.pk}:not([data-gone])")
    request.refresh_from_db()
    assert (request.status, request.rev) == ("pending", 3)


def test_a_nudge_takes_the_buttons_away_and_leaves_the_edit_alone(desk, at_rest):
    request = desk.waiting()
    rita, chen = (desk.sign_in(name, f"/inbox/{request.pk}/") for name in ("rita", "chen"))
    live(rita)
    at_rest(rita)
    rita.keyboard.press("e")
    rita.wait_for_selector("#f-args-customer_note")
    rita.fill("#f-args-customer_note", "您好，已登记")
    rita.focus("#f-args-customer_note")
    at_rest(chen)
    chen.click("[data-decide]")
    rita.wait_for_selector("#notice [data-closed]")
    assert rita.input_value("#f-args-customer_note") == "您好，已登记"
    assert rita.evaluate("document.activeElement.id") == "f-args-customer_note"
    assert not rita.is_visible("[data-decide]")
    assert "Chen Test approved this." in rita.inner_text("#notice")


def test_a_form_that_is_opened_is_typed_in_next(desk, at_rest):
    """By mouse as by key; and the tab tells what waits, also beside an open request."""
    request = desk.waiting()
    rita = desk.sign_in("rita", f"/inbox/{request.pk}/")
    live(rita)
    assert rita.title().startswith("(1) Refund ")
    rita.click("[data-opens][data-key=e]")
    rita.wait_for_function("() => document.activeElement.id === 'f-args-amount'")
    rita.keyboard.press("Escape")
    rita.wait_for_function("() => document.activeElement.matches('#detail h1')")
    rita.keyboard.press("r")
    rita.wait_for_function("() => document.activeElement.id === 'message'")
    assert rita.title().startswith("(1) Refund ")
    desk.waiting()
    rita.wait_for_function("() => document.title.startsWith('(2) Refund ')")


FETCH_AND_PRESS = """() => new Promise((done) => {
  const old = document.querySelector("#notice");
  let held = 0;
  addEventListener("decision:held", () => { held += 1; });
  const look = () => {
    if (document.querySelector("#notice") === old) { requestAnimationFrame(look); return; }
    document.querySelector("[data-decide]").click();
    done(held);
  };
  document.body.dispatchEvent(new CustomEvent("live:resync"));
  look();
})"""


def test_fetching_the_same_again_holds_no_press(desk, at_rest):
    """What a nudge brings after one's own act says nothing new: the next press counts at once."""
    request = desk.waiting()
    rita = desk.sign_in("rita", f"/inbox/{request.pk}/")
    live(rita)
    at_rest(rita)
    assert rita.evaluate(FETCH_AND_PRESS) == 0
    rita.wait_for_selector(".dbar .sent")


def test_without_a_socket_the_slower_person_gets_the_conflict(desk, at_rest):
    request = desk.waiting()
    rita = desk.sign_in("rita", f"/inbox/{request.pk}/", script=DEAF)
    chen = desk.sign_in("chen", f"/inbox/{request.pk}/")
    at_rest(rita)
    rita.keyboard.press("e")
    rita.wait_for_selector("#f-args-amount")
    rita.fill("#f-args-amount", "1100")
    at_rest(chen)
    chen.click("[data-decide]")
    chen.wait_for_selector(".dbar .sent")
    at_rest(rita)
    rita.click("[data-decide]:visible")
    rita.wait_for_selector(".lede.bad:has-text('Chen Test approved this.')")
    assert "1,100.00" in rita.inner_text("#kept")
    assert not rita.is_visible("[data-decide]")


def test_the_shop_drops_its_answer_and_a_person_says_what_happened(desk, at_rest):
    desk.fault("drop_after", times=1)
    try:
        run = desk.open_case("A-20877", "200")
        wait_until(lambda: run.requests.filter(kind="unknown_outcome").exists(), 60, "nobody was asked")
        sam = desk.sign_in("sam", f"/support/{run.thread_id}/")
        assert "Outcome unknown" in sam.inner_text(".waitcard.unk")
        rita = desk.sign_in("rita", "/inbox/?queue=unknown")
        open_first(rita, at_rest)
        assert "It may have happened or not." in rita.inner_text("#panel")
        rita.click("[data-decide]")
        rita.wait_for_selector(".err:has-text('Choose what you found.')")
        at_rest(rita)
        rita.check("#o-yes")
        rita.fill("#reference", "rf_found")
        rita.click("[data-decide]")
        rita.wait_for_selector("#notice:has-text('rf_found')")
        sam.wait_for_selector(".tick .chip:has-text('Done')")
        assert desk.effects("A-20877") == ["200.00"]
    finally:
        desk.fault("none")


def test_a_message_while_something_waits_is_queued_or_withdraws(desk):
    request = desk.waiting()
    sam = desk.sign_in("sam", f"/support/{request.thread_id}/")
    live(sam)
    sam.fill("#composer textarea", "ok do it")
    sam.keyboard.press("Control+Enter")
    sam.wait_for_selector(".msg.staff >> text=ok do it")
    assert sam.input_value("#composer textarea") == ""
    request.refresh_from_db()
    assert request.is_pending
    sam.check("[name=while_pending][value=withdraw]")
    sam.fill("#composer textarea", "forget it")
    sam.click("#composer .btn.primary")
    sam.wait_for_selector(".closedcard:has-text('Withdrawn')")
    wait_until(lambda: not ApprovalRequest.objects.filter(pk=request.pk, status="pending").exists())


def test_signed_out_while_typing_loses_nothing(desk, at_rest):
    request = desk.waiting()
    rita = desk.sign_in("rita", f"/inbox/{request.pk}/?mode=reject")
    at_rest(rita)
    rita.fill("#message", "not covered")
    rita.context.clear_cookies(name="sessionid")
    with rita.expect_response("**/decide/") as refused:
        rita.click("[data-decide]")
    assert refused.value.status == 401
    assert rita.input_value("#message") == "not covered"
    again = rita.context.new_page()
    again.goto("/login/")
    again.fill("#username", "rita")
    again.fill("#password", "counterseal")
    again.click("main button.primary")
    again.wait_for_url("**/inbox/")
    at_rest(rita)
    rita.click("[data-decide]")
    rita.wait_for_selector(".dbar .sent")


# --- layout and access ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [320, 390])
def test_nothing_scrolls_sideways_on_a_phone(desk, at_rest, width):
    request = desk.waiting()
    phone = {"viewport": {"width": width, "height": 844}, "has_touch": True, "is_mobile": True}
    rita, sam, ada = (desk.sign_in(name, "/me/", **phone) for name in ("rita", "sam", "ada"))
    pages = [
        (rita, ["/inbox/", f"/inbox/{request.pk}/", f"/inbox/{request.pk}/?mode=edit", f"/inbox/{request.pk}/?mode=reject", "/me/"]),
        (sam, ["/support/", "/support/new/", f"/support/{request.thread_id}/", f"/runs/{request.run_id}/", "/runs/"]),
        (ada, ["/audit/", "/audit/1/"]),
    ]  # fmt: skip
    for page, paths in pages:
        for path in paths:
            page.goto(path)
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
    rita.goto("/inbox/")
    assert not rita.is_visible("#detail")
    rita.click("#queue > li > a")
    rita.wait_for_selector("#panel:visible")
    assert not rita.is_visible("#queue")
    first = rita.locator(".dbar .btn:visible").evaluate_all(
        "buttons => buttons.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)[0].innerText"
    )
    assert first.startswith("Approve CN¥")
    rita.go_back()
    rita.wait_for_selector("#queue:visible")


def test_reading_and_deciding_without_javascript(desk):
    request = desk.waiting()
    rita = desk.chromium.new_context(base_url=desk.web.url, java_script_enabled=False).new_page()
    rita.goto("/login/")
    rita.fill("#username", "rita")
    rita.fill("#password", "counterseal")
    rita.click("main button.primary")
    rita.click("#queue > li > a")
    rita.click("label[for=v-json]")
    assert f'"amount": {request.args["amount"]}' in rita.inner_text(".as-json")
    rita.click("text=Reject")
    rita.click(".dbar button.solid-bad")
    assert rita.is_visible("#message-error")
    rita.fill("#message", "no")
    rita.click(".dbar button.solid-bad")
    assert "You rejected this." in rita.inner_text("#notice")
    rita.click("text=Undo")
    assert rita.is_visible("button:has-text('Approve CN¥')")
    request.refresh_from_db()
    assert request.is_pending
    rita.context.close()


def test_chinese_dark_and_keys(desk, at_rest):
    desk.waiting()
    rita = desk.sign_in("rita", locale="zh-CN", color_scheme="dark")
    live(rita)
    assert rita.inner_text(".live") == "实时 · 已是最新"
    rita.keyboard.press("?")
    rita.wait_for_selector("dialog[open]")
    rita.keyboard.press("Escape")
    rita.wait_for_selector("dialog:not([open])", state="attached")
    rita.keyboard.press("j")
    rita.wait_for_selector("#panel:has-text('批准')")
    at_rest(rita)
    rita.keyboard.press("e")
    rita.wait_for_selector("#f-args-reason")
    rita.focus("#f-args-reason")
    rita.keyboard.type("rez")
    assert "rez" in rita.input_value("#f-args-reason")

"""An administrator sets up an agent: with the mouse, with the keyboard, beside a colleague, without a script."""

from __future__ import annotations

import pytest

from approvals.models import AgentDraft, AgentVersion
from tests import factories
from tests.browser.conftest import real_hash
from tests.services import wait_until

pytestmark = pytest.mark.browser


def labels(page):
    """The list as it is read: "4 Human in the loop"."""
    rows = page.locator(".mw [data-n]").all()
    return [
        row.inner_text().split("\n")[0] + " " + row.locator("a").inner_text().split("\n")[0] for row in rows
    ]


def order(page):
    return [text.partition(" ")[2] for text in labels(page)]


def changed(page, act):
    """Do something that posts, and wait for the editor that comes back."""
    with page.expect_response(lambda answer: answer.request.method == "POST") as came:
        act()
    page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')")
    return came.value.status


def add(page, label):
    page.click("[data-dialog=catalogue]")
    page.wait_for_selector("#catalogue[open]")
    page.fill("#catalogue [type=search]", label)
    page.keyboard.press("Enter")  # only searches
    changed(page, lambda: page.click(f"#catalogue[open] button[aria-label='Add {label}']"))
    page.wait_for_selector(f".mw [aria-current] >> text={label}")


def save(page):
    return changed(page, lambda: page.keyboard.press("Control+Enter"))


def place_of(page, label):
    return order(page).index(label) + 1


def move(page, label, key, times=1):
    """By the keyboard, from wherever it stands."""
    at = place_of(page, label)
    page.focus(f"#mw-{at} [data-grip]")
    for _ in range(times):
        changed(page, lambda: page.keyboard.press(key))
        at += 1 if key == "ArrowDown" else -1
        page.wait_for_function("(id) => document.activeElement.closest('li')?.id === id", arg=f"mw-{at}")


def test_a_newcomer_makes_a_draft_reads_the_advice_publishes_and_the_next_case_uses_it(desk):
    ada = desk.sign_in("ada", "/agents/")
    ada.click("text=Refund agent")
    ada.click("text=Edit as draft")
    ada.wait_for_selector("text=Nothing differs from v1 yet.")
    assert ada.locator("#publish").is_disabled()

    # personal data, and summaries of long cases
    add(ada, "Personal data")
    ada.wait_for_selector("#pane-title:has-text('Personal data')")
    ada.fill("#f-o-pii_type", "nothing we know")
    assert save(ada) == 422
    assert "Small letters, digits and hyphens" in ada.inner_text("#f-o-pii_type-error")
    assert ada.input_value("#f-o-pii_type") == "nothing we know"
    ada.fill("#f-o-pii_type", "email")
    ada.select_option("#f-o-strategy", "hash")
    assert save(ada) == 200
    add(ada, "Summarization")
    assert "Personal data email" in order(ada)

    # a limit that asks: the old one goes, comes back by undo, goes again
    ada.click(".mw [data-n='1'] a")
    ada.wait_for_selector("#pane-title:has-text('Model call limit')")
    changed(ada, lambda: ada.click("#remove"))
    ada.wait_for_selector("text=No model_call_limit") if ada.locator(
        "text=No model_call_limit"
    ).count() else None
    assert "Model call limit" not in order(ada)
    changed(ada, lambda: ada.keyboard.press("z"))
    assert order(ada)[0] == "Model call limit"
    ada.click(".mw [data-n='1'] a")
    ada.wait_for_selector("#pane-title:has-text('Model call limit')")
    changed(ada, lambda: ada.click("#remove"))
    add(ada, "Model call limit")
    ada.fill("#f-o-run_limit", "1")
    ada.fill("#f-o-hard_cap", "20")
    assert ada.input_value("#f-o-on_limit") == "ask"
    assert save(ada) == 200

    # a wrong order: what is said, and what helps
    move(ada, "Personal data email", "ArrowDown")
    assert "Personal data (email) stands behind Summarization" in ada.inner_text("#scroll-middle")
    assert "It can be published" in ada.inner_text("#scroll-middle")
    move(ada, "Human in the loop", "ArrowDown")
    said = ada.inner_text("#scroll-middle")
    assert "this cannot be published" in said
    assert "Tool errors must stand behind Human in the loop in the list." in said
    assert ada.locator("#publish").is_disabled()
    changed(ada, lambda: ada.click(".said .error button"))
    changed(ada, lambda: ada.click(".said .warning button"))
    assert "Order looks right." in ada.inner_text("#scroll-middle")

    ada.click("text=Compare with v1")
    ada.wait_for_selector(".pairs .added:has-text('Summarization')")
    ada.go_back()
    ada.click("#publish")
    ada.wait_for_url("**/agents/refunds/")
    assert ada.inner_text(".versions tbody tr:first-child td:first-child").split() == ["v2", "in", "force"]
    v2 = AgentVersion.objects.get(number=2)
    assert v2.published_by == "Ada Test"
    assert not AgentDraft.objects.exists()

    run = desk.open_case(desk.fresh_order())
    wait_until(
        lambda: run.requests.filter(kind="limit", status="pending").exists(), saying="the limit did not ask"
    )
    run.refresh_from_db()
    assert run.version_id == v2.pk
    sam = desk.sign_in("sam", f"/support/{run.thread_id}/")
    sam.wait_for_selector(".waitcard:has-text('Continue past 1 model calls?')")


def test_entries_are_dragged_by_their_grip_and_set_by_number(desk):
    ada = desk.sign_in("ada", "/agents/refunds/")
    ada.click("text=Edit as draft")
    ada.wait_for_selector(".mw [data-n]")
    before = order(ada)
    start, end = (ada.locator(f"#mw-{n} [data-grip]").bounding_box() for n in (1, 3))
    ada.mouse.move(start["x"] + 8, start["y"] + 8)
    ada.mouse.down()
    ada.mouse.move(start["x"] + 8, start["y"] + 40, steps=3)
    ada.mouse.move(end["x"] + 8, end["y"] + end["height"] - 2, steps=5)
    changed(ada, ada.mouse.up)
    assert order(ada) == [before[1], before[2], before[0], *before[3:]]
    ada.click("#mw-3 a")
    ada.wait_for_selector("#pane-title:has-text('3')")
    ada.fill("#to", "1")
    changed(ada, lambda: ada.press("#to", "Enter"))
    assert order(ada) == before
    assert ada.inner_text("#pane-title").startswith("1")
    changed(ada, lambda: ada.click("#move-down"))
    assert ada.inner_text("#pane-title").startswith("2")


def test_two_administrators_at_one_draft_lose_nothing(desk):
    factories.make_user("eve", "administrators", first_name="Eve", last_name="Test", password=real_hash())
    ada = desk.sign_in("ada", "/agents/refunds/")
    ada.click("text=Edit as draft")
    ada.click("#mw-3 a")
    ada.wait_for_selector("#f-o-pii_type")
    eve = desk.sign_in("eve", "/agents/refunds/draft/?at=1")
    eve.wait_for_selector("#f-o-run_limit")
    ada.fill("#f-o-pii_type", "email")
    eve.fill("#f-o-run_limit", "30")
    assert save(eve) == 200
    ada.focus("#f-o-pii_type")
    assert save(ada) == 409
    assert "Eve Test changed this draft before you" in ada.inner_text("#scroll-middle")
    assert ada.input_value("#f-o-pii_type") == "email"
    assert AgentDraft.objects.get().spec["middleware"][2]["pii_type"] == "credit_card"
    assert save(ada) == 200
    listed = AgentDraft.objects.get().spec["middleware"]
    assert (listed[0]["run_limit"], listed[2]["pii_type"]) == (30, "email")


def test_what_is_typed_stays_while_the_list_is_changed_and_leaving_asks(desk):
    ada = desk.sign_in("ada", "/agents/refunds/")
    ada.click("text=Edit as draft")
    ada.click("#mw-3 a")
    ada.wait_for_selector("#f-o-pii_type")
    ada.fill("#f-o-pii_type", "email")
    move(ada, "Tool call limit issue_refund", "ArrowUp")
    assert ada.input_value("#f-o-pii_type") == "email"
    asked = []
    ada.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    ada.click("#mw-5 a")
    assert len(asked) == 1
    assert ada.input_value("#f-o-pii_type") == "email"


def test_it_works_without_a_script(desk):
    page = desk.sign_in("ada", "/agents/refunds/", java_script_enabled=False)
    desk.pages.remove(page)  # nothing to ask it at the end
    page.click("text=Edit as draft")
    page.click("#mw-4 a")
    page.click("#move-down")
    assert "this cannot be published" in page.inner_text("#scroll-middle")
    page.click(".said button")
    page.click("#mw-3 a")
    page.fill("#f-o-pii_type", "email")
    page.click("#save")
    page.click(".adder button[aria-label='Add Observer']")
    assert page.inner_text("#pane-title").endswith("Observer")
    page.click("#publish")
    assert "v2" in page.inner_text(".versions")
    spec = AgentVersion.objects.get(number=2).spec
    assert [one["use"] for one in spec["middleware"]][:4] == [
        "observer",
        "model_call_limit",
        "tool_call_limit",
        "pii",
    ]
    assert spec["middleware"][3]["pii_type"] == "email"
    page.context.close()

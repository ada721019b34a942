"""Every page against the rules of WCAG 2.2 AA, light and dark, at five widths; nothing scrolls sideways."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from approvals.actors import Actor
from approvals.models import User
from approvals.services import drafts

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """(rules) => axe.run(document, { runOnly: rules, resultTypes: ["violations"] }).then((found) =>
    found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(" ")} ${n.failureSummary}`)))"""
WIDTHS = (320, 390, 768, 1100, 1440)


@pytest.fixture
def pages(desk: Any) -> Iterator[list[tuple[Any, list[str]]]]:
    """(page of somebody, addresses)"""
    request = desk.waiting()
    case, run, one = f"/support/{request.thread_id}/", f"/runs/{request.run_id}/", f"/inbox/{request.pk}/"
    drafts.begin(actor=Actor.of(User.objects.get(username="ada")), slug="refunds", number=1)
    rita, sam, ada = (desk.sign_in(name, "/me/") for name in ("rita", "sam", "ada"))
    stranger = desk.chromium.new_context(base_url=desk.web.url).new_page()
    yield [
        (stranger, ["/login/", "/inbox/"]),
        (rita, ["/inbox/", one, f"{one}?mode=edit", f"{one}?mode=reject", "/inbox/?queue=done", "/me/", "/nowhere/"]),
        (sam, ["/support/", "/support/new/", case, "/runs/", run, "/audit/"]),
        (ada, ["/audit/", "/audit/1/", "/health/", "/agents/", "/agents/new/", "/agents/refunds/", "/agents/refunds/v1/",
               "/agents/refunds/draft/", "/agents/refunds/draft/?at=4", "/agents/refunds/compare/?a=v1&b=draft"]),
    ]  # fmt: skip
    stranger.context.close()


def test_every_page_keeps_the_rules(pages):
    found = {
        f"{path} {scheme} {width}": problems
        for page, paths in pages
        for path in paths
        for scheme, width, problems in looked_at(page, path)
        if problems
    }
    assert found == {}


def looked_at(page: Any, path: str) -> Iterator[tuple[str, int, list[str]]]:
    """Each colour scheme in a page of its own: while the colours change from one to the other, neither is there."""
    for scheme, widths in (("light", WIDTHS), ("dark", (WIDTHS[0], WIDTHS[-1]))):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": widths[0], "height": 900})
        page.goto(path)
        page.evaluate(AXE)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            yield scheme, width, ([f"{wide} px too wide"] if wide > 0 else []) + page.evaluate(RUN, RULES)

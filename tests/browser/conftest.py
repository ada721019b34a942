"""The story in real browsers: one worker, one shop, one web process, all against the test database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import httpx
import pytest
from django.db import connection

from approvals.models import ApprovalRequest, EventCounter, User
from approvals.services import cases
from tests import factories
from tests.services import Shop, Web, Worker, chromium_path, current_database_url, wait_until

WATCH = """
window.violations = [];
addEventListener("securitypolicyviolation", (e) => violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}`));
"""
EXPECTED = (
    "Status Error Code 401",
    "status of 401",
    "status of 403",
    "status of 404",
    "status of 409",
    "status of 422",
)
STORY_ORDERS = ("A-20931", "A-20925", "A-20877", "A-20455")
SETTLE = 400  # DecisionPanel.SETTLE


@cache
def real_hash() -> str:
    """As the web process makes and checks it; the tests around it use a quicker kind."""
    from django.contrib.auth.hashers import PBKDF2PasswordHasher

    return str(PBKDF2PasswordHasher().encode(factories.PASSWORD, "salt-of-the-tests"))


@pytest.fixture(scope="module")
def chromium(servers: Any) -> Iterator[Any]:
    """Playwright keeps an event loop in this thread, which Django takes for a mistake; only while the browser runs."""
    from playwright.sync_api import sync_playwright

    with pytest.MonkeyPatch.context() as environment, sync_playwright() as playwright:
        environment.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        launched = playwright.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield launched
        launched.close()


class Desk:
    """People at their browsers. No page may break the policy or throw."""

    def __init__(self, web: Web, shop: Shop, chromium: Any) -> None:
        self.web, self.shop, self.chromium = web, shop, chromium
        self.pages: list[Any] = []
        self.shop_used: list[str] = shop.__dict__.setdefault("used", [])

    def sign_in(self, username: str, path: str = "/", *, script: str = "", **context: Any) -> Any:
        options = {"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", **context}
        page = self.chromium.new_context(base_url=self.web.url, **options).new_page()
        page.set_default_timeout(20_000)
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)
        page.add_init_script(WATCH + script)
        page.goto(f"/login/?next={path}")
        page.fill("#username", username)
        page.fill("#password", factories.PASSWORD)
        page.click("main button.primary")
        page.wait_for_url(lambda url: "/login/" not in url)
        self.pages.append(page)
        return page

    def open_case(self, order_id: str, amount: str = "", by: str = "sam") -> Any:
        from approvals.actors import Actor

        wanted = f"refund {amount} of order {order_id}" if amount else f"refund order {order_id} in full"
        case = cases.NewCase(
            agent="refunds", message=f"Please {wanted}, it arrived broken.", order_id=order_id
        )
        return cases.open_case(actor=Actor.of(User.objects.get(username=by)), case=case).run

    def fresh_order(self) -> str:
        """An order of over 1,200 CNY that no other test has touched: the shop lives as long as the module."""
        items = httpx.get(f"{self.shop.url}/orders", params={"limit": 500}).json()["items"]
        for item in items:
            whole = item["currency"] == "CNY" and float(item["refundable"]) == float(item["captured"]) > 1200
            if whole and item["status"] == "delivered" and item["id"] not in (*STORY_ORDERS, *self.shop_used):
                self.shop_used.append(item["id"])
                return str(item["id"])
        raise AssertionError("no order is left")

    def waiting(self, order_id: str = "", amount: str = "") -> ApprovalRequest:
        """A request that waits, made by the real agent."""
        run = self.open_case(order_id or self.fresh_order(), amount)
        wait_until(lambda: run.requests.filter(status="pending").exists(), saying="nothing was asked")
        return run.requests.get()

    def effects(self, order_id: str) -> list[str]:
        items = httpx.get(f"{self.shop.url}/effects", params={"order": order_id}).json()["items"]
        return [item["amount"] for item in items]

    def fault(self, mode: str, **more: Any) -> None:
        httpx.post(f"{self.shop.url}/faults", json={"mode": mode, **more}).raise_for_status()

    def close(self) -> None:
        for page in self.pages:
            problems = [text for text in page.problems if not any(part in text for part in EXPECTED)]
            violations = page.evaluate("window.violations")
            page.context.close()
            assert problems == []
            assert violations == []


@pytest.fixture(scope="module")
def servers(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[Web, Shop]]:
    from agents.checkpointing import set_up

    with django_db_blocker.unblock():
        url = current_database_url()
        set_up(url)
        connection.close()
    shop = Shop()
    env = {"COUNTERSEAL_SHOP_URL": shop.url}
    worker = Worker(url, env=env)
    web = Web(url, env=env)
    worker.wait_ready()
    yield web, shop
    for process in (web, worker, shop):
        process.stop()


@pytest.fixture
def desk(transactional_db: None, servers: tuple[Web, Shop], chromium: Any) -> Iterator[Desk]:
    web, shop = servers
    EventCounter.objects.get_or_create(pk=1)
    for username, group in (
        ("rita", "refund-reviewers"),
        ("chen", "refund-reviewers"),
        ("sam", "support"),
        ("ada", "administrators"),
    ):
        factories.make_user(
            username, group, first_name=username.title(), last_name="Test", password=real_hash()
        )
    from agents.catalogue import shipped_specs
    from approvals.actors import SYSTEM
    from approvals.services import agents

    agents.publish(actor=SYSTEM, spec=shipped_specs()[0])
    together = Desk(web, shop, chromium)
    yield together
    together.close()


@pytest.fixture
def at_rest() -> Callable[[Any], None]:
    """Wait until a press counts: the pane has not been swapped for a moment."""

    def wait(page: Any) -> None:
        page.wait_for_function(
            """(settle) => new Promise((done) => {
                 let last = performance.now();
                 const panel = document.querySelector("#panel");
                 const seen = new MutationObserver(() => { last = performance.now(); });
                 seen.observe(panel, { childList: true, subtree: false });
                 for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap"]) panel.addEventListener(name, () => { last = performance.now(); });
                 const look = () => performance.now() - last > settle ? done(true) : requestAnimationFrame(look);
                 look();
               })""",
            arg=SETTLE + 50,
        )

    return wait

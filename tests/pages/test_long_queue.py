"""A queue that is longer than a page: what is due first is listed, everything on demand, and no row asks the database."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import queries
from tests import factories
from tests.bench import volume
from tests.pages.conftest import text


def rows(sent):
    return sent.content.count(b'<li id="request-')


def test_what_is_due_first_is_listed_and_the_rest_on_demand(rita):
    volume.fill(0, queries.PAGE + 20)
    page = rita.get("/inbox/")
    assert (rows(page), "List all" in text(page)) == (queries.PAGE, True)
    everything = rita.get("/inbox/?queue=mine&all=1")
    assert (rows(everything), "List all" in text(everything)) == (queries.PAGE + 21, False)
    assert b'hx-get="/inbox/?queue=mine&amp;all=1"' in everything.content, (
        "and stays so when it is fetched again"
    )
    fetched = rita.get("/inbox/?queue=mine", htmx=True)
    assert b'<div id="cut" hx-swap-oob="true">' in fetched.content


def test_a_short_queue_is_listed_whole(rita):
    factories.make_request()
    assert "List all" not in text(rita.get("/inbox/"))


def test_the_number_of_queries_does_not_depend_on_the_number_of_rows(rita):
    def asked():
        with CaptureQueriesContext(connection) as seen:
            rita.get("/inbox/")
        return len(seen)

    factories.make_request()
    one = asked()
    volume.fill(0, 30)
    assert asked() == one

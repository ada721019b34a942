"""Log lines: one JSON object each if wanted, and never what a gated tool was called with."""

from __future__ import annotations

import json
import logging

import pytest
from pydantic import BaseModel, ValidationError

from config import env, logs
from tests.engine.conftest import call
from tests.services import wait_until

CANARY = "canary-7f3a9c"


class Amount(BaseModel):
    amount: int


def logged(formatter):
    try:
        try:
            Amount.model_validate({"amount": CANARY})
        except ValidationError as error:
            raise RuntimeError(CANARY) from error
    except RuntimeError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("counterseal.worker", logging.ERROR, __file__, 1, "drive %s", ("t1",), info)
    record.thread_id = "t1"
    return formatter.format(record)


def test_json_lines_name_the_exception_but_not_what_it_says(settings):
    line = logged(logs.Json())
    assert "\n" not in line
    said = json.loads(line)
    assert (said["level"], said["message"], said["thread_id"]) == ("ERROR", "drive t1", "t1")
    assert said["exception"].splitlines()[0] == "builtins.RuntimeError"
    assert "ValidationError" in said["exception"]
    assert CANARY not in line


def test_plain_lines_too_unless_debugging(settings):
    assert CANARY not in logged(logs.Discreet("{message}", style="{"))
    settings.DEBUG = True
    assert CANARY in logged(logs.Discreet("{message}", style="{"))


def test_an_unknown_format_is_refused(monkeypatch):
    monkeypatch.setenv("COUNTERSEAL_LOG_FORMAT", "xml")
    with pytest.raises(
        env.BadSetting, match="COUNTERSEAL_LOG_FORMAT='xml' is not known: set it to plain or json"
    ):
        env.choice("COUNTERSEAL_LOG_FORMAT", "plain", "json")


def test_a_worker_writes_no_argument_of_a_gated_call(office):
    worker = office.hire(
        env={"COUNTERSEAL_LOG_FORMAT": "json", "COUNTERSEAL_LOG_LEVEL": "DEBUG"}
    ).wait_ready()
    wanted = {"order_id": "A-20877", "amount": 1240, "currency": "CNY", "reason": CANARY}
    run = office.open({"calls": [call("issue_refund", **wanted)]}, {"raise": f"the model said {CANARY}"})
    office.decide(office.request(run), "approve")
    wait_until(lambda: run.refresh_from_db() or CANARY in run.last_error, 60, "the failure was not noted")
    wait_until(lambda: "exception" in worker.output(), 10, "the failure was not logged")
    written = worker.log.read_text()
    assert CANARY not in written
    lines = [json.loads(line) for line in written.splitlines()]
    ours = [line for line in lines if line.get("thread_id") == str(run.thread_id)]
    assert {"interrupted"} <= {line.get("outcome") for line in ours}

"""The worker's own parts: what fails in one of them ends neither it nor the others."""

import logging
from pathlib import Path

import pytest

import clearance
from clearance import worker
from clearance.store import audit
from tests.web.asked import ask
from tests.web.talking import until


def test_a_part_that_fails_once_is_told_of_and_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "REST_AFTER_A_BUG", 0.01)
    with clearance.open(home=tmp_path, person="ann", worker=False) as opened:
        sweep, swept = opened.gate.sweep, []

        def broken_at_first() -> int:
            swept.append(sweep())
            if len(swept) == 1:
                raise LookupError("a row that nobody expected")
            return swept[-1]

        monkeypatch.setattr(opened.gate, "sweep", broken_at_first)
        opened.worker.start()
        until(lambda: len(swept) >= 2)
        ask(opened)

        def numbered() -> bool:
            with opened.database.read() as tx:
                return audit.last_seq(tx) > 0 and not audit.standing(tx).waiting

        until(numbered)
    [said] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert said.getMessage() == "the sweep failed: LookupError"

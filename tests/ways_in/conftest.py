"""What the tests of the ways in share: a desk of their own, and an environment that says nothing."""

import os
from pathlib import Path

import pytest

from tests.ways_in.desk import Desk


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("CLEARANCE_") and name != "CLEARANCE_TEST_POSTGRES":
            monkeypatch.delenv(name)
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A workspace folder of the test's own, empty at first."""
    return Desk(tmp_path / "workspace")

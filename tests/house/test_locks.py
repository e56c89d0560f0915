"""The locks name every package by version and hash, and no place to load it from."""

import re
from pathlib import Path

import pytest

from tests.house.sources import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")
PIN = re.compile(r"[a-z0-9][a-z0-9-]*(\[[a-z0-9,-]+\])?==[^\s;]+")


def _entries(lock: Path) -> list[str]:
    """Return each package's entry as one line, with its hashes, without comments."""
    lines = [line for line in lock.read_text().splitlines() if not line.lstrip().startswith("#")]
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def _pins(lock: Path) -> set[str]:
    return {entry.partition("--hash")[0].strip() for entry in _entries(lock)}


def test_there_is_a_lock_for_running_for_developing_and_for_the_installer() -> None:
    assert [lock.name for lock in LOCKS] == ["dev.txt", "runtime.txt", "uv.txt"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_holds_no_address(lock: Path) -> None:
    assert "://" not in lock.read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_entry_is_one_version_with_hashes(lock: Path) -> None:
    faulty = [entry for entry in _entries(lock) if not (PIN.match(entry) and HASH.search(entry))]
    assert _entries(lock)
    assert not faulty, faulty


def test_developing_and_running_use_the_same_versions() -> None:
    runtime, dev = ROOT / "requirements" / "runtime.txt", ROOT / "requirements" / "dev.txt"
    assert _pins(runtime) <= _pins(dev)

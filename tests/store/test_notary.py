"""The notary numbers and seals what the others write; its key is made once and is nobody else's."""

import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from clearance.audit import AuditKind, Seal, public_keys
from clearance.errors import SettingsError, StoreError
from clearance.notary import Notary, SigningKey, published_keys
from clearance.proof import Report, verify
from clearance.store import audit
from clearance.store.database import Database
from clearance.store.trail import trail
from tests.rules.trails import NOTARY
from tests.store.writers import keys_of_processes, repeating, write_from_threads, write_one


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the instant."""
        return self.now

    def goes(self, **by: float) -> None:
        """Go on, or back."""
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    """The database's clock."""
    return Clock()


@pytest.fixture
def database(migrated_database_url: str, clock: Clock) -> Iterator[Database]:
    """A database with the product's tables."""
    opened = Database(migrated_database_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    """A new key."""
    return SigningKey.load_or_create(tmp_path / "keys" / "notary.key")


@pytest.fixture
def notary(database: Database, key: SigningKey) -> Notary:
    """A notary that has just started."""
    return Notary(database, key)


def _check(database: Database, pem: bytes) -> Report:
    stored = trail(database)
    return verify(stored.entries, stored.seals, public_key=pem, extent=stored.extent)


def _seals(database: Database) -> list[Seal]:
    with database.read() as tx:
        return audit.read_seals(tx, 0, limit=100)


# --- numbering and sealing ---


def test_a_turn_numbers_what_waits_and_seals_it(database: Database, notary: Notary, key: SigningKey) -> None:
    write_one(database, "run-1", parts=3)
    assert notary.turn() == 3
    report = _check(database, key.public_pem)
    assert report.authenticated
    assert (report.sealed_to, report.unsealed) == (3, 0)


def test_a_turn_with_nothing_to_do_does_not_wait_for_writers(database: Database, notary: Notary) -> None:
    with database.write() as tx:
        audit.write(tx, AuditKind.CALL_HELD, "run-1", actor="ann", now=database.now(tx))
        assert notary.turn() == 0


def test_the_notary_seals_no_more_often_than_every_second(
    database: Database, notary: Notary, clock: Clock
) -> None:
    ends = []
    for _ in range(9):
        write_one(database, "run-1")
        notary.turn()
        ends.append(len(_seals(database)))
        clock.goes(milliseconds=300)
    assert ends == [1, 1, 1, 1, 2, 2, 2, 2, 3]


def test_two_notaries_seal_no_more_often_than_one(database: Database, key: SigningKey, clock: Clock) -> None:
    notaries = [Notary(database, key), Notary(database, key)]
    for _ in range(4):
        for notary in notaries:
            write_one(database, "run-1")
            notary.turn()
        clock.goes(milliseconds=500)
    assert len(_seals(database)) == 2


def test_what_was_numbered_is_sealed_when_its_time_has_come_though_nothing_new_is_written(
    database: Database, notary: Notary, clock: Clock
) -> None:
    for _ in range(2):
        write_one(database, "run-1")
        notary.turn()
    assert [seal.last_seq for seal in _seals(database)] == [1]
    clock.goes(seconds=1)
    assert notary.turn() == 0
    assert [seal.last_seq for seal in _seals(database)] == [1, 2]


def test_a_clock_that_was_set_back_does_not_stop_the_sealing(
    database: Database, notary: Notary, clock: Clock
) -> None:
    for _ in range(2):
        write_one(database, "run-1")
        notary.turn()
        clock.goes(hours=-1)
    assert len(_seals(database)) == 2


def test_sealing_now_leaves_nothing_unsealed(database: Database, notary: Notary, key: SigningKey) -> None:
    notary.turn()
    write_one(database, "run-1", parts=audit.SEAL_AT_ONCE + audit.NUMBER_AT_ONCE + 1)
    last = notary.seal_now()
    assert last is not None
    assert (last.number, last.last_seq) == (2, audit.SEAL_AT_ONCE + audit.NUMBER_AT_ONCE + 1)
    assert notary.seal_now() is None
    assert _check(database, key.public_pem).authenticated


def test_an_entry_of_a_transaction_that_took_very_long_is_numbered_later(
    database: Database, notary: Notary, clock: Clock
) -> None:
    notary.turn()
    clock.goes(seconds=1)
    with database.write() as tx:
        audit.write(tx, AuditKind.CALL_HELD, "run-1", actor="ann", now=clock.now - timedelta(hours=1))
    assert notary.turn() == 0
    clock.goes(seconds=10)
    assert notary.turn() == 1


def test_everything_is_sealed_while_sixteen_threads_write(
    migrated_database_url: str, key: SigningKey
) -> None:
    database = Database(migrated_database_url)
    notaries = [Notary(database, key, seal_every=timedelta(milliseconds=20)) for _ in range(2)]
    rounds = 0
    with repeating(notaries[0].turn), repeating(notaries[1].turn):
        # On a busy machine all may be written before a notary comes to its second turn.
        while len(_seals(database)) < 2 and rounds < 50:
            rounds += 1
            write_from_threads(migrated_database_url, f"threads-{rounds}", 16, 8)
    sealed_meanwhile = len(_seals(database))
    notaries[0].seal_now()
    report = _check(database, key.public_pem)
    assert report.authenticated, report.problems
    assert report.sealed_to == rounds * 16 * 8 * 2
    assert sealed_meanwhile > 1
    database.close()


def test_a_notary_that_runs_notices_when_its_last_seal_is_gone(
    database: Database, notary: Notary, key: SigningKey
) -> None:
    write_one(database, "run-1")
    notary.turn()
    with database.write() as tx:
        tx.execute(text("DELETE FROM seals"))
        tx.execute(text("UPDATE notary SET last_seal = 0"))
    with pytest.raises(StoreError, match="changed from outside"):
        notary.turn()
    Notary(database, key).turn()
    assert len(_seals(database)) == 1


# --- the key ---


def test_a_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notary.key"
    made, loaded = SigningKey.load_or_create(path), SigningKey.load_or_create(path)
    assert made.key_id == loaded.key_id
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in path.parent.iterdir()) == ["notary.key", "notary.pub"]


def test_the_public_key_lies_beside_it(tmp_path: Path) -> None:
    made = SigningKey.load_or_create(tmp_path / "notary.key")
    public = (tmp_path / "notary.pub").read_bytes()
    assert public == made.public_pem
    assert public_keys(public) == {made.key_id: made.public}


def test_processes_that_start_at_once_have_the_same_key(tmp_path: Path) -> None:
    path = tmp_path / "notary.key"
    found = keys_of_processes(path, processes=2, threads=4)
    assert len(found) == 2 * 4
    assert set(found) == {SigningKey.load_or_create(path).key_id}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["notary.key", "notary.pub"]


def test_the_private_key_is_nowhere_in_the_database(
    database: Database, notary: Notary, tmp_path: Path
) -> None:
    write_one(database, "run-1")
    notary.turn()
    secret = (tmp_path / "keys" / "notary.key").read_text().splitlines()[1]
    with database.read() as tx:
        rows = [tx.execute(text(f"SELECT * FROM {table}")).all() for table in ("entries", "seals", "notary")]
    assert secret not in str(rows)
    assert NOTARY.id not in str(rows)


def test_seals_of_an_earlier_key_stay_verifiable(database: Database, notary: Notary, tmp_path: Path) -> None:
    write_one(database, "run-1")
    notary.seal_now()
    path = tmp_path / "keys" / "notary.key"
    earlier = public_keys(path.with_suffix(".pub").read_bytes())
    path.unlink()
    later = SigningKey.load_or_create(path)
    write_one(database, "run-2")
    Notary(database, later).seal_now()
    published = published_keys(path)
    assert set(public_keys(published)) == {*earlier, later.key_id}
    assert path.with_suffix(".pub").read_bytes() == later.public_pem
    assert _check(database, published).authenticated
    assert not _check(database, later.public_pem).ok


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o660, 0o606])
def test_a_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "notary.key"
    SigningKey.load_or_create(path)
    path.chmod(mode)
    with pytest.raises(SettingsError, match="chmod 600"):
        SigningKey.load_or_create(path)


@pytest.mark.parametrize("content", [b"", b"no key", NOTARY.pem])
def test_a_file_that_holds_no_private_key_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notary.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="Ed25519"):
        SigningKey.load_or_create(path)
    assert path.read_bytes() == content


def test_a_place_that_cannot_hold_a_key_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be used"):
        SigningKey.load_or_create(tmp_path / "file" / "notary.key")

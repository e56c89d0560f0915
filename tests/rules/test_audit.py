"""Entries and seals: what their hashes and signatures cover, and that other languages can check them."""

import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from clearance.audit import (
    NO_SEAL,
    AuditKind,
    Entry,
    Seal,
    entry_hash,
    is_signed_by,
    key_id,
    make_entry,
    public_keys,
    salted_hash,
)
from clearance.errors import InvalidInputError
from clearance.export import verify_export
from tests.rules.trails import NOTARY, SOMEBODY, START, make_trail

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def _entry(**facts: object) -> Entry:
    return make_entry(AuditKind.CALL_HELD, "run-1/1/0", actor="ann", facts=facts, id="a" * 32, now=START)


def _fenced(language: str) -> bytes:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found
    return found[1].encode()


def _compact(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


# --- entries ---


@pytest.mark.parametrize(
    "change",
    [
        {"id": "b" * 32},
        {"time": START + timedelta(microseconds=1)},
        {"kind": "call:started"},
        {"subject": "run-1/1/1"},
        {"actor": "bob"},
        {"facts": {"tool": "b"}},
        {"facts": {}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_field_of_an_entry_is_in_its_hash(change: dict[str, Any]) -> None:
    entry = _entry(tool="a")
    assert entry_hash(replace(entry, **change)) != entry.hash


def test_the_number_of_an_entry_is_not_in_its_hash() -> None:
    entry = _entry(tool="a")
    assert entry_hash(replace(entry, seq=7)) == entry.hash


def test_seven_and_seven_point_zero_are_different_facts() -> None:
    assert _entry(amount=7).hash != _entry(amount=7.0).hash


def test_the_same_instant_in_another_zone_is_the_same_entry() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    there = make_entry(
        AuditKind.CALL_HELD, "run-1/1/0", actor="ann", facts={}, id="a" * 32, now=START.astimezone(zone)
    )
    assert there == _entry()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.integers(), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_facts_read_back_from_json_have_the_same_hash(facts: dict[str, Any]) -> None:
    entry = _entry(**{"facts": facts})
    assert entry_hash(replace(entry, facts=json.loads(json.dumps(entry.facts)))) == entry.hash


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, b"bytes", "\ud800", START, {(1, 2): 3}]
)
def test_facts_that_json_cannot_carry_are_refused(value: object) -> None:
    with pytest.raises(InvalidInputError):
        _entry(value=value)


def test_a_salted_hash_depends_on_the_salt_and_the_text() -> None:
    hashes = {salted_hash(text, salt=salt) for text in ("ok", "ok ") for salt in ("00", "01")}
    assert len(hashes) == 4


def test_a_kind_is_a_subject_and_what_happened_to_it() -> None:
    exceptions = {"run:waiting", "call:uncertain", "call:late"}
    for kind in set(AuditKind) - exceptions:
        assert re.fullmatch(r"[a-z-]+:([a-z-]+ed(-in|-out)?|held|done|withdrawn|[a-z]+-set)", kind), kind


def test_every_kind_is_documented() -> None:
    documented = set(re.findall(r"^\| `([a-z-]+:[a-z-]+)` \|", DOCUMENT, re.MULTILINE))
    assert documented == set(AuditKind)


# --- seals and keys ---


def _seal() -> Seal:
    return make_trail().seals[1]


def _raw(pem: bytes) -> bytes:
    return next(iter(public_keys(pem).values()))


def test_a_seal_is_signed_by_its_key_and_by_no_other() -> None:
    assert is_signed_by(_seal(), _raw(NOTARY.pem))
    assert not is_signed_by(_seal(), _raw(SOMEBODY.pem))


@pytest.mark.parametrize(
    "change",
    [
        {"number": 3},
        {"first_seq": 5},
        {"last_seq": 7},
        {"digest": "0" * 64},
        {"previous": NO_SEAL},
        {"key_id": SOMEBODY.id},
        {"time": START},
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_field_of_a_seal_is_signed(change: dict[str, Any]) -> None:
    assert not is_signed_by(replace(_seal(), **change), _raw(NOTARY.pem))


def test_the_hash_of_a_seal_covers_its_signature() -> None:
    assert replace(_seal(), signature="0" * 128).hash != _seal().hash


def test_the_first_seal_follows_none() -> None:
    first, second, _ = make_trail().seals
    assert first.previous == NO_SEAL
    assert second.previous == first.hash


def test_one_pem_text_may_hold_several_keys() -> None:
    assert set(public_keys(NOTARY.pem + b"\n" + SOMEBODY.pem)) == {NOTARY.id, SOMEBODY.id}


OTHER_SORT = X25519PrivateKey.from_private_bytes(bytes(32)).public_key()


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"no key",
        NOTARY.pem[:-10],
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        OTHER_SORT.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        NOTARY.private.public_key().public_bytes_raw(),
    ],
)
def test_what_is_no_public_key_of_a_notary_is_refused(pem: bytes) -> None:
    with pytest.raises(InvalidInputError, match="public key"):
        public_keys(pem)


# --- the test vector of the document, checked by the product and by nothing but its description ---


def test_the_documents_export_is_authenticated_and_has_the_documents_head() -> None:
    report = verify_export(_fenced("jsonl").splitlines(keepends=True), public_key=_fenced("pem"))
    assert report.ok
    assert report.authenticated
    assert f"The head is `{report.head}`" in DOCUMENT


def test_the_documents_entries_and_seals_follow_from_the_documents_words_alone() -> None:
    key = _raw(_fenced("pem"))
    lines = _fenced("jsonl").splitlines()
    hashes: dict[int, str] = {}
    previous = "0" * 64
    for line in lines[1:]:
        record = json.loads(line)
        assert _compact(record) == line
        if record.pop("type") == "entry":
            seq, claimed = record.pop("seq"), record.pop("hash")
            hashes[seq] = hashlib.sha256(_compact(record)).hexdigest()
            assert hashes[seq] == claimed
        else:
            signature = bytes.fromhex(record.pop("signature"))
            Ed25519PublicKey.from_public_bytes(key).verify(signature, _compact({**record, "type": "seal"}))
            covered = [hashes[seq] + "\n" for seq in range(record["first_seq"], record["last_seq"] + 1)]
            assert record["digest"] == hashlib.sha256("".join(covered).encode()).hexdigest()
            assert record["previous"] == previous
            assert record["key_id"] == hashlib.sha256(key).hexdigest()[:16] == key_id(key)
            previous = hashlib.sha256(line).hexdigest()


def test_the_documents_salted_hash_is_right() -> None:
    expected = salted_hash("within the limit", salt="00112233445566778899aabbccddeeff")
    assert f'"message":"{expected}"' in DOCUMENT


def test_a_time_has_one_form() -> None:
    early = make_entry(
        AuditKind.RUN_DONE, "r", actor="a", facts={}, id="1", now=datetime(2026, 1, 1, tzinfo=UTC)
    )
    content = {"actor": "a", "facts": {}, "id": "1", "kind": "run:done", "subject": "r"}
    expected = _compact({**content, "time": "2026-01-01T00:00:00.000000Z"})
    assert early.hash == hashlib.sha256(expected).hexdigest()

"""The trail as a file: JSON lines, one for each entry and seal, that can be checked far from the database.

The first line says how much follows; each seal comes after the entries that it covers. A line is canonical
JSON and ends with a line feed, so that every altered byte shows. `docs/audit.md` has the format.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from clearance.audit import Entry, Seal, entry_content, seal_statement, time_text
from clearance.errors import InvalidInputError
from clearance.proof import Extent, Item, Report, Unreadable, Verification, in_order
from clearance.tampering import ProblemKind
from clearance.toolcall import canonical


def export_lines(
    entries: Iterable[Entry | Unreadable], seals: Iterable[Seal | Unreadable], *, extent: Extent
) -> Iterator[bytes]:
    """Yield the lines of an export; `extent` is how much the trail is said to have.

    What cannot be read is exported as such: the file then fails its check at the same place.
    """
    yield _line({"type": "trail", "format": 1, "last_seq": extent.last_seq, "last_seal": extent.last_seal})
    for item in in_order(entries, seals):
        match item:
            case Entry():
                yield _line(entry_record(item))
            case Seal():
                yield _line(seal_record(item))
            case Unreadable():
                yield _line({"type": "unreadable", "what": item.what, "number": item.number})


def verify_export(
    lines: Iterable[bytes], *, public_key: bytes | None, expect_head: str | None = None
) -> Report:
    """Check an export, given as the lines of a file that is open in binary mode.

    Takes and raises what `proof.verify` does; each problem names its line.
    """
    check = Verification(public_key=public_key, expect_head=expect_head)
    rest = iter(lines)
    header = read_line(next(rest, b""))
    if not isinstance(header, Extent):
        check.note(ProblemKind.CUT_OFF, "Line 1 does not say how much follows.", line=1)
        if not isinstance(header, Unreadable):
            check.take(header, line=1)
    for number, line in enumerate(rest, start=2):
        item = read_line(line)
        check.take(Unreadable("line") if isinstance(item, Extent) else item, line=number)
    return check.finish(header if isinstance(header, Extent) else None)


def read_line(line: bytes) -> Item | Extent:
    """Return what a line of an export holds; what was not written so by `export_lines` is `Unreadable`."""
    try:
        record = json.loads(line)
        if f"{canonical(record)}\n".encode() != line:
            return Unreadable("line")
        match record["type"]:
            case "entry":
                return entry_from(record)
            case "seal":
                return seal_from(record)
            case "trail" if record["format"] == 1:
                return Extent(_whole(record["last_seq"]), _whole(record["last_seal"]))
            case "unreadable" if record["what"] in ("entry", "seal"):
                return Unreadable(record["what"], _whole(record["number"]))
            case _:
                return Unreadable("line")
    except (ValueError, KeyError, TypeError, RecursionError, InvalidInputError):
        return Unreadable("line")


def entry_record(entry: Entry) -> dict[str, object]:
    """Return a numbered entry as JSON has it."""
    return {"type": "entry", "seq": entry.seq, "hash": entry.hash, **entry_content(entry)}


def entry_from(record: Mapping[str, Any]) -> Entry:
    """Return the entry of a record. Raises ValueError or KeyError when it is not one."""
    texts = {name: _text(record[name]) for name in ("id", "kind", "subject", "actor", "hash")}
    facts = record["facts"]
    if not isinstance(facts, dict):
        raise ValueError("facts must be an object")
    entry = Entry(**texts, time=_time(record["time"]), facts=facts, seq=_whole(record["seq"]))
    _same(entry_record(entry), record)
    return entry


def seal_record(seal: Seal) -> dict[str, object]:
    """Return a seal as JSON has it."""
    return {**seal_statement(seal), "signature": seal.signature}


def seal_from(record: Mapping[str, Any]) -> Seal:
    """Return the seal of a record. Raises ValueError or KeyError when it is not one."""
    seal = Seal(
        number=_whole(record["number"]),
        first_seq=_whole(record["first_seq"]),
        last_seq=_whole(record["last_seq"]),
        digest=_text(record["digest"]),
        previous=_text(record["previous"]),
        key_id=_text(record["key_id"]),
        time=_time(record["time"]),
        signature=_text(record["signature"]),
    )
    _same(seal_record(seal), record)
    return seal


def report_record(report: Report) -> dict[str, object]:
    """Return what a check found as JSON has it."""
    return {
        "ok": report.ok,
        "authenticated": report.authenticated,
        "entries": report.entries,
        "sealed_to": report.sealed_to,
        "unsealed": report.unsealed,
        "head": report.head,
        "summary": report.summary,
        "problems": [
            {
                "kind": str(each.kind),
                "message": each.message,
                "seq": each.seq,
                "seal": each.seal,
                "line": each.line,
            }
            for each in report.problems
        ],
        "found": report.found,
    }


def _line(record: Mapping[str, object]) -> bytes:
    return f"{canonical(record)}\n".encode()


def _same(written: Mapping[str, object], record: Mapping[str, Any]) -> None:
    if written.keys() != record.keys():
        raise ValueError("something was added")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be a whole number")
    return value


def _time(value: object) -> datetime:
    time = datetime.fromisoformat(_text(value))
    if time.tzinfo is None or time_text(time) != value:
        raise ValueError("must be an instant in UTC with microseconds")
    return time

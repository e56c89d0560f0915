"""What a template gives: files, one sentence, and the numbers that may be quoted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

Fact = str | int | float | bool | None


@dataclass(frozen=True)
class Produced:
    """The result of one method.

    `files` are the output files by name. `facts` are the numbers that a report may quote, each of which is
    also in one of the files. `warnings` are sentences that belong beside the result wherever it is shown.
    """

    headline: str
    files: Mapping[str, bytes]
    facts: Mapping[str, Fact] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def json_bytes(document: object) -> bytes:
    """Return a result as JSON text: keys sorted, one key a line, so that two results can be compared."""
    return (json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


def fasta_bytes(name: str, sequence: str) -> bytes:
    """Return one FASTA record with 70 letters a line."""
    lines = [sequence[start : start + 70] for start in range(0, len(sequence), 70)]
    return "\n".join([f">{name}", *lines, ""]).encode()


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as `1 match`, `3 matches`; `many` where it takes more than an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"

"""What stops a research run, or one of its sources, with a sentence that says what would help.

InvalidInputError
├─ SequenceInputError        a FASTA file or sequence that cannot be used
├─ AmbiguousSymbolError      a symbol that names several genes
└─ PlanError                 a plan that must not reach a person
NotFoundError
└─ UnknownSymbolError        a symbol that names no gene
ClearanceError
├─ SourceUnavailableError    one source gives no answer now: the next one is tried
├─ NotRecordedError          a replayed run asks for what its record does not hold
├─ RecordMismatchError       a record whose checksum or translation is wrong: the run stops
└─ ReportError               a number or citation that the run's records do not have: no report is kept
"""

from collections.abc import Sequence

from clearance.errors import ClearanceError, InvalidInputError, NotFoundError


class SequenceInputError(InvalidInputError):
    """A sequence or FASTA file that cannot be used. The message says which line or letter."""


class AmbiguousSymbolError(InvalidInputError):
    """A symbol that names several genes. `choices` are what to ask for instead."""

    def __init__(self, symbol: str, choices: Sequence[str]) -> None:
        super().__init__(f"{symbol} names several genes. Ask for one by its number: {', '.join(choices)}.")
        self.symbol = symbol
        self.choices = tuple(choices)


class PlanError(InvalidInputError):
    """A plan, or a wish for one, that must not reach a person. `faults` says every place."""


class UnknownSymbolError(NotFoundError):
    """A symbol that no source knows. `near` are known symbols that look like it, best first."""

    def __init__(self, symbol: str, near: Sequence[str], *, searched: Sequence[str]) -> None:
        hint = f" Did you mean {', '.join(near)}?" if near else " Give its sequence with --fasta."
        super().__init__(f"No gene {symbol} was found ({', '.join(searched)}).{hint}")
        self.symbol = symbol
        self.near = tuple(near)


class SourceUnavailableError(ClearanceError):
    """A source that gives no usable answer now. The chain goes on with the next one."""

    status = 503
    exit_code = 11


class NotRecordedError(ClearanceError):
    """A replayed run asks for a response that its record does not hold. Nothing else is used instead."""

    status = 409
    exit_code = 11


class RecordMismatchError(ClearanceError):
    """A record that is not what it says: its checksum or translation is wrong. The run stops."""

    status = 502
    exit_code = 11


class ReportError(ClearanceError):
    """A report with something in it that the run's records do not have. It is not kept.

    `untraced` says each, as it stands in the report.
    """

    exit_code = 11

    def __init__(self, message: str, *, untraced: Sequence[str] = ()) -> None:
        super().__init__(f"{message} {'; '.join(untraced)}" if untraced else message)
        self.untraced = tuple(untraced)

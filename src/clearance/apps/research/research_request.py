"""What a run was asked to do, as its row keeps it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from clearance.apps.research.errors import SequenceInputError
from clearance.apps.research.sources.organisms import check_symbol, organism_named
from clearance.errors import InvalidInputError
from clearance.toolcall import canonical

MAX_FASTA = 512 * 1024
MAX_OBJECTIVE = 2000
OWN = "own-sequence"
"""What a run is about whose file names no gene: no database knows such a symbol."""


@dataclass(frozen=True)
class ResearchRequest:
    """One run's task. `fasta` is the text of the person's own file; `replay` names a run whose record counts.

    `symbol` may be left out with a file of one's own; `fasta_kind` says what that holds (`dna`, `protein`),
    where the letters are not to decide. `executor` is `local` or `argo`; `planner` is `rules`, or the name of
    a chat model.
    """

    symbol: str = ""
    objective: str = ""
    organism: str = "human"
    fasta: str | None = None
    fasta_kind: str | None = None
    offline: bool = False
    replay: str | None = None
    executor: str = "local"
    planner: str = "rules"

    @property
    def subject(self) -> str:
        """What the run is about, as lists and reports name it."""
        return self.symbol or OWN

    @property
    def text(self) -> str:
        """The request as the run's row keeps it."""
        return canonical({name: value for name, value in asdict(self).items() if value is not None})


def read_request(text: str | None) -> ResearchRequest:
    """Return the request that a run's row keeps; `InvalidInputError` for a row that is none."""
    try:
        return ResearchRequest(**json.loads(text or ""))
    except (ValueError, TypeError):
        raise InvalidInputError("This run was not started as a research pipeline.") from None


def check_request(request: ResearchRequest) -> None:
    """Refuse what could never become a run, before there is one; the error points at each field."""
    errors = list(_errors(request))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        faults = [fault for error in errors for fault in error.faults]
        raise InvalidInputError("The run cannot be started.", faults=faults)


def _errors(request: ResearchRequest) -> Iterator[InvalidInputError]:
    checks: dict[str, Callable[[ResearchRequest], object]] = {
        "symbol": _check_symbol,
        "objective": _check_objective,
        "organism": lambda asked: organism_named(asked.organism),
        "fasta": _check_fasta,
        "executor": _check_executor,
    }
    for name, check in checks.items():
        try:
            check(request)
        except InvalidInputError as error:
            error.point_below(f"/{name}")
            yield error


def _check_symbol(request: ResearchRequest) -> None:
    if request.symbol or request.fasta is None:
        check_symbol(request.symbol)


def _check_objective(request: ResearchRequest) -> None:
    if len(request.objective) > MAX_OBJECTIVE:
        raise InvalidInputError(f"The objective has more than {MAX_OBJECTIVE} characters.")


def _check_fasta(request: ResearchRequest) -> None:
    from clearance.apps.research.sources.own_sequence import read_own

    if request.fasta is None:
        if request.fasta_kind is not None:
            raise SequenceInputError("The kind is that of a FASTA file. Give one, or leave the kind out.")
        return
    if len(request.fasta.encode()) > MAX_FASTA:
        raise SequenceInputError(f"The FASTA file is larger than {MAX_FASTA // 1024} KiB. Give one gene.")
    read_own(request.fasta.encode(), kind=request.fasta_kind, now=datetime.min.replace(tzinfo=UTC))


def _check_executor(request: ResearchRequest) -> None:
    if request.executor not in ("local", "argo"):
        raise InvalidInputError("The executor is local or argo.")

"""What a run was asked to do, as its row keeps it."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from clearance.apps.research.errors import SequenceInputError
from clearance.apps.research.sources.organisms import check_symbol, organism_named
from clearance.errors import InvalidInputError
from clearance.toolcall import canonical

MAX_FASTA = 512 * 1024
MAX_OBJECTIVE = 2000


@dataclass(frozen=True)
class ResearchRequest:
    """One run's task. `fasta` is the text of the person's own file; `replay` names a run whose record counts.

    `executor` is `local` or `argo`; `planner` is `rules`, or the name of a chat model.
    """

    symbol: str
    objective: str = ""
    organism: str = "human"
    fasta: str | None = None
    offline: bool = False
    replay: str | None = None
    executor: str = "local"
    planner: str = "rules"

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
    """Refuse what could never become a run, before there is one."""
    check_symbol(request.symbol)
    organism_named(request.organism)
    if request.fasta is not None and len(request.fasta.encode()) > MAX_FASTA:
        raise SequenceInputError(f"The FASTA file is larger than {MAX_FASTA // 1024} KiB. Give one gene.")
    if len(request.objective) > MAX_OBJECTIVE:
        raise InvalidInputError(f"The objective has more than {MAX_OBJECTIVE} characters.")
    if request.executor not in ("local", "argo"):
        raise InvalidInputError("The executor is local or argo.")
    if request.fasta is not None:
        from clearance.apps.research.sources.own_sequence import read_own

        read_own(request.fasta.encode(), now=datetime.min.replace(tzinfo=UTC))

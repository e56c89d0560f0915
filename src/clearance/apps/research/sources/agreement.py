"""Whether records agree with each other, and whether an answer has the shape that its service documents."""

from collections.abc import Iterator
from contextlib import contextmanager

from clearance.apps.research.errors import SourceUnavailableError
from clearance.apps.research.methods.genetic_code import translate


def translates_to(cds: str, protein: str) -> bool:
    """Return whether a coding sequence is that of a protein, its stop included or not.

    Read by the standard code with its two known exceptions: the first codon is read as M whatever it is, and
    a TGA inside may stand for selenocysteine (U).
    """
    translated = translate(cds).removesuffix("*")
    wanted = protein.removesuffix("*")
    return (
        len(cds) % 3 == 0
        and len(translated) == len(wanted)
        and all(
            read == letter or (at == 0 and letter == "M") or (read == "*" and letter == "U")
            for at, (read, letter) in enumerate(zip(translated, wanted, strict=True))
        )
    )


@contextmanager
def documented(source: str) -> Iterator[None]:
    """Turn what an answer of another shape raises into `SourceUnavailableError`."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise SourceUnavailableError(
            f"{source}'s answer has not the documented shape ({type(error).__name__})."
        ) from error

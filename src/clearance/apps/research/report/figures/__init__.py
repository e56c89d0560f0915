"""The figures of a report, drawn from the result files of the steps that the run carried out."""

from collections.abc import Callable, Mapping

from markupsafe import Markup

from clearance.apps.research.report.facts import Book
from clearance.apps.research.report.figures.codons import codon_bars
from clearance.apps.research.report.figures.maps import domain_map, exon_map, orf_map
from clearance.apps.research.report.figures.restriction import restriction_map
from clearance.apps.research.report.figures.tracks import conservation_track, gc_track, hydropathy_track

Draw = Callable[[Book, str], Markup | None]

_DRAWN: Mapping[str, Draw] = {
    "codon-usage": codon_bars,
    "domain-search": domain_map,
    "exon-structure": exon_map,
    "gc-profile": gc_track,
    "msa-conservation": conservation_track,
    "orf-scan": orf_map,
    "protein-properties": hydropathy_track,
    "restriction-map": restriction_map,
}


def figures_of(book: Book, method: str, folder: str) -> tuple[Markup, ...]:
    """Return the figures of a step's result; none where there is nothing to draw. `folder` has its files."""
    draw = _DRAWN.get(method)
    drawn = draw(book, folder) if draw else None
    return (drawn,) if drawn else ()

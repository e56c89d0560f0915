"""What steps take: the card's processor seconds and memory for the sizes of its inputs, and their price."""

from collections.abc import Iterable, Mapping
from decimal import ROUND_UP, Decimal

from clearance.apps.research.methods.cards import Card
from clearance.apps.research.plan import Estimate, Input, Step

PRICE_OF_A_CPU_HOUR = Decimal("0.05")
"""In the budget's currency: what a processor hour of a rented machine costs, rounded up."""
_CENT_OF_A_CENT = Decimal("0.0001")
_SHORTEST_TIMEOUT, _PATIENCE = 60, 30


def estimate(card: Card, size: int) -> Estimate:
    """Return what one run of a method takes on inputs of `size` bytes together."""
    measured = card.cost.estimate(size)
    cost = (Decimal(measured.cpu_s) / 3600 * PRICE_OF_A_CPU_HOUR).quantize(_CENT_OF_A_CENT, ROUND_UP)
    return Estimate(cpu_s=measured.cpu_s, mem_mb=measured.mem_mb, cost=str(cost))


def timeout(expected: Estimate) -> int:
    """Return after how many seconds a step is hung rather than slow."""
    return max(_SHORTEST_TIMEOUT, int(Decimal(expected.cpu_s) * _PATIENCE) + 1)


def sizes(inputs: Iterable[Input], steps: Iterable[Step]) -> dict[str, int]:
    """Return the bytes behind each reference: an input's own; what a step gives is taken to be what it got.

    Steps come after those whose outputs they use.
    """
    known = {each.id: each.size for each in inputs}
    for step in steps:
        got = size_of(step.inputs, known)
        known |= {f"{step.id}/{output.name}": got for output in step.outputs}
    return known


def size_of(references: Mapping[str, str], known: Mapping[str, int]) -> int:
    """Return the bytes of a step's inputs together."""
    return sum(known.get(reference, 0) for reference in references.values())

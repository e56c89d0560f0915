"""Mass, charge and hydropathy of a protein, from its sequence alone.

`protein-properties.json`: {"sequence": {"id", "length"}, "molecular_weight" (Da, average masses, 1 digit),
"isoelectric_point" (Bjellqvist pK values, 2 digits), "charge_at_ph7" (1 digit), "gravy" (Kyte-Doolittle
mean, 3 digits), "aromaticity" (3 digits), "instability_index" (2 digits; above 40 predicts an unstable
protein), "extinction": {"reduced", "cystines"} (per M and cm at 280 nm), "composition": {letter: count},
"hydropathy": {"window", "points": [{"position" (middle of the window), "value" (3 digits)}]}}.
"""

from collections.abc import Mapping
from typing import Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import AMINO_ACIDS, read_protein
from clearance.errors import InvalidInputError


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the properties of `protein`; hydropathy is averaged over `window` residues (odd)."""
    from Bio.SeqUtils.ProtParam import ProteinAnalysis

    record = read_protein(inputs["protein"], name="protein")
    unknown = sorted(set(record.letters) - set(AMINO_ACIDS))
    if unknown:
        raise InvalidInputError(
            f"protein: {', '.join(unknown)} have no certain mass and charge. "
            "Give the twenty amino acids only."
        )
    # Biopython has no types.
    protein: Any = ProteinAnalysis(record.letters)  # type: ignore[no-untyped-call]
    reduced, cystines = protein.molar_extinction_coefficient()
    document = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "molecular_weight": round(protein.molecular_weight(), 1),
        "isoelectric_point": round(protein.isoelectric_point(), 2),
        "charge_at_ph7": round(protein.charge_at_pH(7.0), 1),
        "gravy": round(protein.gravy(), 3),
        "aromaticity": round(protein.aromaticity(), 3),
        "instability_index": round(protein.instability_index(), 2),
        "extinction": {"reduced": reduced, "cystines": cystines},
        "composition": {letter: record.letters.count(letter) for letter in AMINO_ACIDS},
        "hydropathy": {"window": params["window"], "points": _hydropathy(record.letters, params["window"])},
    }
    return Produced(
        f"{document['molecular_weight']:,.1f} Da, pI {document['isoelectric_point']:.2f}.",
        {"protein-properties.json": json_bytes(document)},
        {
            name: document[name]
            for name in ("molecular_weight", "isoelectric_point", "gravy", "instability_index")
        },
    )


def _hydropathy(letters: str, window: int) -> list[dict[str, float]]:
    from Bio.SeqUtils.ProtParamData import kd

    if len(letters) < window:
        return []
    values = [float(kd[letter]) for letter in letters]
    return [
        {"position": at + window // 2 + 1, "value": round(sum(values[at : at + window]) / window, 3)}
        for at in range(len(values) - window + 1)
    ]

"""Protein domains, found with a profile HMM.

`domains.json`: {"sequence": {"id", "length"}, "model": {"name", "accession", "length"}, "max_evalue",
"domains": [{"start", "end" (envelope), "aligned_start", "aligned_end", "model_start", "model_end", "score"
(bits, 1 digit), "c_evalue", "i_evalue" (texts, 2 digits)}] by start, "evalue" (text) and "score" of the
whole sequence, or null when it is no hit}. E-values are for a search of this one sequence. `aligned_start`
and `aligned_end` are what `hmmsearch` prints as "alifrom" and "ali to".
"""

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import Record, read_protein
from clearance.errors import InvalidInputError

if TYPE_CHECKING:
    from pyhmmer.plan7 import HMM, Domain, Hit


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the domains of the model `hmm` in `protein` with an E-value of at most `max_evalue`."""
    record = read_protein(inputs["protein"], name="protein")
    model = _model(inputs["hmm"])
    limit = float(params["max_evalue"])
    hit = _search(record, model, limit=limit)
    domains = [_domain(domain) for domain in hit.domains.included] if hit else []
    domains.sort(key=lambda domain: (domain["start"], domain["end"]))
    name = str(model.name)
    document = {
        "sequence": {"id": record.id, "length": len(record.letters)},
        "model": {"name": name, "accession": model.accession, "length": model.M},
        "max_evalue": params["max_evalue"],
        "domains": domains,
        "evalue": f"{hit.evalue:.1e}" if hit else None,
        "score": round(hit.score, 1) if hit else None,
    }
    places = ", ".join(f"{domain['aligned_start']}-{domain['aligned_end']}" for domain in domains)
    return Produced(
        f"{name} at {places}." if domains else f"{name} was not found.",
        {"domains.json": json_bytes(document)},
        {"domains": len(domains), "evalue": document["evalue"], "score": document["score"]},
    )


def _model(data: bytes) -> "HMM[Any]":
    from pyhmmer.plan7 import HMMFile

    try:
        with HMMFile(BytesIO(data)) as file:
            models = list(file)
    except (ValueError, EOFError):
        raise InvalidInputError("hmm: this is no profile HMM of HMMER 3. Give one, as from Pfam.") from None
    if len(models) != 1:
        raise InvalidInputError(f"hmm: the file has {len(models)} models. Give one.")
    if not models[0].alphabet.is_amino():
        raise InvalidInputError("hmm: the model is not one of proteins. Give a protein model.")
    return models[0]


def _search(record: Record, model: "HMM[Any]", *, limit: float) -> "Hit | None":
    from pyhmmer.easel import DigitalSequenceBlock, TextSequence
    from pyhmmer.plan7 import Pipeline

    pipeline = Pipeline(model.alphabet, Z=1, domZ=1, E=limit, domE=limit, incE=limit, incdomE=limit)
    sequence = TextSequence(name=record.id, sequence=record.letters).digitize(model.alphabet)
    hits = pipeline.search_hmm(model, DigitalSequenceBlock(model.alphabet, [sequence]))
    return next((hit for hit in hits if hit.included), None)


def _domain(domain: "Domain") -> dict[str, Any]:
    aligned = domain.alignment
    return {
        "start": domain.env_from,
        "end": domain.env_to,
        "aligned_start": aligned.target_from,
        "aligned_end": aligned.target_to,
        "model_start": aligned.hmm_from,
        "model_end": aligned.hmm_to,
        "score": round(domain.score, 1),
        "c_evalue": f"{domain.c_evalue:.1e}",
        "i_evalue": f"{domain.i_evalue:.1e}",
    }

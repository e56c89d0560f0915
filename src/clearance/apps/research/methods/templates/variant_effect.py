"""What variants of a coding sequence do to its protein.

`variant-effects.json`: {"sequence": {"id", "length", "length_aa"}, "variants": [{"variant" (as given),
"normalized" (3' form), "protein" (HGVS, such as p.Cys61Gly), "consequence", "length_aa" of the new protein
or null where it has no stop or no start, "changed_codon": {"number", "old", "new"} or null}]} in the order
given. `consequence` is a term of the Sequence Ontology: missense_variant, synonymous_variant, stop_gained,
stop_lost, start_lost, frameshift_variant, inframe_deletion, inframe_insertion, protein_altering_variant.

The effect is what the code says; splicing, decay of the transcript and everything outside the coding
sequence are not looked at. A frameshift without a new stop in the coding sequence ends in "fsTer?".

Input `variants` is JSON {"variants": [text …]} or one variant a line; those of the parameter follow.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clearance.apps.research.methods import hgvs
from clearance.apps.research.methods.genetic_code import THREE_LETTERS, translate
from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.apps.research.methods.sequences import read_cds
from clearance.errors import InvalidInputError

MOST_VARIANTS = 1000


@dataclass(frozen=True)
class _Effect:
    protein: str
    consequence: str


def run(inputs: Mapping[str, bytes], params: Mapping[str, Any]) -> Produced:
    """Return the effect of each variant on the protein of `cds`."""
    record = read_cds(inputs["cds"], name="cds")
    texts = [*_given(inputs.get("variants")), *params["variants"]]
    if not 0 < len(texts) <= MOST_VARIANTS:
        raise InvalidInputError(f"variants: give 1 to {MOST_VARIANTS} variants, such as c.181T>G.")
    variants = [_variant(text, record.letters) for text in texts]
    document = {
        "sequence": {
            "id": record.id,
            "length": len(record.letters),
            "length_aa": len(record.letters) // 3 - 1,
        },
        "variants": variants,
    }
    first = variants[0]
    more = f" and {len(variants) - 1} more" if len(variants) > 1 else ""
    return Produced(
        f"{first['variant']}: {first['protein']} ({first['consequence']}){more}.",
        {"variant-effects.json": json_bytes(document)},
        {"variants": len(variants)},
        ("Effects are those of the code alone: splicing and RNA decay were not looked at.",),
    )


def _given(data: bytes | None) -> list[str]:
    if data is None:
        return []
    text = data.decode("utf-8", errors="replace")
    if not text.lstrip().startswith("{"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        given = json.loads(text)["variants"]
    except (ValueError, KeyError):
        given = None
    if not isinstance(given, list) or not all(isinstance(variant, str) for variant in given):
        raise InvalidInputError('variants: give JSON {"variants": ["c.181T>G"]}, or one variant a line.')
    return given


def _variant(text: str, letters: str) -> dict[str, Any]:
    change = hgvs.parse(text)
    changed = hgvs.apply(change, letters)
    old, new = translate(letters), translate(changed)
    if changed[:3] != "ATG":
        effect, length = _Effect("p.Met1?", "start_lost"), None
    else:
        effect = _effect(old, new, shifted=(len(changed) - len(letters)) % 3 != 0)
        length = new.find("*") if "*" in new else None
    codon = None
    if change.kind is hgvs.Kind.SUBSTITUTION:
        at = (change.start - 1) // 3 * 3
        codon = {"number": at // 3 + 1, "old": letters[at : at + 3], "new": changed[at : at + 3]}
        if old == new:
            effect = _Effect(f"p.{_residue(old, at // 3)}=", "synonymous_variant")
    return {
        "variant": text,
        "normalized": str(hgvs.normalized(change, letters)),
        "protein": effect.protein,
        "consequence": effect.consequence,
        "length_aa": length,
        "changed_codon": codon,
    }


def _effect(old: str, new: str, *, shifted: bool) -> _Effect:
    """Return what became of the protein `old`, which ends in its stop; `new` may have codons behind one."""
    if new.startswith(old):
        return _Effect("p.=", "synonymous_variant")
    return _frameshift(old, new) if shifted else _in_frame(old, new)


def _frameshift(old: str, new: str) -> _Effect:
    at = _common(old, new)
    if at == len(new):
        if old[at] == "*":
            return _Effect(_extension(at, ""), "stop_lost")
        return _Effect(f"p.{_residue(old, at)}fsTer?", "frameshift_variant")
    if new[at] == "*":
        return _Effect(f"p.{_residue(old, at)}Ter", "stop_gained")
    if old[at] == "*":
        return _Effect(_extension(at, new[at]), "stop_lost")
    stop = new.find("*", at)
    count = stop - at + 1 if stop >= 0 else "?"
    return _Effect(f"p.{_residue(old, at)}{THREE_LETTERS[new[at]]}fsTer{count}", "frameshift_variant")


def _in_frame(old: str, new: str) -> _Effect:
    # Trimming the common start first puts the change as far towards the end as it goes, as HGVS wants it.
    at = _common(old, new)
    after = _common(old[at:][::-1], new[at:][::-1])
    lost, gained = old[at : len(old) - after], new[at : len(new) - after]
    if gained.startswith("*"):
        return _Effect(f"p.{_residue(old, at)}Ter", "stop_gained")
    if "*" in lost:
        text = _extension(at, gained[:1]) if lost == "*" else "p.?"
        return _Effect(text, "stop_lost")
    read, stop, _ = gained.partition("*")
    written = "".join(THREE_LETTERS[letter] for letter in read) + ("Ter" if stop else "")
    last = at + len(lost) - 1
    place = _residue(old, at) + (f"_{_residue(old, last)}" if len(lost) > 1 else "")
    if stop:
        if not lost:
            return _Effect(f"p.{_residue(old, at - 1)}_{_residue(old, at)}ins{written}", "stop_gained")
        return _Effect(f"p.{place}delins{written}", "stop_gained")
    if not gained:
        return _Effect(f"p.{place}del", "inframe_deletion")
    if not lost:
        return _Effect(_insertion(old, at, gained=gained), "inframe_insertion")
    if len(lost) == len(gained) == 1:
        return _Effect(f"p.{place}{written}", "missense_variant")
    return _Effect(f"p.{place}delins{written}", "protein_altering_variant")


def _insertion(old: str, at: int, *, gained: str) -> str:
    start = at - len(gained)
    if start >= 0 and old[start:at] == gained:
        last = f"_{_residue(old, at - 1)}" if len(gained) > 1 else ""
        return f"p.{_residue(old, start)}{last}dup"
    written = "".join(THREE_LETTERS[letter] for letter in gained)
    return f"p.{_residue(old, at - 1)}_{_residue(old, at)}ins{written}"


def _extension(at: int, letter: str) -> str:
    """Return a lost stop; where the longer protein ends is in the untranslated region, which is not here."""
    return f"p.Ter{at + 1}{THREE_LETTERS[letter] if letter else ''}extTer?"


def _residue(protein: str, at: int) -> str:
    return f"{THREE_LETTERS[protein[at]]}{at + 1}"


def _common(first: str, second: str) -> int:
    """Return how many letters two texts have in common at the start."""
    shorter = min(len(first), len(second))
    return next((at for at in range(shorter) if first[at] != second[at]), shorter)

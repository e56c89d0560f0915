"""The full BRCA1 records, which are not shipped: collected where CLEARANCE_TEST_DATA names their folder."""

import pytest

from tests.research.methods_at_hand import FULL_DATA, run

if FULL_DATA is not None:
    CDS = (FULL_DATA / "BRCA1.cds.fna").read_bytes()
    PROTEIN = (FULL_DATA / "BRCA1.P38398.faa").read_bytes()

    def test_the_gc_content_of_brca1() -> None:
        assert run("gc-profile", sequence=CDS).of("gc-profile.json")["gc"] == 0.4122

    def test_brca1_translates_to_p38398() -> None:
        # UniProt P38398, line SQ: 1863 AA; 89C6D83FF56312AF CRC64.
        protein = run("translate", sequence=CDS).of("translation.json")["protein"]
        assert (protein["length"], protein["crc64"]) == (1863, "89C6D83FF56312AF")

    def test_the_mass_and_isoelectric_point_of_brca1() -> None:
        made = run("protein-properties", protein=PROTEIN).of("protein-properties.json")
        assert (made["molecular_weight"], made["isoelectric_point"]) == (207718.5, 5.29)

    @pytest.mark.parametrize(
        ("variant", "protein", "length"),
        [
            ("c.181T>G", "p.Cys61Gly", 1863),
            ("c.68_69del", "p.Glu23ValfsTer17", 38),
            ("c.5266dup", "p.Gln1756ProfsTer74", 1828),
        ],
    )
    def test_the_founder_variants_of_brca1(variant: str, protein: str, length: int) -> None:
        made = run("variant-effect", {"variants": [variant]}, cds=CDS).of("variant-effects.json")
        assert (made["variants"][0]["protein"], made["variants"][0]["length_aa"]) == (protein, length)

    def test_brca1_aligned_with_itself() -> None:
        made = run("pairwise-alignment", first=PROTEIN, second=PROTEIN).of("alignment.json")
        assert (made["score"], made["identity"]) == (9652.0, 1.0)

    def test_the_coding_sequence_is_the_longest_frame_of_its_own() -> None:
        longest = run("orf-scan", sequence=CDS).of("orfs.json")["longest"]
        assert (longest["start"], longest["end"], longest["strand"]) == (1, 5592, "+")

"""The cards say what is true: of their templates, of their parameters, of what they take and give."""

import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from clearance.apps.research.knowledge import DATA_KINDS
from clearance.apps.research.methods import cards
from clearance.apps.research.methods.cards import Card, card, load_cards, template_sha256
from clearance.errors import InvalidInputError, NotFoundError
from clearance.schema import faults

CARDS = load_cards()
by_id = pytest.mark.parametrize("method", CARDS, ids=lambda method: method.id)

ORF_SCAN = card("orf-scan").template.sha256

# What a person must give; everything else has a default.
GIVEN = {"literature-cooccurrence": {"terms": ["one", "two"]}}


def test_there_are_fifteen_methods() -> None:
    assert [method.id for method in CARDS] == [
        "codon-usage", "crispr-guide-scan", "domain-search", "exon-structure", "gc-profile",
        "literature-cooccurrence", "motif-scan", "msa-conservation", "orf-scan", "pairwise-alignment",
        "primer-design", "protein-properties", "restriction-map", "translate", "variant-effect",
    ]  # fmt: skip


def test_every_template_has_a_card() -> None:
    templates = {path.stem.replace("_", "-") for path in cards.TEMPLATES.glob("[!_]*.py")}
    assert templates == {method.id for method in CARDS}


def test_cards_steps_and_templates_load_no_heavy_library_before_they_run() -> None:
    program = (
        "import sys; from importlib import import_module\n"
        "import clearance.apps.research.knowledge, clearance.apps.research.step\n"
        "from clearance.apps.research.methods.cards import load_cards\n"
        "for card in load_cards():\n"
        "    name = card.id.replace('-', '_')\n"
        "    import_module(f'clearance.apps.research.methods.templates.{name}')\n"
        "print(sorted({'Bio', 'numpy', 'pyhmmer', 'matplotlib', 'sqlalchemy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@by_id
def test_the_defaults_of_a_card_fit_its_schema(method: Card) -> None:
    assert method.params["additionalProperties"] is False
    complete = method.check_params(GIVEN.get(method.id, {}))
    assert faults(method.params, complete) == ()


@by_id
def test_every_parameter_has_a_title_for_the_form(method: Card) -> None:
    assert all(part["title"] for part in method.params.get("properties", {}).values())


@by_id
def test_no_parameter_is_a_float_because_plans_are_hashed(method: Card) -> None:
    assert "number" not in str(method.params)


@by_id
def test_a_card_takes_kinds_that_the_knowledge_base_knows(method: Card) -> None:
    assert {kind for slot in method.inputs for kind in slot.kinds} <= set(DATA_KINDS)


@by_id
def test_the_estimate_of_a_card_is_a_decimal_text(method: Card) -> None:
    estimate = method.cost.estimate(12_345)
    assert re.fullmatch(r"[0-9]+\.[0-9]{2}", estimate.cpu_s)
    assert estimate.mem_mb > 0


def test_an_estimate_grows_with_the_input() -> None:
    cost = cards.Cost("0.4", "0.002", 100)
    assert cost.estimate(0) == cards.Estimate("0.40", 100)
    assert cost.estimate(5_000_000) == cards.Estimate("10.40", 100)


@by_id
def test_a_card_names_edam_by_id_and_its_sources_by_doi_or_title(method: Card) -> None:
    assert all(re.fullmatch(r"(operation|topic|data|format)_[0-9]{4}", term) for term in method.edam)
    assert method.references
    for reference in method.references:
        assert reference["title"]
        assert re.fullmatch(r"10\.[0-9]{4}/\S+", reference.get("doi", "10.1000/none"))


@by_id
def test_the_docstring_of_a_template_describes_every_output(method: Card) -> None:
    source = (cards.TEMPLATES / f"{method.id.replace('-', '_')}.py").read_text(encoding="utf-8")
    docstring = source.split('"""')[1]
    assert [output.name for output in method.outputs if f"`{output.name}`" not in docstring] == []


@by_id
def test_a_card_as_a_document_holds_the_hash_of_its_template(method: Card) -> None:
    assert method.document()["template"] == {"name": method.id, "sha256": template_sha256(method.id)}


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the methods that may be changed."""
    copied = tmp_path / "methods"
    copytree(cards.TEMPLATES.parent, copied)
    monkeypatch.setattr(cards, "_HERE", copied)
    monkeypatch.setattr(cards, "TEMPLATES", copied / "templates")
    return copied


@pytest.mark.usefixtures("copied")
def test_the_same_code_has_the_same_hash_wherever_it_lies() -> None:
    assert {template_sha256(method.id) for method in CARDS} == {method.template.sha256 for method in CARDS}


@pytest.mark.parametrize("changed", ["templates/orf_scan.py", "sequences.py", "genetic_code.py", "hgvs.py"])
def test_a_changed_template_or_what_it_stands_on_has_another_hash(copied: Path, changed: str) -> None:
    with (copied / changed).open("a", encoding="utf-8") as file:
        file.write("\n")
    assert template_sha256("orf-scan") != ORF_SCAN


def test_a_change_of_another_template_changes_nothing(copied: Path) -> None:
    with (copied / "templates" / "translate.py").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert template_sha256("orf-scan") == ORF_SCAN


@pytest.mark.parametrize("name", ["none", "../cards", "orf_scan", "", "Orf-Scan", "__init__"])
def test_an_unknown_method_has_no_card_and_no_template(name: str) -> None:
    with pytest.raises(NotFoundError, match="There is no method"):
        card(name)
    with pytest.raises(NotFoundError, match="There is no template"):
        template_sha256(name)


def test_check_params_names_every_fault() -> None:
    with pytest.raises(InvalidInputError) as caught:
        card("orf-scan").check_params({"min_aa": 1, "strand": "?", "other": 1})
    assert [fault.pointer for fault in caught.value.faults] == ["/min_aa", "/other", "/strand"]

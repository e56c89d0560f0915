"""The how-to about method cards: its card and its template are a method that works."""

import importlib.util
import json
import re
from pathlib import Path
from shutil import copytree

import pytest

from clearance.apps.research.knowledge import DATA_KINDS, KnowledgeBase
from clearance.apps.research.methods import cards
from tests.house.sources import ROOT

HOW_TO = (ROOT / "docs" / "how-to" / "method-card.md").read_text(encoding="utf-8")


def _block(language: str) -> str:
    (block,) = re.findall(rf"```{language}\n(.*?)```", HOW_TO, flags=re.DOTALL)
    return str(block)


@pytest.fixture
def method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cards.Card:
    """The card of the how-to, in a copy of the methods."""
    copied = tmp_path / "methods"
    copytree(cards.TEMPLATES.parent, copied)
    (copied / "cards" / "base-runs.toml").write_text(_block("toml"), encoding="utf-8")
    (copied / "templates" / "base_runs.py").write_text(_block("python"), encoding="utf-8")
    for name, folder in (("_HERE", "."), ("CARDS", "cards"), ("TEMPLATES", "templates")):
        monkeypatch.setattr(cards, name, copied / folder)
    return cards.card("base-runs")


def test_its_template_gives_what_its_card_says(method: cards.Card) -> None:
    spec = importlib.util.spec_from_file_location("base_runs", cards.TEMPLATES / "base_runs.py")
    assert spec is not None
    assert spec.loader is not None
    template = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(template)
    made = template.run({"sequence": b">one\nACCCCCCCTTTG\n"}, method.check_params({}))
    assert set(made.files) == {output.name for output in method.outputs}
    assert json.loads(made.files["base-runs.json"])["runs"] == [
        {"start": 2, "end": 8, "base": "C", "length": 7}
    ]


def test_the_knowledge_base_finds_it(method: cards.Card) -> None:
    base = KnowledgeBase([method, *cards.load_cards()])
    assert base.rank({"dna"}, "homopolymers")[0].card.id == "base-runs"
    base.close()


def test_it_names_every_kind_of_data() -> None:
    row = next(line for line in HOW_TO.splitlines() if line.startswith("| `inputs.kinds`"))
    assert set(DATA_KINDS) <= set(re.findall(r"`([a-z]+)`", row))

"""The services' addresses can be set, and each is asked as fast as it allows."""

import re

import pytest
from pydantic import SecretStr

from clearance.apps.research.sources.endpoints import Endpoints
from clearance.errors import SettingsError
from tests.house.sources import ROOT


def test_every_variable_is_documented_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "research-sources.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `CLEARANCE_RESEARCH_(\w+)` \| `?([^|`]+?)`? \|", page, re.MULTILINE))
    defaults = {name.upper(): field.default or "–" for name, field in Endpoints.model_fields.items()}
    assert told == defaults


def test_an_address_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARANCE_RESEARCH_ENSEMBL", "http://127.0.0.1:1")
    assert Endpoints.read().ensembl == "http://127.0.0.1:1"


@pytest.mark.parametrize("address", ["", "rest.ensembl.org", "ftp://x", "https://"])
def test_what_is_no_address_is_refused_with_the_variables_name(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("CLEARANCE_RESEARCH_ENSEMBL", address)
    with pytest.raises(SettingsError, match="CLEARANCE_RESEARCH_ENSEMBL"):
        Endpoints.read()


def test_a_slash_at_the_end_does_not_matter() -> None:
    assert Endpoints(ncbi="http://127.0.0.1:1/").ncbi == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("host", "key", "rate"),
    [
        ("rest.ensembl.org", None, 15),
        ("eutils.ncbi.nlm.nih.gov", None, 3),
        ("eutils.ncbi.nlm.nih.gov", "k", 10),
        ("mygene.info", None, 5),
    ],
)
def test_a_service_is_asked_as_fast_as_it_allows(host: str, key: str | None, rate: int) -> None:
    assert Endpoints(ncbi_api_key=SecretStr(key) if key else None).pace().rate(host) == rate


def test_a_key_is_shown_nowhere() -> None:
    assert "very-secret" not in repr(Endpoints(ncbi_api_key=SecretStr("very-secret")))

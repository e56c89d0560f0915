"""The research object of a run, read by the library that archives use."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from rocrate.rocrate import ROCrate  # type: ignore[import-untyped]  # it has no types

from clearance.apps.research.hitl import HITLDecision
from tests.research.reported import RUN, InProcess, Reported


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    """A run with a revision and a failed step."""
    executor = InProcess(broken={"translate": "the step took too long"})
    with Reported.open(tmp_path_factory.mktemp("crate"), executor=executor) as opened:
        opened.pending()
        opened.decide(HITLDecision.REVISE, changes={"exclude": ["gc-profile"]})
        opened.decide(HITLDecision.APPROVE, message="go")
        yield opened


@pytest.fixture(scope="module")
def graph(lab: Reported) -> dict[str, dict[str, Any]]:
    """The entities of the crate, by id."""
    entities = json.loads(lab.text("ro-crate-metadata.json"))["@graph"]
    found = {each["@id"]: each for each in entities}
    assert len(found) == len(entities)
    return found


def test_the_library_reads_the_crate_of_a_run_folder(lab: Reported) -> None:
    crate = ROCrate(lab.research.store.folder(RUN))
    assert crate.mainEntity["name"] == "Research plan of BRCA1, version 2"
    assert "report.html" in {each.id for each in crate.data_entities}


def test_every_file_is_there_with_its_checksum_and_format(
    lab: Reported, graph: dict[str, dict[str, Any]]
) -> None:
    parts = {each["@id"] for each in graph["./"]["hasPart"]}
    kept = {file.name for file in lab.research.store.files(RUN)} - {"ro-crate-metadata.json"}
    assert parts == kept
    for name in parts:
        content = lab.research.store.read(RUN, name)
        assert graph[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert graph[name]["contentSize"] == str(len(content))
        assert "/" in graph[name]["encodingFormat"]


def test_every_reference_leads_to_an_entity_or_to_a_standard(graph: dict[str, dict[str, Any]]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if value.keys() == {"@id"}:
                yield value["@id"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    known_elsewhere = ("https://w3id.org/ro/crate/", "http://schema.org/")
    named = {name for entity in graph.values() for name in references(entity)}
    assert {name for name in named if not name.startswith(known_elsewhere)} <= set(graph)


def test_the_crate_says_what_the_specification_asks_of_its_root(graph: dict[str, dict[str, Any]]) -> None:
    descriptor, root = graph["ro-crate-metadata.json"], graph["./"]
    assert descriptor["about"] == {"@id": "./"}
    assert {"@id": "https://w3id.org/ro/crate/1.1"} in descriptor["conformsTo"]
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    assert root["mainEntity"] == {"@id": "plan.v2.json"}
    assert "ComputationalWorkflow" in graph["plan.v2.json"]["@type"]
    assert graph["#run"]["instrument"] == root["mainEntity"]


def test_steps_are_actions_that_failed_or_not(graph: dict[str, dict[str, Any]]) -> None:
    assert graph["#step-translate"]["actionStatus"] == {"@id": "http://schema.org/FailedActionStatus"}
    assert graph["#step-translate"]["error"] == "the step took too long"
    done = graph["#step-codon-usage"]
    assert done["actionStatus"] == {"@id": "http://schema.org/CompletedActionStatus"}
    assert {"@id": "steps/codon-usage/codon-usage.json"} in done["result"]
    assert done["object"] == [{"@id": "exon11.fasta"}]


def test_people_are_named_by_their_ids_alone(graph: dict[str, dict[str, Any]]) -> None:
    people = [each for each in graph.values() if each["@type"] == "Person"]
    assert people == [{"@id": "#person-ann", "@type": "Person", "name": "ann"}]
    decisions = [each for each in graph.values() if each["@type"] == "AssessAction"]
    assert [(each["name"], each["object"]["@id"]) for each in decisions] == [
        ("revise at S4_plan", "plan.v1.json"),
        ("approve at S4_plan", "plan.v2.json"),
    ]


def test_data_keep_the_licence_of_their_source(graph: dict[str, dict[str, Any]]) -> None:
    licence = graph["exon11.fasta"]["license"]["@id"]
    assert graph[licence]["name"] == "BSD-3 (cogent3)"

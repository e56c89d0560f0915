"""The research object: RO-Crate 1.1 metadata of a run, so that archives and other programs can read it.

Follows the profiles Process Run Crate and Workflow Run Crate 0.5. Written by hand: what libraries write has
the time of writing in it, and the same records must give the same bytes. People are named by their ids alone.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from clearance.apps.research.plan import Plan, Step
from clearance.apps.research.report.facts import Records
from clearance.apps.research.report.outline import ANALYSIS
from clearance.apps.research.report.proceedings import PROCEEDINGS
from clearance.apps.research.report.tables import SUMMARY
from clearance.apps.research.run_store import plan_file
from clearance.store.run_files import RunFile

CRATE = "ro-crate-metadata.json"
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_LANGUAGE = "#research-plan-v1"
_ENGINE = "#clearance"
_RUN = "#run"
Entity = dict[str, Any]


def crate(
    records: Records,
    plan: Plan,
    kept: Sequence[RunFile],
    *,
    forms: Mapping[str, str],
    types: Mapping[str, str],
) -> str:
    """Return `ro-crate-metadata.json`, of the files that the run has kept and of the report's own `forms`.

    `forms` are texts by name, as they will be kept; `types` are their media types.
    """
    said = records.document(PROCEEDINGS)
    licences = {each.uri: each.licence for each in plan.inputs}
    files = [*_files(kept, licences), *_forms(forms, types)]
    graph = [
        _descriptor(),
        _root(said, plan, files),
        *_profiles(),
        *_workflow(files, plan),
        *_actions(records, said, plan, known={each["@id"] for each in files}),
        *_software(records, said, plan),
        *_decisions(said, plan),
        *_people(said),
        *_licences(licences),
        *(each for each in files if each["@id"] != plan_file(plan.version)),
    ]
    return json.dumps({"@context": _CONTEXT, "@graph": graph}, ensure_ascii=False, indent=1) + "\n"


def _descriptor() -> Entity:
    return {
        "@id": CRATE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": [
            {"@id": "https://w3id.org/ro/crate/1.1"},
            {"@id": "https://w3id.org/workflowhub/workflow-ro-crate/1.0"},
        ],
    }


def _root(said: Mapping[str, Any], plan: Plan, files: list[Entity]) -> Entity:
    return {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Research run {plan.run_id}: {plan.subject.symbol}",
        "description": plan.objective,
        "datePublished": said["written_at"],
        "conformsTo": [_ref(each) for each in _PROFILES],
        "license": "The data keep the licences of their sources; see the license of each file.",
        "hasPart": [_ref(each["@id"]) for each in files],
        "mainEntity": _ref(plan_file(plan.version)),
        "mentions": [_ref(_RUN), *(_ref(f"#step-{step.id}") for step in plan.steps)],
        "author": _ref(_person_id(said["run"]["requester"])),
    }


def _profiles() -> Iterator[Entity]:
    for address, (name, number) in _PROFILES.items():
        yield {"@id": address, "@type": "CreativeWork", "name": name, "version": number}


def _workflow(files: list[Entity], plan: Plan) -> Iterator[Entity]:
    """Yield the plan as the workflow that was carried out, with the language that it is written in."""
    name = plan_file(plan.version)
    file = next(each for each in files if each["@id"] == name)
    yield {
        **file,
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": f"Research plan of {plan.subject.symbol}, version {plan.version}",
        "programmingLanguage": _ref(_LANGUAGE),
        "creator": _ref(_author_id(plan.created_by.name, plan.created_by.kind)),
    }
    yield {"@id": _LANGUAGE, "@type": "ComputerLanguage", "name": "research_plan.v1"}


def _actions(
    records: Records, said: Mapping[str, Any], plan: Plan, *, known: Collection[str]
) -> Iterator[Entity]:
    """Yield the run and its steps as actions."""
    analysis = records.document(ANALYSIS) if ANALYSIS in records.known else {"steps": []}
    ended = {step["step"]: step for step in analysis["steps"]}
    calls = {each["step"]: each for each in said["calls"] if each["plan_sha256"] == plan.sha256}
    steps = [_step(step, ended.get(step.id, {}), plan, known=known) for step in plan.steps]
    yield {
        "@id": _RUN,
        "@type": "CreateAction",
        "name": f"Run {plan.run_id}",
        "instrument": _ref(plan_file(plan.version)),
        "agent": _ref(_person_id(said["run"]["requester"])),
        "startTime": said["run"]["created_at"],
        "endTime": said["written_at"],
        "object": [_ref(each.uri) for each in plan.inputs if each.uri in known],
        "result": [each for step in steps for each in step["result"]],
    }
    for step, action in zip(plan.steps, steps, strict=True):
        call = calls.get(step.id, {})
        times = {"startTime": call.get("started_at"), "endTime": call.get("ended_at")}
        yield action | {name: value for name, value in times.items() if value}


def _step(step: Step, ended: Mapping[str, Any], plan: Plan, *, known: Collection[str]) -> Entity:
    uris = {each.id: each.uri for each in plan.inputs}
    used = [uris.get(source, f"steps/{source}") for source in step.inputs.values()]
    state = ended.get("state", "not carried out")
    status = "CompletedActionStatus" if state == "done" else "FailedActionStatus"
    return {
        "@id": f"#step-{step.id}",
        "@type": "CreateAction",
        "name": f"Step {step.id}",
        "instrument": _ref(_template_id(step)),
        "agent": _ref(_ENGINE),
        "object": [_ref(each) for each in used if each in known],
        "result": [_ref(each["name"]) for each in ended.get("outputs", ())],
        "actionStatus": _ref(f"http://schema.org/{status}"),
        **({} if state == "done" else {"error": str(ended.get("error", state))}),
    }


def _software(records: Records, said: Mapping[str, Any], plan: Plan) -> Iterator[Entity]:
    """Yield what carried the steps out: the tools with their versions, the templates with their hashes."""
    engine = ("clearance", said["tools"]["clearance"])
    for name, version in sorted({engine, *_tools(records, said)}):
        yield {
            "@id": _ENGINE
            if (name, version) == engine
            else f"#software-{quote(f'{name}-{version}', safe='')}",
            "@type": "SoftwareApplication",
            "name": name,
            "version": version,
        }
    for step in {_template_id(step): step for step in plan.steps}.values():
        yield {
            "@id": _template_id(step),
            "@type": "SoftwareApplication",
            "name": step.template.name,
            "version": step.template.version,
            "identifier": f"sha256:{step.template.sha256}",
            "softwareRequirements": _ref(_ENGINE),
        }


def _decisions(said: Mapping[str, Any], plan: Plan) -> Iterator[Entity]:
    """Yield what people decided, as actions on the plan's versions."""
    names = {each["sha256"]: each["file"] for each in said["plans"]}
    decided = ((review, item) for review in said["reviews"] for item in review["decisions"])
    for number, (review, item) in enumerate(decided, start=1):
        yield {
            "@id": f"#decision-{number}",
            "@type": "AssessAction",
            "name": f"{item['type']} at {review['gate']}",
            "agent": _ref(_person_id(item["by"])),
            "endTime": item["at"],
            "object": _ref(names.get(review["plan_sha256"], plan_file(plan.version))),
            **({"description": item["reason"]} if item["reason"] else {}),
        }


def _tools(records: Records, said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield tools with their versions, of the report and of each step, which may have run elsewhere."""
    yield from said["tools"].items()
    for name in records.known:
        if name.startswith("steps/") and name.endswith(f"/{SUMMARY}"):
            yield from records.document(name)["tools"].items()


def _people(said: Mapping[str, Any]) -> Iterator[Entity]:
    deciders = {item["by"] for review in said["reviews"] for item in review["decisions"]}
    authors = {each["author"] for each in said["plans"] if each["author_kind"] == "human"}
    for person in sorted({said["run"]["requester"], *deciders, *authors}):
        yield {"@id": _person_id(person), "@type": "Person", "name": person}
    for author, kind in sorted({(each["author"], each["author_kind"]) for each in said["plans"]}):
        if kind != "human":
            yield {"@id": _author_id(author, kind), "@type": "SoftwareApplication", "name": author}


def _licences(licences: Mapping[str, str]) -> Iterator[Entity]:
    for licence in sorted(set(licences.values())):
        yield {"@id": _licence_id(licence), "@type": "CreativeWork", "name": licence}


def _files(kept: Sequence[RunFile], licences: Mapping[str, str]) -> Iterator[Entity]:
    for each in kept:
        entity = _file(each.name, each.media_type, sha256=each.sha256, size=each.size)
        if each.name in licences:
            entity["license"] = _ref(_licence_id(licences[each.name]))
        yield entity


def _forms(forms: Mapping[str, str], types: Mapping[str, str]) -> Iterator[Entity]:
    for name, text in forms.items():
        content = text.encode()
        sha256 = hashlib.sha256(content).hexdigest()
        yield _file(name, types[name], sha256=sha256, size=len(content))


def _file(name: str, media_type: str, *, sha256: str, size: int) -> Entity:
    return {
        "@id": quote(name),
        "@type": "File",
        "name": name,
        "encodingFormat": media_type,
        "contentSize": str(size),
        "sha256": sha256,
    }


def _ref(name: str) -> dict[str, str]:
    return {"@id": name}


def _person_id(person: str) -> str:
    return f"#person-{quote(person, safe='')}"


def _author_id(author: str, kind: str) -> str:
    return _person_id(author) if kind == "human" else f"#planner-{quote(author, safe='')}"


def _template_id(step: Step) -> str:
    return f"#template-{step.template.name}-{step.template.sha256[:12]}"


def _licence_id(licence: str) -> str:
    return f"#licence-{hashlib.sha256(licence.encode()).hexdigest()[:12]}"

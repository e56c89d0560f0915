"""`docs/http.md` and the application say the same: every route, parameter, field and problem."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clearance import errors
from clearance.apps.research.errors import PlanError, SequenceInputError
from clearance.errors import ClearanceError, error_code
from clearance.web.problems import CODES
from tests.databases import Databases
from tests.house.sources import ROOT
from tests.web.served import Served
from tests.web.test_access import PUBLIC, ROUTES

PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
_ALL = sorted(ROUTES.keys() | PUBLIC)


@pytest.fixture(scope="module")
def document(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Give the OpenAPI document."""
    folder: Path = tmp_path_factory.mktemp("docs")
    with Served.open(databases.migrated("sqlite", folder), home=folder, research=True) as served:
        yield served.http.get("/api/v1/openapi.json").json()


def _section(route: tuple[str, str]) -> str:
    method, path = route
    _, _, rest = PAGE.partition(f"\n### `{method.upper()} {path}`\n")
    return re.split(r"\n##", rest)[0]


def _words(text: str) -> set[str]:
    return set(re.findall(r"`([^`\s]+)`", text))


def _fields(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of what a body may have at its top."""
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            yield from document["components"]["schemas"][each["$ref"].rpartition("/")[2]]["properties"]


def test_every_route_has_its_section_and_every_section_its_route(document: dict[str, Any]) -> None:
    routes = {f"{method.upper()} {path}" for path, ways in document["paths"].items() for method in ways}
    assert set(re.findall(r"\n### `(.*)`\n", PAGE)) == routes


@pytest.mark.parametrize("route", _ALL, ids=" ".join)
def test_every_parameter_and_field_of_a_request_is_documented(
    document: dict[str, Any], route: tuple[str, str]
) -> None:
    method, path = route
    operation = document["paths"][path][method]
    wanted = {each["name"] for each in operation.get("parameters", ()) if each["in"] != "path"}
    body = operation.get("requestBody", {"content": {"application/json": {"schema": {}}}})
    wanted |= set(_fields(document, body["content"]["application/json"]["schema"]))
    assert not wanted - _words(_section(route))


def test_every_field_of_an_answer_is_documented(document: dict[str, Any]) -> None:
    shapes = document["components"]["schemas"].values()
    assert not {name for shape in shapes for name in shape.get("properties", ())} - _words(PAGE)


def test_every_problem_is_documented_with_its_status() -> None:
    known = {(status, code) for status, code in CODES} | {(500, "bug")}
    # What a run comes upon later ends the run; these are answered to who sends them.
    answered = [*vars(errors).values(), PlanError, SequenceInputError]
    for each in answered:
        if isinstance(each, type) and issubclass(each, ClearanceError) and each is not ClearanceError:
            # The class alone tells the word; its own constructor may want much more.
            known.add((each.status, error_code(each.__new__(each))))
    rows = re.findall(r"\n\| (\d{3}) \|([^|]*)\|", PAGE)
    documented = {(int(status), code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}
    assert documented == {(status, code) for status, code in known if status >= 400}


def test_every_metric_is_documented(served: Served) -> None:
    text = served.http.get("/metrics", headers=served.key()).text
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    undocumented = {name.removesuffix("_created") for name in names} - _words(PAGE)
    assert not undocumented

"""Static files: what comes from others is unchanged, and browsers keep what has not changed."""

import gzip
import hashlib
import re
import tomllib

import pytest

from clearance.web.pages.static import FOLDER, address, files
from tests.house.sources import ROOT
from tests.pages.site import Site

VENDOR = FOLDER / "vendor"
RECORDED = tomllib.loads((VENDOR / "vendor.toml").read_text())["htmx"]["files"]


def test_what_comes_from_others_is_exactly_what_was_recorded() -> None:
    there = {path.name for path in VENDOR.iterdir()} - {"vendor.toml"}
    assert there == set(RECORDED)
    for name, said in RECORDED.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == said["sha256"], name


@pytest.mark.parametrize("name", ["clearance.css", "clearance.js", "icon.svg", "vendor/htmx.js"])
def test_a_file_is_kept_for_ever_under_the_address_of_its_content(site: Site, name: str) -> None:
    answer = site.browser().get(address(name))
    assert answer.status_code == 200
    assert answer.content == (FOLDER / name).read_bytes()
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_page_from_before_an_update_gets_the_present_file_and_does_not_keep_it(site: Site) -> None:
    answer = site.browser().get("/static/000000000000/clearance.css")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "name", ["vendor/vendor.toml", "%2e%2e/static.py", "no.css", "", "..%2fstatic.py", "%00"]
)
def test_nothing_else_is_sent(site: Site, name: str) -> None:
    assert site.browser().get(f"/static/000000000000/{name}").status_code == 404


def test_files_are_packed_once_and_small() -> None:
    assert all(gzip.decompress(each.packed) == each.content for each in files().values())
    assert sum(len(each.packed) for each in files().values()) < 30_000


def test_our_own_style_and_script_stay_small() -> None:
    assert len(files()["clearance.css"].content) < 16_000
    assert len(files()["clearance.js"].content.decode().splitlines()) <= 200


def test_what_htmx_reads_of_an_element_says_that_the_page_itself_holds_it() -> None:
    # Without the nonce hx-csp strips every `hx-…` of the element, and the page only complains at times.
    templates = [(path, path.read_text()) for path in (ROOT / "src").rglob("*.html")]
    tags = [
        (path.name, tag)
        for path, text in templates
        for tag in re.findall(r"<\w(?:{[{%].*?[%}]}|[^<>])*>", text)
    ]
    ours = [(name, tag) for name, tag in tags if re.search(r"\shx-(?!nonce)", tag)]
    assert len(ours) >= 14
    assert [each for each in ours if 'hx-nonce="{{ nonce }}"' not in each[1]] == []

"""`docs/pages.md` names every page that the application has, and no other."""

import re

from fastapi.routing import APIRoute

from clearance.apps.research import pages as research_pages
from clearance.web import pages
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "pages.md").read_text(encoding="utf-8")
# Parts of pages, what they load, and the steps of a form: nobody goes there by name.
PARTS = re.compile(
    r"/static/|/events|/login/|/settings/|/audit/|/reviews/\{review_id\}/moved|/pipeline/\{run_id\}/"
)


def _addresses() -> set[str]:
    routes = [each for router in (*pages.routers(), *research_pages.routers()) for each in router.routes]
    shown = [each.path for each in routes if isinstance(each, APIRoute) and "GET" in (each.methods or ())]
    return {path for path in (each.replace(":path", "") for each in shown) if not PARTS.match(path)}


def test_every_page_is_named_and_no_other() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `/")]
    named = {path for row in rows for path in re.findall(r"`(/[^`]*)`", row.split("|")[1])}
    assert named == _addresses()

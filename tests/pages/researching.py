"""Research runs as somebody works on them by their pages, with scripts off."""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter
from httpx2 import Response

from clearance.apps.research.routes import routers_of
from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.setup import open_research
from clearance.workspace import Clearance
from tests.pages.reviewing import Shown
from tests.pages.site import Browser, Page, Site
from tests.research.pipelines import PATIENCE, Lab

RUN = "/pipeline/run1"
_TAGS = re.compile(r"<[^>]*>")


@dataclass
class Bench:
    """A served workspace with the pipeline; `browser` is that of `ann`, who asked for the runs."""

    site: Site
    lab: Lab
    browser: Browser

    @classmethod
    @contextmanager
    def open(cls, url: str, *, home: Path, worker: bool = True) -> Iterator["Bench"]:
        """Open the workspace and serve it in this process."""
        made: list[ResearchRuns] = []

        def routers(workspace: Clearance) -> Sequence[APIRouter]:
            made.append(open_research(workspace))
            return routers_of(made[0])

        with Site.open(url, home=home, routers=routers) as site:
            if worker:
                site.workspace.worker.start()
            yield cls(site, Lab(site.workspace, made[0]), site.signed_in())

    def shown(self, path: str = RUN, *, browser: Browser | None = None) -> Shown:
        """Return a page as its parser sees it."""
        answer = (browser or self.browser).get(path)
        assert answer.status_code == 200, answer.text
        return Shown.read(answer.text)

    def text(self, path: str = RUN) -> str:
        """Return the text of a page, with single spaces."""
        return self.browser.page(path).text

    def decide(
        self, decision: str, *, page: str = RUN, browser: Browser | None = None, **typed: str
    ) -> Response:
        """Fill in the decision's form of a page and press a button of it."""
        shown = self.shown(page, browser=browser)
        return self.send(shown, decision, browser=browser, **typed)

    def send(self, shown: Shown, decision: str, *, browser: Browser | None = None, **typed: str) -> Response:
        """Press a button of a form that was loaded before; wishes for methods are boxes to tick."""
        ticked = [(name, typed.pop(name)) for name in ("exclude", "require") if name in typed]
        pairs = [*shown.sent("decision", decision, **typed), *ticked]
        data: dict[str, list[str]] = {}
        for name, text in pairs:
            data.setdefault(name, []).append(text)
        return (browser or self.browser).http.post(
            shown.action, data=data, headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=False
        )

    def wait(self, run_id: str = "run1") -> str:
        """Return the stage at which a run stops."""
        return self.lab.research.wait_for(run_id, wait=PATIENCE).stage.value


def read(answer: Response) -> str:
    """Return the text of an answer, with single spaces."""
    return Page(answer.text).text


def picture(answer: str) -> str:
    """Return what the first picture of a page says to who does not see it."""
    found = re.search(r"<desc[^>]*>(.*?)</desc>", answer, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def section(answer: str, heading: str) -> str:
    """Return the text between a heading and the next one."""
    found = re.search(rf"<h[23][^>]*>\s*{re.escape(heading)}.*?</h[23]>(.*?)(?=<h[23])", answer, re.DOTALL)
    assert found is not None, heading
    return " ".join(html.unescape(_TAGS.sub(" ", found[1])).split())

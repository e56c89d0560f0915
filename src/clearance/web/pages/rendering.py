"""Rendering: a page from its template, or only the part of it that htmx asked for."""

import gzip
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup, escape
from starlette.routing import Match

from clearance.visible import pieces, visible
from clearance.web.pages import static
from clearance.web.pages.telling import said

if TYPE_CHECKING:
    from clearance.web.pages.viewer import Viewer

PLACES = (
    ("Inbox", "/"),
    ("Chat", "/chat"),
    ("Pipeline", "/pipeline"),
    ("Runs", "/runs"),
    ("Audit", "/audit"),
    ("Settings", "/settings"),
)
"""What the sidebar leads to, as far as the application has it."""
_LEVEL = 5
"""How hard a page is packed: more takes longer than it saves."""


def render(
    request: Request,
    template: str,
    *,
    viewer: "Viewer | None" = None,
    status: int = 200,
    part: str | None = None,
    **context: Any,
) -> HTMLResponse:
    """Return the page of a template, whose context also has what `base.html` and its parts need.

    A program's own templates lie in the folder `templates` of a package of its, and are named `package:name`.
    `part` names the block that is sent alone when htmx asks for a part of the page.
    """
    found = environment().get_template(template)
    values = {
        **context,
        "viewer": viewer,
        "request": request,
        "nonce": nonce(request),
        "places": _places(request),
    }
    alone = part is not None and wants_part(request)
    return _packed(request, _block(found, part or "", values) if alone else found.render(values), status)


def wants_part(request: Request) -> bool:
    """Whether htmx asks, and for less than the whole page."""
    return request.headers.get("HX-Request") == "true" and request.headers.get("HX-Request-Type") == "partial"


def nonce(request: Request) -> str:
    """Return the nonce of this answer, which its scripts and its elements with htmx attributes carry."""
    state = request.scope.setdefault("state", {})
    if "nonce" not in state:
        state["nonce"] = secrets.token_urlsafe(16)
    found: str = state["nonce"]
    return found


@cache
def environment() -> Environment:
    """Return the templates' environment: everything is escaped, and a name that is not there is an error."""
    made = Environment(
        loader=_Templates(),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        span=span,
        visible=visible,
        foreign=foreign,
        until=until,
        left=left,
        age=age,
        day=day,
        iso=datetime.isoformat,
        said=said,
    )
    made.globals.update(static=static.address)
    # As globals, so that a block that is rendered alone has them too.
    made.globals["ui"] = made.get_template("parts/ui.html").module
    return made


def foreign(text: str, *, lines: bool = False) -> Markup:
    """Return text from outside for a page: escaped, and with what would not be seen as a marked code."""
    found = pieces(text, lines=lines)
    if len(found) == 1 and not found[0].marked:
        return escape(text)
    return Markup().join(
        Markup('<b class="code">{}</b>').format(e.text) if e.marked else e.text for e in found
    )


def until(instant: datetime, now: datetime) -> str:
    """Return how long it is to an instant: `13m 40s`, `1h 29m`, `3d 4h`; `overdue` when it is over."""
    length = instant - now
    return "overdue" if length <= timedelta(0) else span(length)


def left(instant: datetime, now: datetime) -> int:
    """Return the seconds to an instant, negative when it was before."""
    return int((instant - now).total_seconds())


def age(instant: datetime, now: datetime) -> str:
    """Return how long ago an instant was: `13m 40s ago`."""
    past = now - instant
    return "now" if past < timedelta(seconds=1) else f"{span(past)} ago"


def day(instant: datetime) -> str:
    """Return an instant in full, in UTC: `2 Mar 2026, 09:00:12 UTC`."""
    return f"{instant.day} {instant:%b %Y, %H:%M:%S} UTC"


class _Templates(BaseLoader):
    """Finds the templates here by their names, and those of a program as `package:name`."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return the text of a template."""
        package, _, name = template.rpartition(":")
        return _folder(package or "clearance.web.pages").get_source(environment, name)


@cache
def _folder(package: str) -> PackageLoader:
    return PackageLoader(package, "templates")


def span(length: timedelta) -> str:
    """Return a length of time: `13m 40s`, `1h 29m`, `3d 4h`."""
    seconds = int(length.total_seconds())
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days}d {hours}h"
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {seconds % 60:02}s" if minutes else f"{seconds}s"


def _packed(request: Request, html: str, status: int) -> HTMLResponse:
    """Return the answer, packed where only the viewer can have asked for it.

    What another site has a browser ask for, again and again, goes out as it is: from the length of packed
    answers it could guess what stands in them beside what it wrote into the address.
    """
    headers = {"Vary": "HX-Request-Type, HX-Request, Accept-Encoding, Sec-Fetch-Site"}
    ours = request.headers.get("Sec-Fetch-Site") in ("same-origin", "none")
    if not ours or "gzip" not in request.headers.get("Accept-Encoding", ""):
        return HTMLResponse(html, status, headers)
    packed = gzip.compress(html.encode(), _LEVEL, mtime=0)
    return HTMLResponse(packed, status, {**headers, "Content-Encoding": "gzip"})


def _block(template: Template, name: str, values: dict[str, Any]) -> str:
    return "".join(template.blocks[name](template.new_context(values)))


def _places(request: Request) -> list[tuple[str, str]]:
    app: FastAPI = request.app
    known: list[tuple[str, str]] | None = getattr(app.state, "places", None)
    if known is None:
        known = [(label, path) for label, path in PLACES if leads_somewhere(app, path)]
        app.state.places = known
    return known


def leads_somewhere(app: FastAPI, path: str) -> bool:
    """Whether the application has a page under this path."""
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
    return any(route.matches(dict(scope))[0] is Match.FULL for route in app.routes)

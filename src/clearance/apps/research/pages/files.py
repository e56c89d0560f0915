"""The files of a run as pages show them: a table, what a text says, a picture, and the report itself."""

import json
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from clearance.apps.research.pages.addresses import HERE, TEMPLATES, address
from clearance.apps.research.routes_shared import RunId, Runs, file_answer, seen
from clearance.apps.research.runs import ResearchRuns
from clearance.errors import NotFoundError
from clearance.form.source import indented, read_source
from clearance.store import run_files
from clearance.store.run_files import RunFile
from clearance.web.access import Workspace
from clearance.web.pages.rendering import render
from clearance.web.pages.viewer import Signed

router = APIRouter(include_in_schema=False)

MOST_SHOWN = 64 * 1024
"""Bytes of a text that a page shows."""
PICTURES = frozenset({"image/svg+xml", "image/png"})
PAGES = frozenset({"text/html"})
_TEXTS = ("text/", "application/json", "application/ld+json")


@dataclass(frozen=True)
class FileRow:
    """One file in a list. `look` is where it is shown, None where it can only be saved."""

    file: RunFile
    size: str
    save: str
    look: str | None


def rows(research: ResearchRuns, run_id: str) -> list[FileRow]:
    """Return the files of a run, the report first, then by name."""
    found = sorted(research.store.files(run_id), key=lambda file: (file.media_type not in PAGES, file.name))
    return [_row(run_id, file) for file in found]


@router.get(f"{HERE}/{{run_id}}/files/{{name:path}}")
def send(
    request: Request,
    here: Workspace,
    research: Runs,
    viewer: Signed,
    run_id: RunId,
    name: str,
    *,
    open: bool = False,
) -> Response:
    """Send a file to be saved; with `open` one that a browser shows, which runs and reaches nothing there."""
    seen(research, run_id, by=viewer.person)
    with here.database.read() as tx:
        file = None if "\0" in name else run_files.file_of(tx, run_id, name)
    shown = open and file is not None and file.media_type in PICTURES | PAGES
    return file_answer(here, run_id, name, known=request.headers.get("If-None-Match"), opened=shown)


@router.get(f"{HERE}/{{run_id}}/look/{{name:path}}")
def look(
    request: Request, here: Workspace, research: Runs, viewer: Signed, run_id: RunId, name: str
) -> Response:
    """Show a text or a picture among the files of a run."""
    run = seen(research, run_id, by=viewer.person)
    with here.database.read() as tx:
        file = None if "\0" in name else run_files.file_of(tx, run_id, name)
        content = None if file is None else run_files.content_of(tx, run_id, name)
    if file is None or content is None or _look(run_id, file) is None:
        raise NotFoundError(f"Run {run_id} has no file of that name that a page could show.")
    is_text = file.media_type not in PICTURES
    text = content[:MOST_SHOWN].decode("utf-8", "replace") if is_text else None
    lines = _on_lines(text) if text is not None and file.media_type.endswith("json") else None
    return render(
        request,
        f"{TEMPLATES}:file.html",
        viewer=viewer,
        run=run,
        back=address(run_id),
        row=_row(run_id, file),
        symbol=research.request(run_id).subject,
        text=lines or text,
        indented=lines is not None,
        cut=file.size - MOST_SHOWN if is_text and file.size > MOST_SHOWN else 0,
    )


def _on_lines(text: str) -> str | None:
    """Return JSON on lines, each number and text as it was written; None for what is not JSON, or cut."""
    try:
        json.loads(text)
        return indented(read_source(text))
    except (ValueError, RecursionError):
        return None


def _row(run_id: str, file: RunFile) -> FileRow:
    return FileRow(file, _size(file.size), _address(run_id, "files", file.name), _look(run_id, file))


def _look(run_id: str, file: RunFile) -> str | None:
    if file.media_type in PAGES:
        return f"{_address(run_id, 'files', file.name)}?open=1"
    if file.media_type in PICTURES or file.media_type.startswith(_TEXTS):
        return _address(run_id, "look", file.name)
    return None


def _address(run_id: str, how: str, name: str) -> str:
    return f"{address(run_id)}/{how}/{quote(name)}"


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.1f} kB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MB"

"""Static files: the style sheet and the scripts, each under an address that changes with its content."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from clearance.errors import NotFoundError

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parent / "static"
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class StaticFile:
    """One file, as it is and packed."""

    kind: str
    content: bytes
    packed: bytes
    digest: str


@cache
def files() -> dict[str, StaticFile]:
    """Return every file that browsers may have, by its name."""
    return {
        path.relative_to(FOLDER).as_posix(): _read(path)
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in _KINDS
    }


def address(name: str) -> str:
    """Return the address of a file."""
    return f"/static/{files()[name].digest}/{name}"


@router.get("/static/{digest}/{name:path}")
async def static_file(request: Request, digest: str, name: str) -> Response:
    """Send a file, for ever when the address is of this content: else a page from before an update asks."""
    found = files().get(name)
    if found is None:
        raise NotFoundError("There is no such file.")
    headers = {
        "Cache-Control": _FOR_EVER if digest == found.digest else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(found.packed, media_type=found.kind, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.content, media_type=found.kind, headers=headers)


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return StaticFile(_KINDS[path.suffix], content, gzip.compress(content, 9, mtime=0), digest)

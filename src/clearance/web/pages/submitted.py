"""What a form sends: read in full, bounded, and exactly as it was sent."""

import re
from urllib.parse import parse_qsl

from fastapi import Request
from starlette.datastructures import ImmutableMultiDict, UploadFile
from starlette.exceptions import HTTPException

from clearance.errors import InvalidInputError

MAX_FIELDS = 2000
"""Fields that a form may send: large forms of arguments have hundreds."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")
_URLENCODED, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


class Submitted(ImmutableMultiDict[str, str]):
    """The fields of a form in their order; a name may come again. Line ends are as the browser sent them.

    `get` gives the last of a name, `getlist` all, `multi_items` every pair.
    """


async def read_form(request: Request, *, files: int = 0) -> Submitted:
    """Return what a form sent, whoever did. A page for those who are signed in takes `viewer.Form` instead.

    So many `files` may come along, whose texts then stand for their fields. Raises `InvalidInputError` for
    what is no form or no text, and the problem 415 for another kind of body.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _URLENCODED:
        return _urlencoded(await request.body())
    if kind != _MULTIPART:
        raise HTTPException(415, "This page takes what its form sends, and nothing else.")
    async with request.form(max_files=files, max_fields=MAX_FIELDS) as form:
        return Submitted([(name, await _text(value)) for name, value in form.multi_items()])


async def _text(value: UploadFile | str) -> str:
    """Return a field's text, or that of a file; browsers send an empty one where none was chosen."""
    if isinstance(value, str):
        return value
    try:
        return (await value.read()).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInputError("The file is no text in UTF-8.") from None


def token_of(form: Submitted) -> str | None:
    """Return what tells one form from every other: what is sent twice with it is done once."""
    token = form.get("token", "")
    return token if _TOKEN.fullmatch(token) else None


def _urlencoded(body: bytes) -> Submitted:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise InvalidInputError("The form is not UTF-8.") from None
    except ValueError:
        raise InvalidInputError(f"A form has at most {MAX_FIELDS} fields.") from None
    return Submitted(pairs)

"""What a run was answered: kept in the run's folder, so that the run can be repeated from it alone.

A request has one file `<key>.json`; bodies stand beside it as `<sha256>.body`. That a source gave no answer
is kept, too: a replayed run takes the same turns as the run that was recorded.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from clearance.apps.research.errors import NotRecordedError, RecordMismatchError, SourceUnavailableError
from clearance.apps.research.http.response import Fetched, Origin, public, request_key
from clearance.toolcall import canonical


class Recording:
    """The responses of one run, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, params: Mapping[str, str], fetched: Fetched, *, cached_only: bool = False) -> None:
        """Keep a response. The body is on disk before the file that names it."""
        self._write(f"{fetched.sha256}.body", fetched.body)
        entry = {
            "url": fetched.url,
            "params": public(params),
            "status": fetched.status,
            "sha256": fetched.sha256,
            "etag": fetched.etag,
            "retrieved_at": fetched.retrieved_at.isoformat(),
            "origin": fetched.origin.value,
            "stale": fetched.stale,
        }
        self._write_entry(fetched.url, params, entry, cached_only=cached_only)

    def keep_failure(
        self, url: str, params: Mapping[str, str], reason: str, *, cached_only: bool = False
    ) -> None:
        """Keep that there was no answer, and why."""
        entry = {"url": url, "params": public(params), "unavailable": reason}
        self._write_entry(url, params, entry, cached_only=cached_only)

    def replay(self, url: str, params: Mapping[str, str], *, cached_only: bool = False) -> Fetched:
        """Return what the recorded run was answered, or raise the `SourceUnavailableError` that it met.

        Raises `NotRecordedError` for a request that the run never made, `RecordMismatchError` for a body
        that is not the one that was recorded.
        """
        entry = self._read_entry(url, params, cached_only=cached_only)
        if entry is None:
            raise NotRecordedError(
                f"The record in {self._folder} has no answer of {url}. "
                "Repeat the run with the options it was recorded with, or run it live."
            )
        if "unavailable" in entry:
            raise SourceUnavailableError(entry["unavailable"])
        return replace(self._fetched(entry), origin=Origin.REPLAYED)

    def began(self, now: datetime | None) -> datetime:
        """Return when the run began: now, at the first call, and the same at every later one.

        Without `now`, as in a replay, it must have been kept: else raises `NotRecordedError`.
        """
        path = self._folder / "began.json"
        if not path.exists():
            if now is None:
                raise NotRecordedError(f"There is no record in {self._folder}. Name a run that has one.")
            self._write(path.name, canonical({"began": now.isoformat()}).encode())
        try:
            return datetime.fromisoformat(json.loads(path.read_bytes())["began"])
        except (ValueError, LookupError, TypeError):
            raise _no_record(path) from None

    def answered(self, url: str, params: Mapping[str, str], *, cached_only: bool = False) -> Fetched | None:
        """Return the response that this run was given before, as it was given; no failures."""
        entry = self._read_entry(url, params, cached_only=cached_only)
        return None if entry is None or "unavailable" in entry else self._fetched(entry)

    def _fetched(self, entry: dict[str, Any]) -> Fetched:
        path = self._folder / f"{entry['sha256']}.body"
        body = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(body).hexdigest() != entry["sha256"]:
            raise RecordMismatchError(
                f"The recorded answer of {entry['url']} in {self._folder} was changed or removed. "
                "Restore the run's folder, or run it live."
            )
        return Fetched(
            url=entry["url"],
            status=entry["status"],
            body=body,
            retrieved_at=datetime.fromisoformat(entry["retrieved_at"]),
            origin=Origin(entry["origin"]),
            etag=entry["etag"],
            stale=entry["stale"],
        )

    def _name(self, url: str, params: Mapping[str, str], *, cached_only: bool) -> str:
        return request_key(url, params) + (".cached.json" if cached_only else ".json")

    def _read_entry(self, url: str, params: Mapping[str, str], *, cached_only: bool) -> dict[str, Any] | None:
        path = self._folder / self._name(url, params, cached_only=cached_only)
        try:
            entry: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            raise _no_record(path) from None
        return entry

    def _write_entry(
        self, url: str, params: Mapping[str, str], entry: dict[str, Any], *, cached_only: bool
    ) -> None:
        self._write(self._name(url, params, cached_only=cached_only), canonical(entry).encode())

    def _write(self, name: str, content: bytes) -> None:
        """Write a file in one step: a reader, and a run after a crash, sees it whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(path).replace(self._folder / name)


def _no_record(path: Path) -> RecordMismatchError:
    return RecordMismatchError(f"{path} is not a record. Restore the run's folder, or run it live.")

"""The folder of one step: its complete outputs, and which job they belong to.

job.json       what the step was to do: template, parameters and inputs by hash
usage.json     what it used
outputs.json   its files with their hashes, written last: where it is there, the step is complete
"""

import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clearance.apps.research.executors.jobs import JobInput, StepJob, StepOutput, StepResult
from clearance.apps.research.step import LARGEST_INPUT, OUTPUTS, SUMMARY

JOB = "job.json"
USAGE = "usage.json"
LARGEST_LIST = 1_000_000
MOST_FILES = 100
LARGEST_TOTAL = 4 * LARGEST_INPUT
_OWN = (JOB, USAGE, OUTPUTS)


def job_text(job: StepJob) -> str:
    """Return what a step is to do, as text that is equal exactly when the job is the same."""
    document = {
        "run_id": job.run_id,
        "step": job.step.id,
        "template": dict(job.step.template.__dict__),
        "params": job.step.params,
        "inputs": {name: given.sha256 for name, given in job.inputs.items()},
    }
    return json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def complete(folder: Path, job: StepJob, *, out: Path | None = None) -> StepResult | None:
    """Return the result that lies in a folder; None unless it is whole and belongs to this very job."""
    kept = _read(folder / JOB, largest=LARGEST_LIST)
    if kept is None or kept != job_text(job).encode():
        return None
    outputs = read_outputs(out or folder)
    return (
        None
        if outputs is None
        else result_of(outputs, usage=object_of(_read(folder / USAGE, largest=LARGEST_LIST)))
    )


def read_outputs(folder: Path) -> tuple[StepOutput, ...] | None:
    """Return the files that `outputs.json` lists; None when one is missing, too large or not what it says."""
    files = {}
    entries = entries_of(_read(folder / OUTPUTS, largest=LARGEST_LIST))
    for entry in entries or ():
        files[entry["name"]] = _read(folder / entry["name"], largest=entry["size"])
    return outputs_of(entries, files)


def entries_of(content: bytes | None) -> list[dict[str, Any]] | None:
    """Return the list in an `outputs.json`; None when it is not one, or promises too much."""
    try:
        entries = json.loads(content or b"")["outputs"]
        names = [str(entry["name"]) for entry in entries]
        total = sum(int(entry["size"]) for entry in entries)
        for entry in entries:
            if not all(isinstance(entry[each], str) for each in ("kind", "media_type", "sha256")):
                return None
    except (ValueError, KeyError, TypeError):
        return None
    plain = all(name == Path(name).name and not name.startswith(".") for name in names)
    fits = len(names) <= MOST_FILES and total <= LARGEST_TOTAL and len(set(names)) == len(names)
    return entries if plain and fits and not set(names) & set(_OWN) else None


def outputs_of(
    entries: list[dict[str, Any]] | None, files: dict[str, bytes | None]
) -> tuple[StepOutput, ...] | None:
    """Return files as outputs; None unless each is there with the hash that the list gives."""
    outputs = []
    for entry in entries or ():
        content = files.get(entry["name"])
        if content is None or hashlib.sha256(content).hexdigest() != entry["sha256"]:
            return None
        outputs.append(
            StepOutput(entry["name"], entry["kind"], entry["media_type"], entry["sha256"], content)
        )
    return tuple(outputs) if any(each.name == SUMMARY for each in outputs) else None


def result_of(outputs: tuple[StepOutput, ...], *, usage: dict[str, Any]) -> StepResult | None:
    """Return outputs as a result; None when their summary is none."""
    try:
        summary = json.loads(next(each.content for each in outputs if each.name == SUMMARY))
        used = (str(usage.get("cpu_s", "0")), str(usage.get("wall_s", "0")), int(usage.get("peak_mb", 0)))
        tries = int(usage.get("tries", 1))
    except (ValueError, TypeError):
        return None
    if not isinstance(summary, dict):
        return None
    return StepResult(outputs, summary, None, *used, tries)


def keep_complete(job: StepJob, result: StepResult) -> None:
    """Write a complete result into the folder of its step; a crash on the way leaves it incomplete."""
    (job.folder / OUTPUTS).unlink(missing_ok=True)
    usage = {name: getattr(result, name) for name in ("cpu_s", "wall_s", "peak_mb", "tries")}
    entries = [
        {name: getattr(each, name) for name in ("name", "kind", "media_type", "sha256")}
        | {"size": len(each.content)}
        for each in result.outputs
    ]
    files = [(each.name, each.content) for each in result.outputs]
    files += [(JOB, job_text(job).encode()), (USAGE, json.dumps(usage).encode())]
    write_files(job.folder, [*files, (OUTPUTS, json.dumps({"outputs": entries}).encode())])


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write files in their order, each whole or not at all, also after a power cut."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        # Threads, too, may write the same file at once.
        part = folder / f".{name}.{os.getpid()}.{threading.get_ident()}.part"
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(folder / name)


def read_input(given: JobInput) -> bytes | None:
    """Return an input's content; None when it cannot be read, is too large, or has another hash."""
    try:
        with given.path.open("rb") as file:
            content = file.read(LARGEST_INPUT + 1)
    except OSError:
        return None
    matches = hashlib.sha256(content).hexdigest() == given.sha256
    return content if matches and len(content) <= LARGEST_INPUT else None


def object_of(content: bytes | None) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        found = json.loads(content or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _read(path: Path, *, largest: int) -> bytes | None:
    """Return a file's content; None when there is none, it is no plain file, or it is larger."""
    try:
        # A link could lead anywhere, and a pipe would wait forever.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_size > largest:
            return None
        return file.read(largest + 1)

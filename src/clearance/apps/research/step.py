"""Run one template as a process of its own: `python -m clearance.apps.research.step TEMPLATE JOB.json`.

The job is a JSON object: {"template": {"name", "sha256"}, "params": {…}, "inputs": {name: {"path",
"sha256"}}, "out": folder}. The template's code, every input and the parameters are checked before anything
runs; each input is read once, so that the bytes that were checked are the bytes that are used.

The folder gets the output files of the method's card, then `summary.json`: {"template", "template_sha256",
"card_version", "headline", "facts", "warnings", "tools": {library: version}}, and last, in one move,
`outputs.json`: {"outputs": [{"name", "kind", "media_type", "sha256", "size"}]} by name, `summary.json`
among them. Where `outputs.json` is there, the step is complete.

Exit code 0: done. 2: something that was handed in is wrong. 1: the step failed. What went wrong is one line
on standard error, without values or letters of the inputs.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import clearance
from clearance.apps.research.methods.cards import Card, card, template_sha256
from clearance.apps.research.methods.produced import Produced, json_bytes
from clearance.errors import ClearanceError, InvalidInputError

SUMMARY = "summary.json"
OUTPUTS = "outputs.json"
LARGEST_INPUT = 64_000_000

# Where a library is imported by another name than it is installed by.
_MODULES = {"biopython": "Bio"}
_JOB = '{"template": {"name", "sha256"}, "params": {…}, "inputs": {name: {"path", "sha256"}}, "out": folder}'


@dataclass(frozen=True)
class _Job:
    card: Card
    params: Mapping[str, Any]
    inputs: Mapping[str, bytes]
    out: Path


def main(arguments: Sequence[str]) -> int:
    """Run the step that the arguments name, and return its exit code."""
    try:
        if len(arguments) != 2:
            raise InvalidInputError("Say which template, and where its job is: step TEMPLATE JOB.json")
        job = _read(arguments[0], Path(arguments[1]))
        _write(job, run_template(job.card.template.name, job.inputs, params=job.params))
    except ClearanceError as error:
        return _said(str(error), code=2)
    except OSError as error:
        return _said(f"the step failed: {error.strerror or type(error).__name__}", code=1)
    except MemoryError:
        return _said("the step failed: it needs more memory than it may have", code=1)
    except ModuleNotFoundError as error:
        return _said(f"the step failed: {error.name} is missing. Install clearance[research].", code=1)
    except Exception as error:  # noqa: BLE001 - the outermost place: a library's message may quote the input
        return _said(f"the step failed: {type(error).__name__} in {_place(error)}", code=1)
    return 0


def run_template(name: str, inputs: Mapping[str, bytes], *, params: Mapping[str, Any]) -> Produced:
    """Return what a template makes of inputs and complete parameters, as its docstring says."""
    module = import_module(f"clearance.apps.research.methods.templates.{name.replace('-', '_')}")
    produced: Produced = module.run(inputs, params)
    return produced


def _read(template: str, path: Path) -> _Job:
    try:
        job = json.loads(path.read_bytes())
        named, sha256 = job["template"]["name"], job["template"]["sha256"]
        params, inputs, out = job["params"], dict(job["inputs"]), Path(job["out"])
        places = {name: (Path(given["path"]), given["sha256"]) for name, given in inputs.items()}
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInputError(f"The job cannot be read. Write a file with {_JOB}.") from None
    method = card(template)
    if named != template:
        raise InvalidInputError(f"The job is for another template than {template}.")
    if sha256 != template_sha256(template):
        raise InvalidInputError(f"template_drift: the template {template} is not the one that was cleared.")
    if not isinstance(params, dict):
        raise InvalidInputError("The parameters must be a JSON object.")
    return _Job(method, method.check_params(params), _inputs(method, places), out)


def _inputs(method: Card, places: Mapping[str, tuple[Path, str]]) -> dict[str, bytes]:
    known = {slot.name for slot in method.inputs}
    needed = {slot.name for slot in method.inputs if slot.required}
    if not needed <= set(places) <= known:
        raise InvalidInputError(
            f"{method.id} takes the inputs {', '.join(sorted(known))}; "
            f"{', '.join(sorted(needed)) or 'none'} must be there, and no others."
        )
    return {name: _checked(name, path, sha256=sha256) for name, (path, sha256) in sorted(places.items())}


def _checked(name: str, path: Path, *, sha256: str) -> bytes:
    try:
        if path.stat().st_size > LARGEST_INPUT:
            raise InvalidInputError(f"{name}: the file is larger than {LARGEST_INPUT:,} bytes.")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{name}: the file cannot be read ({error.strerror}).") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InvalidInputError(
            f"input_drift: {name} is not the file that was cleared; its checksum differs."
        )
    return data


def _write(job: _Job, produced: Produced) -> None:
    slots = {slot.name: slot for slot in job.card.outputs}
    missing = {slot.name for slot in job.card.outputs if slot.required} - set(produced.files)
    if missing or not set(produced.files) <= set(slots):
        raise RuntimeError("the template's files are not those of its card")
    summary = json_bytes(_summary(job.card, produced))
    job.out.mkdir(parents=True, exist_ok=True)
    entries = []
    for name, data in sorted({**produced.files, SUMMARY: summary}.items()):
        _replace(job.out / name, data)
        slot = slots.get(name)
        entries.append(
            {
                "name": name,
                "kind": slot.kind if slot else "summary",
                "media_type": slot.media_type if slot else "application/json",
                "sha256": hashlib.sha256(data).hexdigest(),
                "size": len(data),
            }
        )
    _replace(job.out / OUTPUTS, json_bytes({"outputs": entries}))


def _summary(method: Card, produced: Produced) -> dict[str, Any]:
    return {
        "template": method.template.name,
        "template_sha256": method.template.sha256,
        "card_version": method.version,
        "headline": produced.headline,
        "facts": dict(produced.facts),
        "warnings": list(produced.warnings),
        "tools": {
            "python": platform.python_version(),
            "clearance": clearance.__version__,
            **{library: _version(library) for library in method.requires},
        },
    }


def _version(library: str) -> str:
    """Return a library's version as it says it itself: to look it up takes as long as a short step."""
    said = getattr(import_module(_MODULES.get(library, library)), "__version__", None)
    if isinstance(said, str):
        return said
    from importlib.metadata import version

    return version(library)


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a power cut."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _place(error: BaseException) -> str:
    """Return the module and line that raised, as a bug report needs it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def _said(line: str, *, code: int) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

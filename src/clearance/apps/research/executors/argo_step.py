"""Runs one step inside a pod: `python -P -m clearance.apps.research.executors.argo_step JOB OUT`.

JOB is a file with one packed job: a JSON object, compressed and in base64, so that no letter of an input can
be taken for a variable of Argo's. OUT gets what every step leaves (`clearance.apps.research.step`, which
checks template, parameters and inputs again, here, by their hashes), and `usage.json`.
"""

import base64
import json
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clearance.apps.research.executors.jobs import StepJob
from clearance.apps.research.executors.step_folder import USAGE, write_files
from clearance.apps.research.step import main as run_step
from clearance.errors import InvalidInputError

LARGEST_UNPACKED = 64 * 1024 * 1024


def packed(job: StepJob, inputs: Mapping[str, bytes]) -> str:
    """Return a job with its inputs as one text; the same job gives the same text."""
    document = {
        "template": {"name": job.step.template.name, "sha256": job.step.template.sha256},
        "params": job.step.params,
        "inputs": {
            name: {"sha256": job.inputs[name].sha256, "content": base64.b64encode(content).decode()}
            for name, content in inputs.items()
        },
    }
    return base64.b64encode(zlib.compress(json.dumps(document, sort_keys=True).encode(), 9)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """Return the document that was packed. Raises `InvalidInputError` for anything else."""
    try:
        inflating = zlib.decompressobj()
        content = inflating.decompress(base64.b64decode(text, validate=True), LARGEST_UNPACKED)
        if not inflating.eof:
            raise ValueError("too large, or cut")
        found = json.loads(content)
        if not isinstance(found, dict):
            raise ValueError("no object")
    except (ValueError, zlib.error):
        raise InvalidInputError("The packed job cannot be read.") from None
    return found


def lay_out(document: Mapping[str, Any], folder: Path, *, out: Path) -> Path:
    """Write a job and its inputs into a folder, and return the path of the job as a step reads it."""
    inputs = {}
    for number, (name, given) in enumerate(sorted(document["inputs"].items())):
        path = folder / str(number)
        path.write_bytes(base64.b64decode(given["content"]))
        path.chmod(0o444)
        inputs[name] = {"path": str(path), "sha256": given["sha256"]}
    job = {"template": document["template"], "params": document["params"], "inputs": inputs, "out": str(out)}
    path = folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


def main(arguments: Sequence[str]) -> int:
    """Run the packed job, and return the step's exit code."""
    if len(arguments) != 2:
        print("Say where the packed job is, and the folder for its outputs: JOB OUT", file=sys.stderr)
        return 2
    source, out = map(Path, arguments)
    started = time.monotonic()
    try:
        document = unpacked(source.read_text(encoding="ascii"))
        with tempfile.TemporaryDirectory() as folder:
            job = lay_out(document, Path(folder), out=out)
            code = run_step([str(document["template"]["name"]), str(job)])
    except (InvalidInputError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        said = str(error) if isinstance(error, InvalidInputError) else "The packed job cannot be read."
        print(said, file=sys.stderr)
        return 2
    if code == 0:
        write_files(out, [(USAGE, json.dumps(_used(time.monotonic() - started)).encode())])
    return code


def _used(wall_s: float) -> dict[str, Any]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return {
        "cpu_s": f"{used.ru_utime + used.ru_stime:.2f}",
        "wall_s": f"{wall_s:.2f}",
        "peak_mb": -(-used.ru_maxrss // unit),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

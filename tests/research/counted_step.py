"""A real step that is counted: `counted_step.py FOLDER TEMPLATE JOB.json`.

It writes `began TEMPLATE PID` and, behind its outputs, `ended TEMPLATE PID` to FOLDER/steps, and waits in
between while FOLDER/hold-TEMPLATE is there.
"""

import os
import sys
import time
from pathlib import Path

from clearance.apps.research import step


def _note(folder: Path, line: str) -> None:
    number = os.open(folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(number, f"{line}\n".encode())
    os.close(number)


def main(folder: Path, template: str, job: str) -> int:
    """Run the step."""
    _note(folder, f"began {template} {os.getpid()}")
    while (folder / f"hold-{template}").exists():
        time.sleep(0.01)
    code = step.main([template, job])
    _note(folder, f"ended {template} {os.getpid()}")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))

"""The local executor's limits: a step that hangs, forks, floods or grows is bounded, and says so."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.research.executors import guard
from clearance.apps.research.executors.guard import LONGEST_LINE, disk_used, last_line
from clearance.apps.research.executors.jobs import StepResult
from clearance.apps.research.executors.local import Limits
from tests.research.door import Door
from tests.research.jobs_at_hand import QUICK, obedient, told


def _run(folder: Path, do: str, *, limits: Limits = QUICK, **changed: Any) -> StepResult:
    given = told(folder, do, **changed)
    result = obedient(limits=limits).run(given)
    assert disk_used(str(given.folder)) < 1_000_000
    return result


def test_a_step_that_hangs_is_ended_at_its_time_limit_and_tried_again(tmp_path: Path) -> None:
    with Door() as door:
        result = _run(tmp_path, f"count:{tmp_path}/runs; knock:{door.path}", timeout_s=3, retries=1)
        door.knocked().wait_for_its_end()
    assert (result.error, result.tries) == ("The step took longer than 3 s and was ended.", 2)
    assert (tmp_path / "runs").read_text() == "xx"


def test_a_step_that_does_not_obey_is_killed_after_the_grace(tmp_path: Path) -> None:
    with Door() as door:
        result = _run(tmp_path, f"stubborn:{door.path}", timeout_s=3)
        door.knocked().wait_for_its_end()
    assert result.error == "The step took longer than 3 s and was ended."


@pytest.mark.parametrize("how", ["children", "children-apart"])
def test_what_a_step_started_ends_with_it(how: str, tmp_path: Path) -> None:
    with Door() as door:
        result = _run(tmp_path, f"{how}:{door.path}; give")
        for _ in range(3):
            door.knocked().wait_for_its_end()
    assert result.error is None


@pytest.mark.parametrize("how", ["children", "children-apart"])
def test_what_a_hanging_step_started_ends_with_it(how: str, tmp_path: Path) -> None:
    with Door() as door:
        result = _run(tmp_path, f"{how}:{door.path}; stubborn:{door.path}", timeout_s=4)
        for _ in range(4):
            door.knocked().wait_for_its_end()
    assert result.error == "The step took longer than 4 s and was ended."


LIMITED = [
    ("processes", "The step started more than 20 processes and was ended."),
    ("many-files", "The step wrote more than 20 MB and was ended."),
    ("memory", "MemoryError"),
    ("burn", "The step used more than 2 processor seconds."),
]


@pytest.mark.parametrize(("do", "error"), LIMITED)
def test_a_step_that_takes_too_much_is_ended(do: str, error: str, tmp_path: Path) -> None:
    limits = Limits(memory_mb=500, file_mb=10, disk_mb=20, processes=20, cpu_s=2, grace_s=0.3, look_s=0.05)
    result = _run(tmp_path, do, limits=limits)
    assert result.error == error
    assert result.outputs == ()


def test_a_file_cannot_grow_beyond_its_limit(tmp_path: Path) -> None:
    assert _run(tmp_path, "write").error == "OSError: [Errno 27] File too large"


def test_what_is_too_much_is_not_tried_again(tmp_path: Path) -> None:
    result = _run(tmp_path, f"count:{tmp_path}/runs; many-files", retries=3)
    assert result.tries == 1
    assert (tmp_path / "runs").read_text() == "x"


def test_a_flood_of_output_is_dropped_but_for_its_last_line(tmp_path: Path) -> None:
    result = _run(tmp_path, "flood")
    assert result.error is not None
    assert result.error.startswith("the end ?[31m of it of it")
    assert len(result.error) == LONGEST_LINE
    assert result.peak_mb < 100


def test_a_folder_that_a_step_locked_up_is_removed(tmp_path: Path) -> None:
    given = told(tmp_path, "lock-up; give")
    assert obedient().run(given).error is None
    assert not (given.folder / ".work").exists()


def test_no_core_is_left(tmp_path: Path) -> None:
    given = told(tmp_path, "signal:SIGABRT")
    assert obedient().run(given).error == "The step was killed by SIGABRT."
    assert [path.name for path in given.folder.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n\n", "two"),
        ("a\x1b[2Jb\r\n", "a?[2Jb"),
        ("x" * 400, "x" * 299 + "…"),
    ],
)
def test_an_error_is_one_bounded_line(text: str, line: str) -> None:
    assert last_line(text) == line


def test_the_guard_loads_nothing_but_the_standard_library(tmp_path: Path) -> None:
    code = (
        f"import runpy, sys, json; runpy.run_path({guard.__file__!r}); print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert loaded - sys.stdlib_module_names - {"__main__"} == set()
    assert os.path.basename(guard.__file__) == "guard.py"

"""A step inside a pod: the packed job, and what its folder has in the end."""

import base64
import json
import zlib
from pathlib import Path

import pytest

from clearance.apps.research.executors.argo_outputs import inputs_of
from clearance.apps.research.executors.argo_step import LARGEST_UNPACKED, main, packed, unpacked
from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.executors.step_folder import read_outputs
from clearance.errors import InvalidInputError
from tests.research.jobs_at_hand import job


def _packed(folder: Path) -> str:
    given = job(folder)
    return packed(given, inputs_of(given))


def test_a_packed_job_leaves_what_the_local_executor_gives(tmp_path: Path) -> None:
    source, out = tmp_path / "job", tmp_path / "out"
    source.write_text(_packed(tmp_path))
    assert main([str(source), str(out)]) == 0
    assert read_outputs(out) == LocalExecutor().run(job(tmp_path)).outputs
    usage = json.loads((out / "usage.json").read_text())
    assert set(usage) == {"cpu_s", "wall_s", "peak_mb"}


def test_the_same_job_is_packed_into_the_same_text_without_braces(tmp_path: Path) -> None:
    assert _packed(tmp_path) == _packed(tmp_path / "other")
    assert not set("{}") & set(_packed(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "é",
        "no base64!",
        base64.b64encode(b"no zlib").decode(),
        base64.b64encode(zlib.compress(b"[]")).decode(),
        base64.b64encode(zlib.compress(b"{")).decode(),
        base64.b64encode(zlib.compress(b"{}")[:-3]).decode(),
        base64.b64encode(zlib.compress(b" " * (LARGEST_UNPACKED + 1))).decode(),
    ],
)
def test_what_is_no_packed_job_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        unpacked(text)


@pytest.mark.parametrize("document", [{}, {"template": 1, "inputs": {}}, {"template": {"name": "x"}}])
def test_a_wrong_job_is_refused_in_one_line(
    document: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job").write_text(base64.b64encode(zlib.compress(json.dumps(document).encode())).decode())
    assert main([str(tmp_path / "job"), str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "The packed job cannot be read.\n"
    assert not (tmp_path / "out").exists()


def test_a_step_that_refuses_says_so_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = job(tmp_path, inputs={})
    (tmp_path / "job").write_text(packed(given, {}))
    assert main([str(tmp_path / "job"), str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith("gc-profile takes the inputs sequence")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [[], ["/none"], ["/none", "/none"]])
def test_a_wrong_command_is_refused_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1

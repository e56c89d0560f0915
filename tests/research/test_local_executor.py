"""The local executor: what it gives, what it gives again, and what a step gets to see."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from clearance.apps.research.executors.jobs import JobInput, StepJob, StepResult
from clearance.apps.research.executors.local import LocalExecutor
from clearance.apps.research.plan import Template
from tests.research.door import Door
from tests.research.jobs_at_hand import KRAS, job, obedient, step, told
from tests.research.methods_at_hand import SHIPPED


def _answer(result: StepResult) -> dict[str, object]:
    assert result.error is None, result.error
    content = next(each.content for each in result.outputs if each.name == "answer.json")
    answer: dict[str, object] = json.loads(content)
    return answer


def test_a_real_step_gives_its_files_its_summary_and_what_it_used(tmp_path: Path) -> None:
    result = LocalExecutor().run(job(tmp_path))
    assert result.error is None
    assert [each.name for each in result.outputs] == ["gc-profile.json", "summary.json"]
    assert result.summary is not None
    assert result.summary["headline"].startswith("GC content ")
    assert float(result.cpu_s) > 0
    assert float(result.wall_s) > 0
    assert 10 < result.peak_mb < 400
    assert result.tries == 1


def test_the_folder_keeps_the_outputs_and_nothing_of_the_work(tmp_path: Path) -> None:
    given = job(tmp_path)
    LocalExecutor().run(given)
    names = {path.name for path in given.folder.iterdir()}
    assert names == {"gc-profile.json", "summary.json", "outputs.json", "job.json", "usage.json", ".lock"}


def _input(path: Path) -> JobInput:
    return JobInput(path, hashlib.sha256(path.read_bytes()).hexdigest())


LARGE_LIBRARIES = [
    ("domain-search", {"protein": "EGFR.P00533.faa", "hmm": "Pkinase.PF00069.17.hmm"}),
    ("pairwise-alignment", {"first": "EGFR.P00533.faa", "second": "TP53.P04637.faa"}),
    ("msa-conservation", {"alignment": "brca1_exon11_55mammals.fasta"}),
]


@pytest.mark.parametrize(("method", "names"), LARGE_LIBRARIES)
def test_libraries_that_reserve_much_memory_work_within_the_limits(
    method: str, names: dict[str, str], tmp_path: Path
) -> None:
    given = job(tmp_path, step(method), inputs={name: _input(SHIPPED / each) for name, each in names.items()})
    result = LocalExecutor().run(given)
    assert result.error is None
    assert result.peak_mb < given.step.estimate.mem_mb


def test_what_a_real_step_refuses_is_said_in_its_own_words(tmp_path: Path) -> None:
    result = LocalExecutor().run(job(tmp_path, inputs={}))
    assert result.error == "gc-profile takes the inputs sequence; sequence must be there, and no others."


def test_a_step_whose_outputs_are_there_is_not_run_again(tmp_path: Path) -> None:
    given = told(tmp_path, f"count:{tmp_path}/runs; give")
    first = obedient().run(given)
    again = obedient().run(replace(given, key="r1/1001/0", plan_sha256="b" * 64))
    assert again == first
    assert obedient().find(given) == first
    assert (tmp_path / "runs").read_text() == "x"


def _other_template(given: StepJob) -> StepJob:
    return replace(given, step=replace(given.step, template=Template("gc-profile", "0" * 64, "1")))


def _other_params(given: StepJob) -> StepJob:
    return replace(given, step=replace(given.step, params={**given.step.params, "more": 1}))


def _other_input(given: StepJob) -> StepJob:
    return replace(given, inputs={"sequence": JobInput(KRAS, "0" * 64)})


def _fewer_inputs(given: StepJob) -> StepJob:
    return replace(given, inputs={})


def _other_run(given: StepJob) -> StepJob:
    return replace(given, run_id="r2")


@pytest.mark.parametrize("other", [_other_template, _other_params, _other_input, _fewer_inputs, _other_run])
def test_the_outputs_of_another_job_are_not_given(other: object, tmp_path: Path) -> None:
    given = told(tmp_path, "give")
    obedient().run(given)
    assert obedient().find(other(given)) is None  # type: ignore[operator]


@pytest.mark.parametrize("lost", ["answer.json", "summary.json", "outputs.json", "job.json"])
def test_outputs_that_are_not_whole_are_made_again(lost: str, tmp_path: Path) -> None:
    given = told(tmp_path, f"count:{tmp_path}/runs; give")
    first = obedient().run(given)
    (given.folder / lost).unlink()
    assert obedient().find(given) is None
    again = obedient().run(given)
    assert (again.outputs, again.error) == (first.outputs, None)
    assert (tmp_path / "runs").read_text() == "xx"


def test_outputs_that_were_changed_are_made_again(tmp_path: Path) -> None:
    given = told(tmp_path, "give")
    first = obedient().run(given)
    (given.folder / "answer.json").write_text("{}")
    assert obedient().find(given) is None
    assert obedient().run(given).outputs == first.outputs


def test_a_folder_that_is_lost_is_made_again(tmp_path: Path) -> None:
    given = told(tmp_path, "give")
    first = obedient().run(given)
    given.folder.rename(tmp_path / "lost")
    assert obedient().find(given) is None
    assert obedient().run(given).outputs == first.outputs


LISTS = [
    "",
    "[]",
    '{"outputs": 3}',
    '{"outputs": []}',
    '{"outputs": [{"name": "answer.json"}]}',
    '{"outputs": [{"name": "../answer.json", "kind": "a", "media_type": "a", "sha256": "a", "size": 1}]}',
    '{"outputs": [{"name": "none.json", "kind": "a", "media_type": "a", "sha256": "a", "size": 1}]}',
    '{"outputs": [{"name": "big.json", "kind": "a", "media_type": "a", "sha256": "a", "size": 999999999}]}',
    '{"outputs": [{"name": "job.json", "kind": "a", "media_type": "a", "sha256": "a", "size": 9}]}',
    '{"outputs": [{"name": "answer.json", "kind": 1, "media_type": "a", "sha256": "a", "size": 9}]}',
]


@pytest.mark.parametrize("text", LISTS)
def test_a_list_of_outputs_that_is_wrong_is_an_error(text: str, tmp_path: Path) -> None:
    result = obedient().run(told(tmp_path, f"give; list:{text}"))
    assert result.error == "The step ended without a complete list of its outputs."
    assert result.outputs == ()


def test_an_output_that_is_a_link_or_another_than_listed_is_an_error(tmp_path: Path) -> None:
    for number, what in enumerate(("give; link:/etc/passwd", "give; spoil")):
        result = obedient().run(told(tmp_path / str(number), what))
        assert result.error == "The step ended without a complete list of its outputs."


def test_inputs_are_copies_that_may_only_be_read(tmp_path: Path) -> None:
    before = KRAS.read_bytes()
    result = obedient().run(told(tmp_path, "give; write-input"))
    assert _answer(result)["modes"] == {"sequence": "0o444"}
    assert KRAS.read_bytes() == before


def test_an_input_with_another_hash_is_refused_before_anything_runs(tmp_path: Path) -> None:
    given = told(tmp_path, f"count:{tmp_path}/runs", retries=3)
    for place in (KRAS, tmp_path / "none"):
        result = obedient().run(replace(given, inputs={"sequence": JobInput(place, "0" * 64)}))
        assert result.error == "input_drift: sequence is not the file that was cleared, or cannot be read."
    assert not (tmp_path / "runs").exists()


def test_a_step_sees_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "ARGO_TOKEN", "CLEARANCE_DATABASE", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    seen = _answer(obedient().run(told(tmp_path, "environment")))
    environment = seen["environment"]
    assert isinstance(environment, dict)
    threads = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    known = {"PATH", "HOME", "TMPDIR", "LANG", "TZ", "PYTHONHASHSEED", "PYTHONPATH", "LC_CTYPE"}
    assert set(environment) <= threads | known
    assert "secret" not in environment.values()
    assert environment["PYTHONPATH"] == "/somewhere"
    assert environment["HOME"].startswith(str(tmp_path))
    assert str(seen["folder"]).startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("do", "tries", "error"),
    [
        ("exit:1:it broke", 3, "it broke"),
        ("exit:1", 3, "a warning of a library"),
        ("exit:2:this is wrong", 1, "this is wrong"),
        ("signal:SIGSEGV", 3, "The step was killed by SIGSEGV."),
    ],
)
def test_a_failure_is_tried_again_and_bad_input_is_not(
    do: str, tries: int, error: str, tmp_path: Path
) -> None:
    result = obedient().run(told(tmp_path, f"count:{tmp_path}/runs; {do}", retries=2))
    assert (result.error, result.tries) == (error, tries)
    assert (tmp_path / "runs").read_text() == "x" * tries


def test_a_step_that_succeeds_at_the_second_try_is_complete(tmp_path: Path) -> None:
    do = f"count:{tmp_path}/runs; fail-until:2:{tmp_path}/runs; give"
    result = obedient().run(told(tmp_path, do, retries=2))
    assert (result.error, result.tries) == (None, 2)
    assert obedient().find(told(tmp_path, do, retries=2)) == result


def test_at_most_so_many_steps_as_the_pool_has_room_run_at_a_time(tmp_path: Path) -> None:
    pool = obedient(pool=2)
    with Door() as door:
        jobs = [told(tmp_path, f"knock:{door.path}; give", id=f"s{n}", run_id=f"r{n % 3}") for n in range(6)]
        threads = [threading.Thread(target=pool.run, args=(each,)) for each in jobs]
        for thread in threads:
            thread.start()
        for _ in range(3):
            running = [door.knocked(), door.knocked()]
            assert not door.somebody_waits()
            for each in running:
                each.let_go()
        for thread in threads:
            thread.join()
    assert all(pool.find(each) for each in jobs)


def test_a_pool_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="room for one"):
        LocalExecutor(pool=0)


def test_two_at_the_same_step_run_it_once(tmp_path: Path) -> None:
    given = told(tmp_path, f"count:{tmp_path}/runs; give")
    results: list[StepResult] = []
    threads = [
        threading.Thread(target=lambda each=each: results.append(each.run(given)))
        for each in (obedient(), obedient())
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] == results[1]
    assert (tmp_path / "runs").read_text() == "x"


def test_a_folder_that_cannot_be_made_is_an_error_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "r1").write_text("in the way")
    result = obedient().run(told(tmp_path, "give"))
    assert result.error == "The step could not be started: Not a directory."


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    result = LocalExecutor(command=[str(tmp_path / "none")]).run(told(tmp_path, "give"))
    assert result.error == "the step could not be started: FileNotFoundError"


def _open_files_and_children() -> tuple[int, int]:
    """Return how many this process has; other tests may have some of their own."""
    files = os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")
    listed = subprocess.run(["ps", "-A", "-o", "ppid="], capture_output=True, text=True, check=True)
    return len(files), listed.stdout.split().count(str(os.getpid()))


def test_it_leaves_no_open_file_and_no_process(tmp_path: Path) -> None:
    executor = obedient()
    executor.run(told(tmp_path, "give", id="first"))
    before = _open_files_and_children()
    executor.run(told(tmp_path, "give", id="second"))
    assert _open_files_and_children() == before

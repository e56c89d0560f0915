"""A step as a process: what it checks, what it leaves, and what it says when it does not run."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearance.apps.research.methods.cards import card, load_cards, template_sha256
from clearance.apps.research.step import main
from tests.research.methods_at_hand import SHIPPED, cds_of

BIBLIOGRAPHY = json.dumps({"records": [{"id": "PMID:1", "title": "alpha and beta"}]}).encode()
KRAS = (SHIPPED / "KRAS.NM_004985.5.fna").read_bytes()
P53 = (SHIPPED / "TP53.P04637.faa").read_bytes()

# Inputs and parameters with which each method runs.
JOBS: dict[str, tuple[dict[str, bytes], dict[str, Any]]] = {
    "codon-usage": ({"sequence": cds_of("KRAS.NM_004985.5.fna")}, {}),
    "crispr-guide-scan": ({"sequence": KRAS}, {}),
    "domain-search": ({"protein": P53, "hmm": (SHIPPED / "Pkinase.PF00069.17.hmm").read_bytes()}, {}),
    "exon-structure": ({"exons": (SHIPPED / "mane_v1.5_subset.tsv").read_bytes()}, {"symbol": "KRAS"}),
    "gc-profile": ({"sequence": KRAS}, {}),
    "literature-cooccurrence": ({"bibliography": BIBLIOGRAPHY}, {"terms": ["alpha", "beta"]}),
    "motif-scan": ({"sequence": P53}, {}),
    "msa-conservation": ({"alignment": (SHIPPED / "brca1_exon11_55mammals.fasta").read_bytes()}, {}),
    "orf-scan": ({"sequence": KRAS}, {}),
    "pairwise-alignment": ({"first": P53, "second": P53}, {}),
    "primer-design": ({"sequence": KRAS[:2000]}, {}),
    "protein-properties": ({"protein": P53}, {}),
    "restriction-map": ({"sequence": KRAS}, {}),
    "translate": ({"sequence": cds_of("KRAS.NM_004985.5.fna")}, {}),
    "variant-effect": ({"cds": cds_of("KRAS.NM_004985.5.fna")}, {"variants": ["c.35G>A"]}),
}


def _job(folder: Path, method: str, **changed: Any) -> Path:
    inputs, params = JOBS[method]
    given = {}
    for name, data in inputs.items():
        (folder / name).write_bytes(data)
        given[name] = {"path": str(folder / name), "sha256": hashlib.sha256(data).hexdigest()}
    job = {
        "template": {"name": method, "sha256": template_sha256(method)},
        "params": params,
        "inputs": given,
        "out": str(folder / "out"),
    }
    path = folder / "job.json"
    path.write_text(json.dumps(job | changed))
    return path


def _written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_a_step_runs_as_a_process_and_says_nothing(tmp_path: Path) -> None:
    job = _job(tmp_path, "orf-scan")
    done = subprocess.run(
        [sys.executable, "-m", "clearance.apps.research.step", "orf-scan", str(job)],
        capture_output=True,
        text=True,
        check=False,
        env={},
        cwd=tmp_path,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert set(_written(tmp_path)) == {"orfs.json", "cds.fna", "summary.json", "outputs.json"}


@pytest.mark.parametrize("method", load_cards(), ids=lambda method: method.id)
def test_every_method_leaves_the_files_of_its_card(method: Any, tmp_path: Path) -> None:
    assert main([method.id, str(_job(tmp_path, method.id))]) == 0
    files = _written(tmp_path)
    entries = {entry["name"]: entry for entry in json.loads(files["outputs.json"])["outputs"]}
    assert set(entries) == {output.name for output in method.outputs} | {"summary.json"}
    assert set(files) == {*entries, "outputs.json"}
    for name, entry in entries.items():
        assert (entry["sha256"], entry["size"]) == (hashlib.sha256(files[name]).hexdigest(), len(files[name]))


@pytest.mark.parametrize("method", sorted(JOBS))
def test_the_same_step_leaves_the_same_bytes(method: str, tmp_path: Path) -> None:
    both = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert main([method, str(_job(folder, method))]) == 0
        both.append(_written(folder))
    assert both[0] == both[1]


def test_the_summary_says_what_ran_and_with_which_versions(tmp_path: Path) -> None:
    main(["translate", str(_job(tmp_path, "translate"))])
    summary = json.loads(_written(tmp_path)["summary.json"])
    assert summary["headline"] == "The protein has 188 amino acids."
    assert summary["template_sha256"] == template_sha256("translate")
    assert summary["card_version"] == card("translate").version
    assert set(summary["tools"]) == {"python", "clearance", "biopython"}


def _without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda job: job.pop(name)


def _set(*path: str, to: object) -> Callable[[dict[str, Any]], None]:
    def change(job: dict[str, Any]) -> None:
        for name in path[:-1]:
            job = job[name]
        job[path[-1]] = to

    return change


WRONG_JOBS = [
    (_without("template"), "The job cannot be read."),
    (_without("inputs"), "The job cannot be read."),
    (_set("inputs", to=3), "The job cannot be read."),
    (_set("inputs", "sequence", to="path"), "The job cannot be read."),
    (_set("out", to=None), "The job cannot be read."),
    (_set("template", "name", to="translate"), "The job is for another template"),
    (_set("template", "sha256", to="0" * 64), "template_drift: "),
    (_set("inputs", "sequence", "sha256", to="0" * 64), "input_drift: sequence"),
    (_set("inputs", "sequence", "path", to="/none"), "sequence: the file cannot be read"),
    (_set("inputs", "sequence", "path", to="/"), "sequence: the file cannot be read"),
    (_set("inputs", to={}), "orf-scan takes the inputs sequence; sequence must be there"),
    (_set("inputs", "other", to={"path": "/none", "sha256": ""}), "orf-scan takes the inputs sequence"),
    (_set("params", to=[]), "The parameters must be a JSON object."),
    (_set("params", to={"min_aa": 1}), "The parameters do not fit orf-scan. /min_aa: must be at least 10"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG_JOBS)
def test_a_wrong_job_is_refused_in_one_line_and_leaves_nothing(
    change: Callable[[dict[str, Any]], None],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = _job(tmp_path, "orf-scan")
    job = json.loads(path.read_text())
    change(job)
    path.write_text(json.dumps(job))
    assert main(["orf-scan", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(message)
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Say which template"),
        (["orf-scan"], "Say which template"),
        (["orf-scan", "/none"], "The job cannot be read."),
        (["none", "JOB"], "There is no method none."),
        (["../step", "JOB"], "There is no method ../step."),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = _job(tmp_path, "orf-scan")
    path = _job(tmp_path, "orf-scan", template={"name": arguments[0], "sha256": ""}) if arguments else job
    assert main([str(path) if each == "JOB" else each for each in arguments]) == 2
    assert capsys.readouterr().err.startswith(message)


def test_bad_letters_are_refused_without_a_stack_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {"path": str(tmp_path / "protein"), "sha256": hashlib.sha256(P53).hexdigest()}
    (tmp_path / "protein").write_bytes(P53)
    path = _job(tmp_path, "orf-scan", inputs={"sequence": wrong})
    assert main(["orf-scan", str(path)]) == 2
    assert capsys.readouterr().err == (
        "sequence: this is a protein sequence (letter E at 2); give a nucleotide sequence.\n"
    )


def test_a_folder_that_cannot_be_written_is_a_failure_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("a file stands there")
    assert main(["orf-scan", str(_job(tmp_path, "orf-scan"))]) == 1
    assert capsys.readouterr().err == "the step failed: File exists\n"


def test_what_a_library_raises_is_a_failure_that_names_its_place_and_no_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("ACGT of the input")

    monkeypatch.setattr("Bio.SeqUtils.CheckSum.crc64", broken)
    assert main(["translate", str(_job(tmp_path, "translate"))]) == 1
    said = capsys.readouterr().err
    assert said.startswith("the step failed: ValueError in test_step.py:")
    assert "ACGT" not in said


def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyhmmer.plan7", None)
    assert main(["domain-search", str(_job(tmp_path, "domain-search"))]) == 1
    assert capsys.readouterr().err == (
        "the step failed: pyhmmer.plan7 is missing. Install clearance[research].\n"
    )


def test_a_step_that_failed_has_no_list_of_outputs(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "orfs.json").mkdir()
    assert main(["orf-scan", str(_job(tmp_path, "orf-scan"))]) == 1
    assert not (tmp_path / "out" / "outputs.json").exists()

"""What a report says, in the order in which it says it, taken from the run's records."""

from collections.abc import Iterator, Sequence

from markupsafe import escape

from clearance.apps.research.methods.cards import card
from clearance.apps.research.report.facts import Book, Fact, Node, Way
from clearance.apps.research.report.figures import figures_of
from clearance.apps.research.report.parts import (
    Asked,
    Decided,
    Outline,
    Publication,
    Record,
    Spent,
    StepPart,
    Totals,
    Trail,
    Version,
)
from clearance.apps.research.report.proceedings import PROCEEDINGS
from clearance.apps.research.report.tables import SUMMARY, key_numbers, tables_of
from clearance.errors import NotFoundError
from clearance.review import Answer, ReviewKind

ANALYSIS = "analysis.json"
_DECIDED = ("approve", "reject", "revise")
STATES = {
    "done": "done",
    "failed": "failed",
    "skipped": "skipped",
    "uncertain": "outcome unknown",
}


def outline(book: Book, plan_file: str) -> Outline:
    """Return what is to be said of a run. `ReportError` where its records do not have it."""
    plan, said = book.file(plan_file), book.file(PROCEEDINGS)
    found, literature = book.file("sequence.json"), book.file("literature.json")
    analysis = book.file(ANALYSIS) if ANALYSIS in book.records.known else None
    request, run = said["request"], said["run"]
    steps = tuple(_steps(book, plan, analysis, said))
    return Outline(
        symbol=plan["subject"]["symbol"].fact(),
        organism=plan["subject"]["organism"].fact(),
        taxon=found["taxon"].fact(Way.RAW),
        ids=tuple((each.name, each.fact()) for each in found["ids"]),
        run_id=run["id"].fact(),
        requester=run["requester"].fact(),
        started_at=run["created_at"].fact(Way.TIME),
        written_at=said["written_at"].fact(Way.TIME),
        objective=request.said("objective"),
        planned_for=plan["objective"].fact(),
        planner=request["planner"].fact(),
        offline=bool(request["offline"].value),
        own_sequence=bool(request["own_sequence"].value),
        replay=request.said("replay"),
        version=plan["version"].fact(),
        plan_sha256=book.fact(Way.SHA256, plan.source),
        all_steps=plan["steps"].fact(Way.COUNT),
        steps_word=_steps_word(len(plan["steps"].value)),
        counts=tuple(_counts(analysis)),
        records=tuple(_record(each) for each in found["records"]),
        versions=tuple(_version(each, said["reviews"]) for each in said["plans"]),
        approvals=tuple(_asked(each) for each in said["reviews"] if _approved(each)),
        cautions=tuple(dict.fromkeys([*(each.fact() for each in plan["warnings"]), *_warned(steps)])),
        steps=steps,
        left_out=tuple((each["method"].fact(), each["reason"].fact()) for each in plan["left_out"]),
        literature=tuple(_publications(literature, plan)),
        literature_source=literature["source"].fact(),
        literature_query=literature["query"].fact(),
        literature_warnings=tuple(each.fact() for each in literature["warnings"]),
        totals=_totals(book, plan, analysis),
        tools=tuple((each.name, each.fact()) for each in said["tools"]),
        trail=_trail(said["trail"]),
        files=tuple(
            (each["name"].fact(), each["size"].fact(), each["sha256"].fact()) for each in said["files"]
        ),
    )


def _approved(review: Node) -> bool:
    """Whether people cleared what a review asked: an answer about an unknown outcome clears nothing."""
    about, answers = review["kind"].value, review["answers"].value
    return bool(about == ReviewKind.PLAN.value and answers == [Answer.APPROVED.value])


def _steps_word(count: int) -> str:
    return "step" if count == 1 else "steps"


def _warned(steps: Sequence[StepPart]) -> Iterator[Fact]:
    return (warning for step in steps for warning in step.warnings)


def _title(method: Node) -> str | Fact:
    """Return what a method is called; its id where the knowledge base does not have it any more."""
    try:
        return card(str(method.value)).title
    except NotFoundError:
        return method.fact()


def _counts(analysis: Node | None) -> Iterator[tuple[str, str, Fact]]:
    """Yield how many steps ended in each state, as style, words and number."""
    for mark, words in STATES.items():
        if analysis and any(each["state"].value == mark for each in analysis["steps"]):
            yield mark, words, analysis["steps"].fact(Way.COUNT_OF, argument=mark)


def _record(node: Node) -> Record:
    return Record(
        id=node["id"].fact(),
        kind=node["kind"].fact(),
        accession=node["accession"].fact(),
        source=node["source"].fact(),
        retrieved_at=node["retrieved_at"].fact(Way.TIME),
        sha256=node["sha256"].fact(),
        licence=node["licence"].fact(),
        file=node["file"].fact(),
        length=node.said("length"),
        description=node.said("description"),
        url=node.said("url"),
        partial="partial" in node,
        stale="stale" in node,
        note=node.said("note"),
    )


def _version(node: Node, reviews: Node) -> Version:
    return Version(
        number=node["version"].fact(),
        sha256=node["sha256"].fact(),
        author=node["author"].fact(),
        author_kind=node["author_kind"].fact(),
        model=node.said("model"),
        steps=node["steps"].fact(),
        steps_word=_steps_word(node["steps"].value),
        cpu_s=node["cpu_s"].fact(),
        cost=node["cost"].fact(),
        risk=node["risk"].fact(),
        differences=tuple(each.fact() for each in node["differences"]),
        reviews=tuple(_asked(each) for each in reviews if each["plan_sha256"].value == node["sha256"].value),
    )


def _asked(node: Node) -> Asked:
    return Asked(
        about_outcome=node["kind"].value == ReviewKind.OUTCOME.value,
        gate=node["gate"].fact(),
        version=node["plan_version"].fact(),
        sha256=node.said("plan_sha256"),
        status=node["status"].fact(),
        answers=node["answers"].fact(Way.LIST),
        asked_at=node["asked_at"].fact(Way.TIME),
        ended_at=node["ended_at"].fact(Way.TIME),
        decisions=tuple(
            Decided(
                by=each["by"].fact(),
                type=each["type"].fact(),
                mark=each["type"].value if each["type"].value in _DECIDED else "other",
                at=each["at"].fact(Way.TIME),
                reason=each.said("reason"),
                edited=bool(each["edited_plan"].value),
                changes=tuple((change.name, change.fact()) for change in each["changes"]),
            )
            for each in node["decisions"]
        ),
    )


def _steps(book: Book, plan: Node, analysis: Node | None, said: Node) -> Iterator[StepPart]:
    done = {each["step"].value: each for each in analysis["steps"]} if analysis else {}
    sha256 = book.records.known[plan.source.file]
    cleared = {each["step"].value: each for each in said["calls"] if each["plan_sha256"].value == sha256}
    for step in plan["steps"]:
        step_id = step["id"].value
        yield _step(book, step, done.get(step_id), cleared.get(step_id))


def _step(book: Book, step: Node, ended: Node | None, call: Node | None) -> StepPart:
    folder = f"steps/{step['id'].value}"
    own = f"{folder}/{SUMMARY}"
    gave = ended is not None and ended["state"].value == "done"
    summary = book.file(own) if gave and own in book.records.known else None
    mark = ended["state"].value if ended else "not-run"
    return StepPart(
        id=step["id"].fact(),
        anchor=escape(f"step-{step['id'].value}"),
        title=_title(step["method"]),
        method=step["method"].fact(),
        mark=mark if mark in STATES else "not-run",
        state=STATES.get(mark, "not carried out"),
        rationale=step["rationale"].fact(),
        headline=ended.said("headline") if ended else None,
        error=ended.said("error") if ended else None,
        warnings=tuple(each.fact() for each in summary["warnings"]) if summary else (),
        inputs=tuple((each.name, each.fact()) for each in step["inputs"]),
        params=tuple((each.name, each.fact()) for each in step["params"]),
        numbers=key_numbers(book, step["method"].value, folder) if gave else (),
        figures=figures_of(book, step["method"].value, folder) if gave else (),
        tables=tables_of(book, step["method"].value, folder) if gave else (),
        files=_files(ended) if ended else (),
        template=step["template"]["name"].fact(),
        card_version=step["template"]["version"].fact(),
        template_sha256=step["template"]["sha256"].fact(),
        tools=tuple((each.name, each.fact()) for each in summary["tools"]) if summary else (),
        executor=step["executor"].fact(),
        risk=step["risk"]["level"].fact(),
        effects=step["risk"]["effects"].fact(Way.LIST),
        fingerprint=call.said("fingerprint") if call else None,
        spent=_spent(book, step, ended),
    )


def _files(ended: Node) -> tuple[tuple[Fact, Fact], ...]:
    outputs = ended.find("outputs")
    return tuple((each["name"].fact(), each["sha256"].fact()) for each in outputs) if outputs else ()


def _spent(book: Book, step: Node, ended: Node | None) -> Spent:
    estimate = step["estimate"]
    used = ended.find("cpu_s") if ended else None
    return Spent(
        estimated=estimate["cpu_s"].fact(),
        used=used.fact() if used else None,
        share=book.fact(Way.SHARE, used.source, estimate["cpu_s"].source) if used else None,
        estimated_cost=estimate["cost"].fact(),
        cost=used.fact(Way.PRICE) if used else None,
        wall=ended.said("wall_s") if ended else None,
        estimated_memory=estimate["mem_mb"].fact(),
        memory=ended.said("peak_mb") if ended else None,
        tries=ended.said("tries") if ended else None,
    )


def _totals(book: Book, plan: Node, analysis: Node | None) -> Totals:
    estimates = [step["estimate"] for step in plan["steps"]]
    seconds = [each["cpu_s"].source for each in estimates]
    used = [each["cpu_s"].source for each in analysis["steps"] if "cpu_s" in each] if analysis else []
    return Totals(
        estimated=book.fact(Way.SUM, *seconds),
        used=book.fact(Way.SUM, *used) if used else None,
        share=(
            book.fact(Way.SHARE, analysis["cpu_s"].source, analysis["estimated_cpu_s"].source)
            if analysis
            else None
        ),
        estimated_cost=book.fact(Way.SUM, *(each["cost"].source for each in estimates)),
        cost=book.fact(Way.PRICE, *used) if used else None,
        currency=plan["budget"]["currency"].fact(),
        budget=plan["budget"]["max_cost"].fact(),
    )


def _publications(literature: Node, plan: Node) -> Iterator[Publication]:
    """Yield what was found, most relevant first."""
    by_id = {each["id"].value: each for each in literature["records"]}
    cited = {each["ref"].value for each in plan["evidence"]}
    for name in literature["relevance"].value:
        node = by_id[name]
        yield Publication(
            id=node["id"].fact(),
            title=node["title"].fact(),
            authors=node.said("authors"),
            journal=node.said("journal"),
            year=node.said("year"),
            doi=node.said("doi"),
            pmcid=node.said("pmcid"),
            url=node.said("url"),
            source=node["source"].fact(),
            retrieved_at=node["retrieved_at"].fact(Way.TIME),
            retracted=bool(node["retracted"].value),
            stale=bool(node["stale"].value),
            cited=name in cited,
        )


def _trail(node: Node) -> Trail:
    return Trail(
        head=node.said("head"),
        number=node["last_seal"].fact(),
        hash=node["hash"].fact(),
        sealed_to=node["sealed_to"].fact(),
        sealed_at=node["sealed_at"].fact(Way.TIME),
        not_sealed=node["not_sealed"].fact(),
        more=bool(node["more_without_number"].value),
    )

"""The commands `pipeline …`: research runs, started and decided at their gates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, opened, options_of
from clearance.errors import ConflictError, InvalidInputError

if TYPE_CHECKING:
    from clearance.apps.research.research_request import ResearchRequest
    from clearance.apps.research.runs import ResearchRuns
    from clearance.workspace import Clearance

WAIT = 600.0
_SAY = "Say what you decide: --approve, --edit FILE, --revise or --reject."
RunName = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, or the beginning of it.")]
Symbol = Annotated[
    str, typer.Option(metavar="GENE", help="The gene's symbol, such as BRCA1; needed without --fasta.")
]
Kind = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="What that file holds: dna or protein; else its letters say."),
]
Wait = Annotated[
    float, typer.Option(min=0.0, metavar="SECONDS", help="How long to wait for the next stop; it goes on.")
]
Sha256 = Annotated[
    str | None,
    typer.Option("--plan", metavar="HASH", help="The plan that you saw; needed once there are two."),
]
ReviewName = Annotated[
    str | None,
    typer.Option("--review", metavar="ID", help="The question that you answer; needed at S5_execute."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.command(name="start-hitl")(start)
    group.command(name="show")(show)
    group.command(name="diff")(difference)
    group.command(name="resume")(resume)
    group.command(name="list")(list_runs)
    group.command(name="cancel")(cancel)
    group.command(name="graph")(graph)
    app.add_typer(group, name="pipeline", help="Research a gene: a plan, people, analysis, a report.")


def start(
    ctx: typer.Context,
    *,
    symbol: Symbol = "",
    objective: Annotated[str, typer.Option(metavar="TEXT", help="What you want to know.")] = "",
    fasta: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own sequence of the gene, in FASTA.")
    ] = None,
    kind: Kind = None,
    organism: Annotated[str, typer.Option(metavar="NAME", help="human, mouse, …")] = "human",
    offline: Annotated[bool, typer.Option("--offline", help="Ask no service.")] = False,
    replay: Annotated[
        str | None, typer.Option(metavar="RUN", help="Use only what that run was answered.")
    ] = None,
    executor: Annotated[str, typer.Option(metavar="NAME", help="local or argo.")] = "local",
    planner: Annotated[
        str, typer.Option(metavar="NAME", help="rules, or a chat model such as openai:NAME.")
    ] = "rules",
    wait: Wait = WAIT,
    as_json: Json = False,
) -> None:
    """Start a run, and wait until its plan needs you. The process may then be gone for days."""
    from clearance.apps.research.research_request import ResearchRequest
    from clearance.cli.pipeline_waiting import advanced, finish

    options = options_of(ctx, as_json=as_json)
    request = ResearchRequest(
        symbol=symbol,
        objective=objective,
        organism=organism,
        fasta=None if fasta is None else _text(fasta),
        fasta_kind=kind,
        offline=offline,
        replay=replay,
        executor=executor,
        planner=planner,
    )
    _check(request)
    with opened(options, make=True) as c, advanced(c, options) as research:
        from clearance.cli.pipeline_drawing import draw_begun
        from clearance.ledger import new_id

        run = research.start(request, run_id=new_id(), by=c.person)
        if not options.as_json:
            draw_begun(run.id, request)
        finish(c, research, run.id, options=options, wait=wait)


def show(ctx: typer.Context, run: RunName, *, as_json: Json = False) -> None:
    """Show a run: where it is, its plan with every step, and what is waited for."""
    from clearance.cli.pipeline_drawing import draw_run, full_record
    from clearance.cli.screen import out, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        research = _research(c)
        run_id = research.find(run)
        # The folder is for people to look into; whoever asks about a run finds it whole.
        research.rebuild(run_id)
        if options.as_json:
            print_json(full_record(research, run_id, person=c.person))
            return
        draw_run(out(), research, run_id, person=c.person)


def difference(ctx: typer.Context, run: RunName, *, as_json: Json = False) -> None:
    """Show what changed in the plan since the version that you decided on last."""
    from clearance.apps.research.records import diff_record
    from clearance.cli.pipeline_drawing import draw_diff
    from clearance.cli.screen import line, out, print_json
    from clearance.errors import NotFoundError

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        research = _research(c)
        run_id = research.find(run)
        waiting = research.waiting(run_id, seen_by=c.person)
        if waiting is None:
            raise NotFoundError(f"Run {run_id} waits for no decision, so there is nothing to compare.")
        if options.as_json:
            print_json(diff_record(run_id, waiting))
        elif waiting.diff is None:
            line(out(), "This is the first version of the plan.")
        else:
            draw_diff(out(), waiting.diff)


def resume(
    ctx: typer.Context,
    run: RunName,
    *,
    approve: Annotated[bool, typer.Option("--approve", help="Carry out the plan, exactly as shown.")] = False,
    edit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Carry out the plan in FILE instead (JSON).")
    ] = None,
    revise: Annotated[bool, typer.Option("--revise", help="Send the plan back to the planner.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="End the run; nothing is carried out.")] = False,
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="TEXT", help="Your reason; a rejection needs one.")
    ] = "",
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="METHOD", help="Revise: without this method; repeatable.")
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(metavar="METHOD", help="Revise: with this method; repeatable.")
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Revise: at most this cost, such as 0.50.")
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD=JSON", help="Revise: with these parameters; repeatable."),
    ] = None,
    plan: Sha256 = None,
    review: ReviewName = None,
    wait: Wait = WAIT,
    as_json: Json = False,
) -> None:
    """Decide what a run waits for, and wait for what comes next. Without a decision: only go on."""
    from clearance.cli.pipeline_waiting import advanced, finish, last_stage

    options = options_of(ctx, as_json=as_json)
    said = {"approve": approve, "edit": edit is not None, "revise": revise, "reject": reject}
    given = [name for name, on in said.items() if on]
    changes = _changes(exclude, require, max_cost=max_cost, params=params)
    _check_said(given, changes, message=message, plan=plan)
    edited = None if edit is None else _text(edit)
    with opened(options) as c, advanced(c, options) as research:
        run_id = research.find(run)
        seen = last_stage(research, run_id)
        if edited is not None:
            research.edit(run_id, edited, by=c.person, plan_sha256=plan, wait=wait)
        elif given:
            _decide(c, research, run_id, given[0], said=(message, changes), seen=(plan, review))
        elif research.waiting(run_id) is not None:
            raise InvalidInputError(f"Run {run_id} waits for you. {_SAY}")
        finish(c, research, run_id, options=options, wait=wait, seen=seen)


def list_runs(
    ctx: typer.Context,
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many runs at most.")] = 20,
    as_json: Json = False,
) -> None:
    """List research runs, the newest first."""
    from clearance.apps.research.records import short_record
    from clearance.cli.pipeline_drawing import draw_line
    from clearance.cli.screen import line, out, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        research = _research(c)
        found = research.newest(limit=limit)
        if options.as_json:
            print_json({"runs": [short_record(research, run) for run in found]})
            return
        if not found:
            line(out(), "There are no research runs. Start one: clearance pipeline start-hitl --symbol BRCA1")
        for run in found:
            draw_line(out(), research, run)


def cancel(
    ctx: typer.Context,
    run: RunName,
    *,
    message: Annotated[str, typer.Option("-m", "--message", metavar="TEXT", help="Why.")] = "cancelled",
    as_json: Json = False,
) -> None:
    """End a run early; steps that run now are ended, and nothing more of it starts."""
    from clearance.cli.screen import line, out, print_json

    options = options_of(ctx, as_json=as_json)
    with opened(options) as c:
        research = _research(c)
        ended = research.cancel(research.find(run), by=c.person, reason=message)
        if options.as_json:
            print_json({"run_id": ended.id, "state": ended.state.value})
            return
        line(out(), f"run_id={ended.id} state={ended.state}")


def graph(
    ctx: typer.Context,
    *,
    full: Annotated[bool, typer.Option("--full", help="All stages, as it always is.")] = True,
    hitl: Annotated[bool, typer.Option("--hitl", help="With the gates, as it always is.")] = True,
    as_json: Json = False,
) -> None:
    """Print the stages and gates as a Mermaid graph."""
    # There is one graph, with its gates.
    del full, hitl
    from clearance.apps.research.graph import mermaid
    from clearance.cli.screen import out, print_json

    if options_of(ctx, as_json=as_json).as_json:
        print_json({"mermaid": mermaid()})
        return
    out().print(mermaid(), end="")


def _research(c: "Clearance") -> "ResearchRuns":
    from clearance.apps.research.setup import open_research

    return open_research(c)


def _check(request: "ResearchRequest") -> None:
    """Refuse what could never become a run before a workspace is made for it."""
    from clearance.apps.research.planning import RULES
    from clearance.apps.research.research_request import check_request

    check_request(request)
    if request.planner != RULES:
        from clearance.apps.chat.models import check_model
        from clearance.settings import Settings

        check_model(request.planner, base_url=Settings.read().model_base_url)


def _check_said(given: list[str], changes: dict[str, Any], *, message: str, plan: str | None) -> None:
    if len(given) > 1:
        raise InvalidInputError("Say one of --approve, --edit FILE, --revise and --reject, not several.")
    if changes and given != ["revise"]:
        raise InvalidInputError("--exclude, --require, --max-cost and --params belong to --revise.")
    if not given and (message or plan):
        raise InvalidInputError(_SAY)
    if given == ["reject"] and not message.strip():
        raise InvalidInputError("Rejecting a plan needs a reason: -m TEXT.")


def _check_untouched(research: "ResearchRuns", run_id: str) -> None:
    """Refuse an approval of somebody who edited the plan in the run's folder: it is not what would run."""
    from clearance.apps.research.run_store import plan_file
    from clearance.cli.screen import near

    waiting = research.waiting(run_id)
    if waiting is None:
        return
    path = research.store.changed_by_hand(run_id, plan_file(waiting.plan.version))
    if path is not None:
        raise ConflictError(
            f"{near(path)} was edited, and is not the plan that waits. To have yours carried out: --edit "
            f"{near(path)}. To approve the one that waits, move that file away first."
        )


def _decide(
    c: "Clearance",
    research: "ResearchRuns",
    run_id: str,
    decision: str,
    *,
    said: tuple[str, dict[str, Any]],
    seen: tuple[str | None, str | None],
) -> None:
    from clearance.apps.research.hitl import HITLDecision

    if decision == HITLDecision.APPROVE:
        _check_untouched(research, run_id)
    research.decide(
        run_id,
        HITLDecision(decision),
        by=c.person,
        message=said[0],
        changes=said[1],
        plan_sha256=seen[0],
        review_id=seen[1],
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidInputError(f"{path} cannot be read: {reason}.") from None


def _changes(
    exclude: list[str] | None, require: list[str] | None, *, max_cost: str | None, params: list[str] | None
) -> dict[str, Any]:
    """Return what a revision is to change, as the planner takes it."""
    import json

    found: dict[str, Any] = {"exclude": exclude, "require": require, "max_cost": max_cost}
    for pair in params or ():
        method, equals, text = pair.partition("=")
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not equals or not isinstance(value, dict):
            raise InvalidInputError(
                f"--params takes METHOD=JSON, such as orf-scan='{{\"min_aa\": 50}}'; got {pair}."
            )
        found.setdefault("params", {})[method] = value
    return {name: value for name, value in found.items() if value}

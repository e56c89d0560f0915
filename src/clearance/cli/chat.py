"""The command `chat`: a conversation with the bundled support agent, its reviews decided right in it."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearance.cli.options import Json, Options, invocation, is_there, opened, options_of
from clearance.cli.worker import Model
from clearance.errors import ConflictError, RunFailedError

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.run import Run

_ENDS = ("/exit", "/quit")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(chat)
    group.command()(graph)
    app.add_typer(group, name="chat")


def chat(
    ctx: typer.Context,
    *,
    thread: Annotated[
        str | None, typer.Option(metavar="THREAD", help="The conversation to go on with; else a new one.")
    ] = None,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Talk with the bundled support agent.

    Each line of the input is a message. What the agent may not do by itself is asked about right here, or
    left for later. Ctrl-D ends the conversation.
    """
    if ctx.invoked_subcommand is not None:
        return
    options = options_of(ctx, as_json=as_json)
    from clearance.apps.chat.demo import remembered_model
    from clearance.apps.chat.models import check_model, named_model
    from clearance.settings import Settings

    settings = Settings.read()
    # Before a workspace is made for nothing: where there is none, none remembers a model either.
    if model or settings.model or not is_there(options):
        check_model(named_model(model, settings.model), base_url=settings.model_base_url)
    with opened(options, make=True) as c:
        name = named_model(model, settings.model, remembered_model(c))
        from clearance.assembly import new_id
        from clearance.cli.settling import know_policy
        from clearance.cli.waiting import working_for

        know_policy(c)
        with working_for(c, options, model=name):
            _talk(c, options, thread or f"chat-{new_id()[:6]}", model=name)


def graph(ctx: typer.Context, *, as_json: Json = False) -> None:
    """Print the graph of the agent, as Mermaid."""
    import tempfile
    from pathlib import Path

    from clearance.cli.screen import print_json, working

    with working("Building the agent"), tempfile.TemporaryDirectory(prefix="clearance-") as folder:
        from clearance.apps.chat.demo import support_agent
        from clearance.apps.chat.models import OFFLINE, open_model
        from clearance.assembly import open_workspace

        # The graph is the same for every model and workspace; it needs some of each to be built.
        with open_workspace(home=Path(folder), worker=False) as c:
            drawn = support_agent(c, open_model(OFFLINE)).get_graph().draw_mermaid()
    if options_of(ctx, as_json=as_json).as_json:
        print_json({"mermaid": drawn})
    else:
        typer.echo(drawn)


def _talk(c: "Clearance", options: Options, thread: str, *, model: str) -> None:
    """Take one message after the other, until the input ends or a review is left for later."""
    from clearance.cli.turn import follow
    from clearance.store import runs

    talk = _Talk(c, options, thread)
    talk.begin(model)
    with c.database.read() as tx:
        earlier = runs.open_run(tx, thread)
        last = runs.list_runs(tx, thread_id=thread, limit=1)
    talk.recall(last)
    if earlier is not None and not talk.take(lambda: follow(c, earlier.id)):
        return
    while (text := talk.next_message()) is not None:
        if text.strip() and not talk.take(lambda text=text: _send(c, thread, text)):
            return
    talk.end()


def _send(c: "Clearance", thread: str, text: str) -> "Run":
    from clearance.cli.turn import send

    return send(c, thread, text)


class _Talk:
    """One conversation at this terminal, or in a pipe."""

    def __init__(self, c: "Clearance", options: Options, thread: str) -> None:
        from clearance.cli.screen import out

        self._c = c
        self._options = options
        self._thread = thread
        self._console = out()
        self._by_hand = sys.stdin.isatty() and sys.stdout.isatty() and not options.as_json

    def begin(self, model: str) -> None:
        """Say which conversation this is, and which model answers."""
        from clearance.cli.screen import line, notice, shown

        if self._options.as_json:
            return
        line(self._console, shown(f"Thread {self._thread}, model {model}."))
        if model == "offline":
            from clearance.apps.chat.offline.wording import label

            line(self._console, shown(label(), "bold yellow"))
        if self._by_hand:
            notice("Ctrl-D ends the conversation.")

    def recall(self, last: "list[Run]") -> None:
        """Show where the conversation was left."""
        from rich.text import Text

        from clearance.cli.screen import block, line
        from clearance.reading import removed

        for run in last if self._by_hand else ():
            line(self._console, Text("The last turn was:", "dim"))
            for who, text in (("you", run.input or removed(run.redacted_at)), ("agent", run.answer)):
                if text:
                    line(self._console, Text(who, "dim"))
                    block(self._console, text, style="dim")

    def next_message(self) -> str | None:
        """Return the next message, None at the end of the input."""
        from clearance.cli.inline import ask_line

        text = ask_line("\nyou > ") if self._by_hand else sys.stdin.readline() or None
        return None if text is None or text.strip() in _ENDS else text.rstrip("\n")

    def take(self, turn: Any) -> bool:
        """Follow one turn to its end, deciding on the way; False when the conversation stops here."""
        from clearance.cli.screen import block, line, shown
        from clearance.cli.turn import decided_to_the_end, say_held

        try:
            run = turn()
            ended = decided_to_the_end(self._c, run) if self._by_hand else run
        except (RunFailedError, ConflictError) as error:
            if not self._by_hand:
                raise
            line(self._console, shown(str(error), "red"))
            return True
        if self._options.as_json:
            self._print(run)
        elif ended is not None and ended.answer is not None:
            line(self._console, shown("agent:", "bold"))
            block(self._console, ended.answer)
            return True
        else:
            say_held(self._c, run, program=invocation(self._options))
        return run.answer is not None

    def end(self) -> None:
        """Say how to go on with the conversation."""
        from clearance.cli.screen import notice

        if self._by_hand:
            notice(f"Go on with: {invocation(self._options)} chat --thread {self._thread}")

    def _print(self, run: "Run") -> None:
        from clearance.cli.screen import print_json
        from clearance.cli.turn import waiting_review
        from clearance.reading import review_record, whole

        review = waiting_review(self._c, run)
        record = None
        if review is not None:
            with self._c.database.read() as tx:
                record = review_record(whole(self._c.database, tx, review))
        answered = {"thread_id": run.thread_id, "run_id": run.id, "answer": run.answer}
        print_json({**answered, "pending_review": record}, indent=None)

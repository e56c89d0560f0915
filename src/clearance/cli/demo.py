"""The command `demo`: an example agent proposes a risky call, and waits for the person who looks on."""

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

from clearance.cli.options import Json, Options, invocation, opened, options_of

if TYPE_CHECKING:
    from clearance.assembly import Clearance
    from clearance.cli.demo_research import Begun
    from clearance.run import Run


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(ctx: typer.Context, *, as_json: Json = False) -> None:
    """See a risky call held, and decide it here or in a browser.

    An example support agent runs on the offline model, which is no AI and needs no key; a research run comes
    to wait with its plan meanwhile. All works in the workspace folder. The inbox is served until Ctrl-C.
    Without a terminal nothing is served, and the call stays held.
    """
    options = options_of(ctx, as_json=as_json)
    by_hand = sys.stdin.isatty() and sys.stdout.isatty() and not options.as_json
    with opened(options, make=True) as c:
        from clearance.apps.chat.demo import remember_demo
        from clearance.assembly import new_id
        from clearance.cli.settling import know_policy

        remember_demo(c)
        know_policy(c)
        if not options.as_json:
            _say_banner(c)
        mark = new_id()[:6]
        if by_hand:
            _by_hand(c, mark=mark, options=options)
        else:
            _by_itself(c, mark=mark, options=options)


def _by_itself(c: "Clearance", *, mark: str, options: Options) -> None:
    """Play the script to where it waits, and end."""
    from clearance.apps.chat.models import OFFLINE
    from clearance.cli.demo_research import research_record, show_research
    from clearance.cli.waiting import working_for

    with working_for(c, options, model=OFFLINE):
        begun, first, held = _play(c, mark=mark, options=options)
        if options.as_json:
            _print(c, first, held, research=research_record(begun))
            return
        _leave(c, held, options=options)
        show_research(begun, options=options)


def _by_hand(c: "Clearance", *, mark: str, options: Options) -> None:
    """Open the inbox, play the script, have the held call decided here or there, and stay until Ctrl-C."""
    from clearance.apps.chat.models import OFFLINE
    from clearance.cli.demo_inbox import open_inbox, say_how_long, say_inbox, stay
    from clearance.cli.demo_research import show_research
    from clearance.cli.screen import out
    from clearance.cli.waiting import working_for

    try:
        with open_inbox(c) as inbox:
            say_inbox(inbox, person=c.person)
            with working_for(c, options, model=OFFLINE):
                begun, _, held = _play(c, mark=mark, options=options)
                left = not _decide_here(c, held, options=options)
                show_research(begun, options=options)
                say_how_long(c, inbox)
                if left and stay(lambda: not _is_open(c, held)):
                    _say_end(c, held)
                    left = False
                if not left:
                    stay(lambda: False)
    except KeyboardInterrupt:
        pass
    out().print()
    _say("Ended. What waits is still there:")
    out().print(f"  {invocation(options)} inbox")


def _play(c: "Clearance", *, mark: str, options: Options) -> "tuple[Begun | None, Run, Run]":
    """Play the script: a research run, a question that is answered at once, and a call that is held."""
    from clearance.apps.chat.demo import QUESTION, REQUEST
    from clearance.cli.demo_research import begin_research

    thread = f"demo-{mark}"
    # First, so that it comes to its gate while somebody reads and decides.
    begun = begin_research(c, mark=mark)
    first = _turn(c, thread, QUESTION, run_id=f"weather-{mark}", options=options)
    if not options.as_json:
        _say("get_weather only reads, so it ran at once, and nobody was asked.")
    held = _turn(c, thread, REQUEST, run_id=f"mail-{mark}", options=options)
    return begun, first, held


def _say_banner(c: "Clearance") -> None:
    from rich.text import Text

    from clearance.apps.chat.offline.wording import label
    from clearance.cli.screen import line, out, shown

    console = out()
    line(console, Text("Clearance demo: an example support agent", "bold"))
    line(console, shown(label(), "bold yellow"))
    line(console, shown(f"Everything it does is real, and stays in this folder: {c.home}", "dim"))


def _turn(c: "Clearance", thread: str, text: str, *, run_id: str, options: Options) -> "Run":
    """Send one line of the script, and show both sides of it."""
    from rich.text import Text

    from clearance.cli.screen import block, line, out
    from clearance.cli.turn import send

    console = out()
    if not options.as_json:
        console.print()
        line(console, text, lead=Text("you    ", "bold"))
    run = send(c, thread, text, run_id=run_id)
    if run.answer is not None and not options.as_json:
        line(console, Text("agent:", "bold"))
        block(console, run.answer)
    return run


def _decide_here(c: "Clearance", held: "Run", *, options: Options) -> bool:
    """Have the held call decided, here or elsewhere, and show what came of it; False: it is left."""
    from clearance.cli.turn import decided_to_the_end, say_held

    _say(
        "send_email cannot be taken back, so it is held. Nothing runs until you decide, here or in the inbox:"
    )
    if decided_to_the_end(c, held) is not None:
        _say_end(c, held)
        _say_more(held.thread_id, options=options)
        return True
    _say_held()
    say_held(c, held, program=invocation(options))
    return False


def _leave(c: "Clearance", held: "Run", *, options: Options) -> None:
    """Leave the call held, drawn in full, and say how it is decided."""
    from clearance.cli.drawing import draw_review
    from clearance.cli.screen import out
    from clearance.cli.turn import say_held, waiting_review
    from clearance.reading import whole

    review = waiting_review(c, held)
    if review is not None:
        with c.database.read() as tx:
            found = whole(c.database, tx, review)
        out().print()
        draw_review(out(), found)
    _say_held()
    program = invocation(options)
    say_held(c, held, program=program)
    out().print()
    _say("Add --wait 30, and you see the answer; or a worker goes on with it by itself:")
    out().print(f"  {program} worker")
    _say_more(held.thread_id, options=options)


def _say_held() -> None:
    from clearance.cli.screen import out

    out().print()
    _say("The call is held. It waits in the workspace, with no process, until somebody decides.")


def _is_open(c: "Clearance", run: "Run") -> bool:
    from clearance.store import runs

    with c.database.read() as tx:
        return runs.run(tx, run.id).is_open


def _say_end(c: "Clearance", held: "Run") -> None:
    """Say how the run of the held call ended, and what it did."""
    from rich.text import Text

    from clearance.cli.screen import block, line, out
    from clearance.store import calls, runs

    with c.database.read() as tx:
        ended = runs.run(tx, held.id)
        rows = calls.of_run(tx, held.id)
    out().print()
    line(out(), Text("agent:", "bold"))
    block(out(), ended.answer or ended.reason or str(ended.state))
    out().print()
    _say_effect(c, rows[0].result if rows else None)


def _say_effect(c: "Clearance", result: str | None) -> None:
    """Say what really happened: the mail that lies in the outbox now, or that there is none."""
    from clearance.cli.screen import near

    place = _handed_to(result)
    if place is None:
        _say("No mail was written.")
        return
    file = c.home / place
    _say(f"The mail is a real file now: {near(file)}" if file.exists() else f"The mail went to {place}.")


def _handed_to(result: str | None) -> str | None:
    try:
        found: Any = json.loads(result or "")
    except ValueError:
        return None
    place = found.get("handed_to") if isinstance(found, dict) else None
    return place if isinstance(place, str) else None


def _say_more(thread: str, *, options: Options) -> None:
    from clearance.cli.screen import heading, out

    program = invocation(options)
    rows = [
        ("what waits", "inbox"),
        ("look closely", "show REVIEW"),
        ("decide later", "approve REVIEW --wait 30"),
        ("", "edit, reject, respond: the same way"),
        ("what ran", "runs"),
        ("the proof", "audit verify"),
        ("talk on", f"chat --model offline --thread {thread}"),
    ]
    heading(out(), "Go on")
    for what, words in rows:
        out().print(f"  {what:<14}{program} {words}" if what else f"  {'':<14}{words}")


def _say(text: str) -> None:
    from clearance.cli.screen import line, out, shown

    line(out(), shown(text))


def _print(c: "Clearance", first: "Run", held: "Run", *, research: dict[str, Any] | None) -> None:
    from clearance.cli.screen import print_json
    from clearance.cli.turn import waiting_review
    from clearance.reading import review_record, whole

    review = waiting_review(c, held)
    with c.database.read() as tx:
        record = None if review is None else review_record(whole(c.database, tx, review))
    print_json(
        {
            "thread_id": held.thread_id,
            "model": "offline",
            "home": str(c.home),
            "answer": first.answer,
            "pending_review": record,
            "research": research,
        }
    )

"""A review decided right where it came up: drawn, asked about by single keys, and sent to the gate.

Meanwhile somebody may decide it elsewhere, such as on its page: then nobody has to answer here any more.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from clearance.errors import ClearanceError, ConflictError, ForbiddenError, InvalidInputError
from clearance.policy import DecisionType
from clearance.review import Review, ReviewedCall, ReviewStatus

if TYPE_CHECKING:
    from clearance.assembly import Clearance

_KEYS = {
    DecisionType.APPROVE: ("a", "[a]pprove"),
    DecisionType.EDIT: ("e", "[e]dit"),
    DecisionType.REJECT: ("r", "[r]eject"),
    DecisionType.RESPOND: ("s", "re[s]pond"),
}

_LOOK_EVERY = 0.3


class _ElsewhereError(Exception):
    """The review is no longer what is being asked about."""


def decide_inline(c: "Clearance", review_id: str) -> Review | None:
    """Draw a review and ask the person for every call that waits; return it as it then is.

    None: left for later, or not theirs to decide. What cannot be taken is said, and asked again.
    """
    from clearance.cli.screen import out
    from clearance.reading import whole
    from clearance.store import reviews

    drawn = False
    while True:
        with c.database.read() as tx:
            found = whole(c.database, tx, reviews.review(tx, review_id))
        if found.review.status is not ReviewStatus.PENDING:
            return found.review
        if not drawn:
            from clearance.cli.drawing import draw_review

            out().print()
            draw_review(out(), found)
            drawn = True
        try:
            answers = _ask_all(found.review, is_over=partial(_is_over, c, found.review))
        except _ElsewhereError:
            print("\nIt was decided elsewhere meanwhile.")
            drawn = False
            continue
        if answers is None:
            return None
        try:
            return c.gate.decide(review_id, answers, by=c.person, version=found.review.version)
        except InvalidInputError as error:
            _say(str(error))
        except ConflictError as error:
            _say(str(error))
            drawn = False
        except ForbiddenError as error:
            _say(str(error))
            return None


def ask_line(prompt: str) -> str | None:
    """Return what the person types, None at the end of the input."""
    try:
        return input(prompt)
    except EOFError:
        print()
        return None


def _is_over(c: "Clearance", before: Review) -> bool:
    from clearance.store import reviews

    with c.database.read() as tx:
        now = reviews.review(tx, before.id)
    return now.status is not ReviewStatus.PENDING or now.version != before.version


def _ask_while(prompt: str, *, is_over: Callable[[], bool]) -> str | None:
    """Ask as `ask_line` does. Raises `_ElsewhereError` as soon as there is nothing to ask any more."""
    import select

    if not sys.stdin.isatty():
        return ask_line(prompt)
    print(prompt, end="", flush=True)
    # A terminal hands over whole lines: nothing of the next one is read ahead and hidden from `select`.
    while not select.select([sys.stdin], [], [], _LOOK_EVERY)[0]:
        if is_over():
            raise _ElsewhereError
    typed = sys.stdin.readline()
    if not typed:
        print()
    return typed.removesuffix("\n") if typed else None


def _ask_all(review: Review, *, is_over: Callable[[], bool]) -> list[dict[str, Any]] | None:
    answers = []
    for call in review.waiting:
        answer = _ask(review, call, is_over=is_over)
        if answer is None:
            return None
        answers.append({**answer, "call": call.key})
    return answers


def _ask(review: Review, call: ReviewedCall, *, is_over: Callable[[], bool]) -> dict[str, Any] | None:
    """Ask about one call until there is an answer; None is: later."""
    offered = [item for item in call.verdict.decisions if item in _KEYS]
    number = f"Call {review.calls.index(call) + 1}: " if len(review.waiting) > 1 else ""
    prompt = f"\n{number}{'  '.join(_KEYS[item][1] for item in offered)}  [l]ater > "
    while True:
        typed = _ask_while(prompt, is_over=is_over)
        if typed is None or typed.strip().lower() in ("l", "later"):
            return None
        word = typed.strip().lower()
        chosen = next((item for item in offered if word in (_KEYS[item][0], item.value)), None)
        answer = None if chosen is None else _complete(chosen, call)
        if answer is not None:
            return answer


def _complete(decision: DecisionType, call: ReviewedCall) -> dict[str, Any] | None:
    """Return the decision with what it needs besides its type; None when it is to be asked again."""
    match decision:
        case DecisionType.EDIT:
            return _edited(call)
        case DecisionType.REJECT:
            why = ask_line("Why? The agent is told. > ")
            return None if why is None else {"type": "reject", **({"message": why} if why.strip() else {})}
        case DecisionType.RESPOND:
            result = ask_line("What is the agent to get as the result? > ")
            return {"type": "respond", "message": result} if result and result.strip() else None
        case _:
            return {"type": decision.value}


def _edited(call: ReviewedCall) -> dict[str, Any] | None:
    from clearance.cli.editing import edited_arguments
    from clearance.cli.screen import line, out

    try:
        text = edited_arguments(call.arguments, tool=call.tool)
    except ClearanceError as error:
        _say(str(error))
        return None
    if text is None:
        line(out(), "Nothing was changed.")
        return None
    return {"type": "edit", "edited_action": {"args": text}}


def _say(text: str) -> None:
    from clearance.cli.screen import line, out, shown

    line(out(), shown(text, "red"))

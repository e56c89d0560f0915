"""Events of AG-UI, read by the protocol's own models from the stream of a run."""

from typing import Any

from ag_ui.core import Event, Interrupt, RunFinishedEvent, RunFinishedInterruptOutcome
from httpx2 import Response
from pydantic import TypeAdapter

from tests.web.served import OWNER, Served

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)


def body_of(
    *messages: Any, thread: str = "t1", run: str = "run-of-the-client", **more: Any
) -> dict[str, Any]:
    """Return the input of a run as a client sends it."""
    return {
        "threadId": thread,
        "runId": run,
        "messages": list(messages),
        "tools": [],
        "state": {},
        "context": [],
        "forwardedProps": {},
        **more,
    }


def user(text: Any, *, id: str = "m1") -> dict[str, Any]:
    """Return a message of the user."""
    return {"id": id, "role": "user", "content": text}


def post(served: Served, body: Any, *, who: str = OWNER) -> Response:
    """Ask for a run."""
    return served.http.post("/agui", json=body, headers=served.key(who))


def events_of(answer: Response) -> list[Any]:
    """Return the events of a run that is taken."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [_EVENT.validate_json(line) for line in lines]


def interrupts_of(events: list[Any]) -> list[Interrupt]:
    """Return what a run ended with as what people must decide."""
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert isinstance(last.outcome, RunFinishedInterruptOutcome)
    return last.outcome.interrupts


def resumed(interrupt: Interrupt, payload: Any = None, *, status: str = "resolved") -> dict[str, Any]:
    """Return the answer to an interrupt as a client sends it."""
    return {"interruptId": interrupt.id, "status": status, "payload": payload}

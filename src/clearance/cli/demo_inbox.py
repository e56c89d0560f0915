"""The demo's inbox: the pages, served beside the terminal for as long as somebody looks on."""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clearance.errors import NotFoundError, SettingsError

if TYPE_CHECKING:
    from clearance.assembly import Clearance

HOST, PORT = "127.0.0.1", 8000
_LOOK_EVERY = 0.2
_START = 30.0


@dataclass(frozen=True)
class Inbox:
    """Where the pages are. `token` is that of a link which signs the person in, if there is one."""

    url: str
    token: str | None

    @property
    def link(self) -> str:
        """The address to open first."""
        return self.url if self.token is None else f"{self.url}/welcome/{self.token}"


@contextmanager
def open_inbox(c: "Clearance") -> Iterator[Inbox]:
    """Serve the pages of a workspace on this machine, at the usual port or at one that is free.

    A window that is closed ends it as Ctrl-C does. Raises `SettingsError` when nothing can be served.
    """
    from clearance.cli.screen import working
    from clearance.cli.serve import GRACE, program_routers, server_of
    from clearance.membership import sign_in_link
    from clearance.web.app import create_app

    with _listening() as listening, _ended_as_by_hand():
        with working("Opening the inbox"):
            server = server_of(create_app(c, routers=program_routers(c)))
            serving = threading.Thread(target=lambda: server.run(sockets=[listening]), name="inbox")
            serving.start()
            try:
                _await(lambda: server.started or not serving.is_alive())
                link = sign_in_link(c.database, by=c.person)
            except BaseException:
                server.should_exit = True
                raise
        try:
            url = f"http://{HOST}:{listening.getsockname()[1]}"
            yield Inbox(url, None if link is None else link.token)
        finally:
            server.should_exit = True
            serving.join(GRACE + 2)


def say_inbox(inbox: Inbox, *, person: str) -> None:
    """Say where the inbox is, with the link that leads there alone on its line."""
    from clearance.cli.screen import line, out

    console = out()
    console.print()
    if inbox.token is None:
        line(console, f"Your inbox, in a browser on this machine, where you sign in as {person}:")
    else:
        line(console, f"Your inbox, in a browser on this machine; this link signs you in as {person}, once:")
    console.print(inbox.link, style="bold")


def say_how_long(c: "Clearance", inbox: Inbox) -> None:
    """Say that the inbox stays, and where; with the link as long as nobody has used it."""
    from clearance.cli.screen import heading, line, out
    from clearance.signing_in import welcomed

    where = inbox.link
    try:
        welcomed(c.database, inbox.token or "")
    except NotFoundError:
        where = inbox.url
    heading(out(), "The inbox is open, and a worker goes on with what you decide there")
    line(out(), where, indent=2)
    line(out(), "Ctrl-C ends both. What waits then, waits on in the workspace.", indent=2)


def stay(until: Callable[[], bool]) -> bool:
    """Return True as soon as something is so, and False when the person ends it."""
    try:
        while not until():
            time.sleep(_LOOK_EVERY)
    except KeyboardInterrupt:
        return False
    return True


def _listening() -> socket.socket:
    for port in (PORT, 0):
        try:
            return socket.create_server((HOST, port), backlog=2048)
        except OSError as error:
            reason = error
    raise SettingsError(f"No port of {HOST} can be listened on for the inbox: {reason.strerror}.")


@contextmanager
def _ended_as_by_hand() -> Iterator[None]:
    """Have a closed window, and whoever tells this process to end, end it as Ctrl-C does."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _await(done: Callable[[], bool]) -> None:
    until = time.monotonic() + _START
    while not done():
        if time.monotonic() > until:
            raise SettingsError("The inbox does not start.")
        time.sleep(0.02)

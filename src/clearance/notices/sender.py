"""The sender: a process of its own that hands messages to Apprise, and can reach only what it may.

It is started as `python -m clearance.notices.sender`, gets the messages on standard input (so that no
address stands in a list of processes), and answers one line for each. Apprise and its services use several
libraries for the network. All of them come through one place of Python: every connection of this process is
looked at as it is made, wherever a name or a redirect leads, and nothing else than a connection is let out.
"""

import json
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

from clearance.notices.targets import Allowed, may_reach

_REFUSED = (
    "Its host is not public, so nothing is sent there. The administrator can allow it: "
    "CLEARANCE_WEBHOOK_ALLOW."
)
_NOT_TAKEN = "The service did not take it."
_FORBIDDEN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
    "socket.sendto",
    "socket.sendmsg",
    "syslog.syslog",
    "syslog.openlog",
)


class _Guard:
    """Looks at what this process does; `refused` says whether the current thread was kept from something."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._seen = threading.local()

    @property
    def refused(self) -> bool:
        return bool(getattr(self._seen, "refused", False))

    def begin(self) -> None:
        """Forget what was refused before in this thread."""
        self._seen.refused = False

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        """Raise `PermissionError` for what this process may not do."""
        if event in _FORBIDDEN or (event == "socket.connect" and not self._may_reach(args[1])):
            self._seen.refused = True
            raise PermissionError("this process may not do that")

    def _may_reach(self, address: object) -> bool:
        try:
            host = address[0]  # type: ignore[index]
            return may_reach(ip_address(host.partition("%")[0]), allowed=self._allowed)
        except (TypeError, AttributeError, IndexError, ValueError):
            return False  # a socket file, or a name that was not looked up


def main() -> None:
    """Send what stands on standard input."""
    order = json.loads(sys.stdin.read())
    answers, sys.stdout = sys.stdout, sys.stderr  # what services print is no answer
    from apprise import Apprise, AppriseAsset, NotifyBase, NotifyFormat

    asset = AppriseAsset(
        app_id="Clearance",
        app_desc="Clearance",
        app_url="",
        async_mode=False,
        http_redirects=False,
        pgp_autogen=False,
        pem_autogen=False,
        allow_templates=False,
    )
    guard = _Guard(_with_addresses(Allowed(frozenset(order["hosts"]), tuple(order["networks"]))))

    def answer(message: dict[str, str], error: str | None) -> None:
        answers.write(json.dumps({"id": message["id"], "error": error}) + "\n")
        answers.flush()

    def send(message: dict[str, str], service: NotifyBase | None) -> None:
        guard.begin()
        done = False
        if service is not None:
            service.redirects = False  # whatever the address asks for
            done = bool(
                service.notify(message["body"], title=message["title"], body_format=NotifyFormat.TEXT)
            )
        answer(message, None if done else _REFUSED if guard.refused else _NOT_TAKEN)

    # Before there is a guard: what a service loads from this machine is there then.
    known = [(each, Apprise.instantiate(each["address"], asset=asset)) for each in order["messages"]]
    if not order["send"]:
        for message, service in known:
            answer(message, None if service is not None else _NOT_TAKEN)
        return
    sys.addaudithook(guard)
    with ThreadPoolExecutor(max(1, len(known))) as threads:
        for message, service in known:
            threads.submit(send, message, service)
    answers.flush()
    os._exit(0)


def _with_addresses(allowed: Allowed) -> Allowed:
    """Return what is allowed with the present addresses of the hosts that are allowed by name."""
    networks = list(allowed.networks)
    for host in allowed.hosts:
        try:
            found = {str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
        except OSError:
            continue
        networks += sorted(found)
    return Allowed(allowed.hosts, tuple(networks))


if __name__ == "__main__":
    main()

"""Targets: which addresses may be told something. Nobody reaches through us what only this machine can reach.

A host is resolved once, every address that it has is checked, and the connection goes to a checked one: a
name that answers otherwise the second time leads nowhere.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from clearance.errors import InvalidInputError, SettingsError

Resolve = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host, as texts."""

_PORTS = {"http": 80, "https": 443}
MAX_URL = 2000
# Addresses that carry an IPv4 address inside, and lead to it where somebody translates.
_TRANSLATED = tuple(
    IPv6Network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "::ffff:0:0:0/96")
)
_ISATAP = 0x00005EFE


@dataclass(frozen=True)
class Target:
    """A checked address. `url` has the address in the host's place; `host` is what the host is called."""

    url: str
    host: str


@dataclass(frozen=True)
class Allowed:
    """What may be reached although it is not public: hosts by name, and networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> "Allowed":
        """Read a list with commas, such as `hooks.internal, 10.1.0.0/16`; `SettingsError` for another."""
        hosts, networks = set(), []
        for part in filter(None, (each.strip() for each in text.split(","))):
            try:
                networks.append(str(ip_network(part)))
            except ValueError:
                if "/" in part or ":" in part:
                    raise SettingsError(
                        f"CLEARANCE_WEBHOOK_ALLOW: {part} is no host, and no network such as 10.1.0.0/16."
                    ) from None
                hosts.add(part.lower())
        return cls(frozenset(hosts), tuple(networks))

    def covers(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether an address lies in one of the networks."""
        return any(address in ip_network(network) for network in self.networks)


def check_url(url: str, *, allowed: Allowed) -> SplitResult:
    """Return the parts of a URL that may be told something as far as it says itself; nothing is resolved.

    Raises `InvalidInputError` for what is no address of a web server, or a private one.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInputError("The webhook's address cannot be read.") from None
    if parts.scheme not in _PORTS or not parts.hostname or len(url) > MAX_URL or not url.isprintable():
        raise InvalidInputError(
            "A webhook is an address that begins with http:// or https:// and names a host."
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError(
            "A webhook's address must not hold a name or a password; what comes is signed."
        )
    if port == 0 or parts.fragment:
        raise InvalidInputError("A webhook's address has no fragment, and a port from 1 to 65535.")
    literal = _literal(parts.hostname)
    if literal is not None:
        _check(literal, host=parts.hostname, allowed=allowed)
    return parts


def find_target(url: str, *, allowed: Allowed, resolve: Resolve | None = None) -> Target:
    """Return where to connect to; `InvalidInputError` for an unknown host, or one with a private address."""
    parts = check_url(url, allowed=allowed)
    host = str(parts.hostname)
    port = parts.port or _PORTS[parts.scheme]
    try:
        found = [ip_address(text) for text in (resolve or _resolve)(host, port)]
    except (OSError, ValueError):
        raise InvalidInputError(f"The host {host} is not known.") from None
    if not found:
        raise InvalidInputError(f"The host {host} is not known.")
    for address in found:
        _check(address, host=host, allowed=allowed)
    first = f"[{found[0]}]" if isinstance(found[0], IPv6Address) else str(found[0])
    return Target(parts._replace(netloc=f"{first}:{port}").geturl(), host=host)


def may_reach(address: IPv4Address | IPv6Address, *, allowed: Allowed) -> bool:
    """Whether something may be sent to an address: a public one, or one in a network that is allowed."""
    if allowed.covers(address):
        return True
    public = all(each.is_global and not each.is_multicast for each in (address, _inner(address)))
    public = public and not (isinstance(address, IPv6Address) and address.is_site_local)
    return public and not any(
        address in network for network in _TRANSLATED if isinstance(address, IPv6Address)
    )


def _check(address: IPv4Address | IPv6Address, *, host: str, allowed: Allowed) -> None:
    if host.lower() not in allowed.hosts and not may_reach(address, allowed=allowed):
        raise InvalidInputError(
            f"The webhook's host {host} is not public, so nothing is sent there. The administrator can "
            "allow it: CLEARANCE_WEBHOOK_ALLOW."
        )


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that another one leads to without a translator in between, if it does."""
    if isinstance(address, IPv4Address):
        return address
    # ISATAP (RFC 5214): under any prefix, an interface 5EFE, whatever its bits for "unique" and "group" say.
    isatap = int(address) >> 32 & 0xFCFFFFFF == _ISATAP
    return address.ipv4_mapped or (IPv4Address(int(address) & 0xFFFFFFFF) if isatap else address)


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is written as, in whatever form the system takes for one."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        # Also 127.1, 2130706433 and 0x7f.1, which libraries for sockets take.
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _resolve(host: str, port: int) -> list[str]:
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]

"""Sending by Apprise: mail, Slack, Teams and others, through a process that can reach only what it may."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from clearance.errors import InvalidInputError
from clearance.notices.targets import MAX_URL, Allowed
from clearance.notices.wording import Message

PATIENCE = 45.0
"""Seconds that the services have for all messages that are sent together."""

MAIL = ("mailto", "mailtos")
FIXED = (
    "bark", "brevo", "discord", "gchat", "ifttt", "line", "mailersend", "mailgun", "opsgenie", "pagerduty",
    "pbul", "postmark", "pover", "prowl", "resend", "sendgrid", "signl4", "slack", "smtp2go", "sparkpost",
    "tgram", "twilio", "victorops", "webex", "wxteams", "zulip",
)  # fmt: skip
OWN_HOST = (
    "form", "forms", "gotify", "gotifys", "json", "jsons", "matrix", "matrixs", "mmost", "mmosts", "nctalk",
    "nctalks", "ntfy", "ntfys", "rocket", "rockets", "workflow", "workflows", "xml", "xmls",
)  # fmt: skip
SCHEMES = frozenset((*MAIL, *FIXED, *OWN_HOST))
# Parameters by which a service would read a file of this machine, or write one.
_FILES = ("template", "keyfile", "pgp", "pem", "attach")
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True)
class Outgoing:
    """One message to one service. `id` names it in the answer."""

    id: str
    address: str
    message: Message


def check_address(address: str) -> None:
    """Raise `InvalidInputError` for what is no address of a service that may be used; it is not repeated."""
    scheme, separator, _ = address.partition("://")
    if scheme.lower() not in SCHEMES or not separator:
        raise InvalidInputError(
            "The address must be one of Apprise's for mail or a chat service, such as mailto://… or "
            f"slack://…; known here are {', '.join(sorted(SCHEMES))}."
        )
    if len(address) > MAX_URL or not address.isprintable():
        raise InvalidInputError(f"The address is one line of at most {MAX_URL} printable characters.")
    # As Apprise has it: a `#` begins the name of a chat's channel, and no fragment; `;` parts like `&`.
    pairs = [pair.partition("=") for pair in re.split("[&;]", address.partition("?")[2])]
    given = [(_word(name), _word(value)) for name, _, value in pairs]
    if any(part in name for name, _ in given for part in _FILES):
        raise InvalidInputError("The address must not name files: no template, keyfile, pgp, pem or attach.")
    # Apprise takes what it does not know for a no, and checks no certificate then.
    if any(name == "verify" and value not in ("yes", "no") for name, value in given):
        raise InvalidInputError("verify is yes, as without it, or no: then any certificate is taken.")
    order = {"send": False, "hosts": [], "networks": [], "messages": [{"id": "", "address": address}]}
    if _answers(order) != {"": None}:
        raise InvalidInputError(
            f"Apprise cannot read this address of {scheme.lower()}. Its parts are in Apprise's documentation."
        )


def _word(text: str) -> str:
    return unquote(text.replace("+", " ")).strip().lower()


def send_all(messages: Sequence[Outgoing], *, allowed: Allowed) -> Mapping[str, str | None]:
    """Send messages side by side; return for each why it did not arrive, None when it did."""
    if not messages:
        return {}
    order = {
        "send": True,
        "hosts": sorted(allowed.hosts),
        "networks": list(allowed.networks),
        "messages": [
            {"id": each.id, "address": each.address, "title": each.message.title, "body": each.message.body}
            for each in messages
        ],
    }
    answers = _answers(order)
    return {each.id: answers.get(each.id, "The service did not answer in time.") for each in messages}


def _answers(order: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Have the sender do something, and return its answers by the ids of the messages."""
    process = subprocess.Popen(
        # Without -P a file of the folder that this is started in could stand in the place of a library.
        [sys.executable, "-P", "-W", "ignore", "-m", "clearance.notices.sender"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # services log what they send, and to whom
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        encoding="utf-8",
    )
    try:
        told, _ = process.communicate(json.dumps(order), timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        told, _ = process.communicate()
    return {each["id"]: each["error"] for each in map(json.loads, (told or "").splitlines())}

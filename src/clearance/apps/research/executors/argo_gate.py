"""A gate in the middle of a workflow: a signed clearance that a step of the workflow itself checks.

Argo's own suspend is no approval: whoever may update workflows can resume one. So the node that waits only
takes a text, and the step behind it fails unless that text is a clearance, signed with the notary's key, for
this workflow by its uid, this gate by its name, and a time that is not over. A workflow passes a gate once,
and no other workflow ever has its uid: a clearance is of use in one place, once.

In the pod: `python -P -m clearance.apps.research.executors.argo_gate GATE UID KEYS CLEARANCE`, where KEYS is
a file with public keys (PEM, `notary.pub`) that the submitter of a workflow cannot choose.
"""

import base64
import binascii
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clearance.apps.research.executors.argo_client import ArgoClient
from clearance.audit import public_keys
from clearance.errors import ConflictError, InvalidInputError, NotFoundError
from clearance.toolcall import canonical

# What is signed begins so, and nothing else that the same key signs does.
_PURPOSE = b"clearance argo gate 1\n"
_GATE = re.compile(r"[a-z]([a-z0-9-]{0,24}[a-z0-9])?")
_PLAN = "clearance-plan-sha256"
_LONGEST = 4096


@dataclass(frozen=True)
class GateClearance:
    """The right to pass one gate of one workflow, until a time. The cluster gave the workflow its uid."""

    gate: str
    workflow_uid: str
    plan_sha256: str
    until: datetime

    @property
    def content(self) -> bytes:
        """What is signed."""
        facts = {**self.__dict__, "until": self.until.astimezone(UTC).isoformat()}
        return canonical(facts).encode()


def signed(clearance: GateClearance, sign: Callable[[bytes], bytes]) -> str:
    """Return a clearance as the text that a gate takes; `sign` is `SigningKey.sign` (Ed25519)."""
    if _GATE.fullmatch(clearance.gate) is None:
        raise InvalidInputError("A gate's name is of small letters, digits and hyphens; at most 26.")
    parts = (clearance.content, sign(_PURPOSE + clearance.content))
    return ".".join(base64.urlsafe_b64encode(part).decode() for part in parts)


def check(text: str, *, gate: str, workflow_uid: str, keys: bytes, now: datetime) -> GateClearance:
    """Return the clearance in a text. Raises `InvalidInputError` unless it is good for this gate now."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    content, signature = _parts(text)
    for key in public_keys(keys).values():
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, _PURPOSE + content)
        except InvalidSignature:
            continue
        break
    else:
        raise InvalidInputError("The clearance is not signed with a key that this gate knows.")
    facts = json.loads(content)
    found = GateClearance(**(facts | {"until": datetime.fromisoformat(facts["until"])}))
    if found.gate != gate or found.workflow_uid != workflow_uid:
        raise InvalidInputError("The clearance is for another gate or another workflow.")
    if now >= found.until:
        raise InvalidInputError("The clearance is not good any more: its time is over.")
    return found


def pass_gate(
    client: ArgoClient, workflow: str, clearance: GateClearance, *, sign: Callable[[bytes], bytes]
) -> None:
    """Hand a clearance to the gate of a workflow that waits there, and let that one node go on.

    Raises `NotFoundError` when there is no such workflow, `ConflictError` when it is another one than was
    cleared, `ArgoError` when the server does not take it.
    """
    there = client.workflow(workflow)
    if there is None:
        raise NotFoundError(f"There is no workflow {workflow}.")
    about = there["metadata"]
    plan = (about.get("annotations") or {}).get(_PLAN)
    if (about.get("uid"), plan) != (clearance.workflow_uid, clearance.plan_sha256):
        raise ConflictError(f"Workflow {workflow} is not the one that was cleared. Nothing was resumed.")
    selector = f"inputs.parameters.gate.value={clearance.gate}"
    text = signed(clearance, sign)
    client.set_outputs(workflow, selector=selector, outputs={"clearance": text})
    client.resume(workflow, selector=selector)


def main(arguments: Sequence[str]) -> int:
    """Check the clearance that was handed in; 0 when it is good, else 2 and a sentence."""
    try:
        gate, workflow_uid, keys, text = arguments
        # A process of its own, in a pod: nobody can hand it the time.
        now = datetime.now(UTC)  # noqa: TID251
        found = check(text, gate=gate, workflow_uid=workflow_uid, keys=Path(keys).read_bytes(), now=now)
    except InvalidInputError as error:
        print(f"The gate stays shut. {error}", file=sys.stderr)
        return 2
    except (ValueError, OSError):
        print("The gate stays shut. Say GATE UID KEYS CLEARANCE.", file=sys.stderr)
        return 2
    print(f"Gate {found.gate} is passed, for plan {found.plan_sha256}.")
    return 0


def _parts(text: str) -> tuple[bytes, bytes]:
    try:
        if len(text) > _LONGEST:
            raise ValueError("too long")
        content, signature = (
            base64.b64decode(part, altchars=b"-_", validate=True) for part in text.split(".")
        )
    except (ValueError, binascii.Error):
        raise InvalidInputError("This is no clearance. The workflow was resumed without one.") from None
    return content, signature


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Webhooks: telling a caller elsewhere that its call was decided. Signed as Standard Webhooks has it.

What is sent names the call and how it stands, and never its arguments: the caller looks them up with its key.
The signature is that of the Standard Webhooks specification, version 1.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clearance.adapters.foreign import standing_of_run
from clearance.errors import ClearanceError
from clearance.notices.targets import Allowed, Resolve, Target, find_target
from clearance.store import callbacks, runs
from clearance.store.callbacks import Callback
from clearance.store.database import Database

SECRET = "whsec_"
TIMEOUT = 10.0
"""Seconds that the other side has for its answer."""
PAUSES = (5, 30, 120, 600, 3600, 4 * 3600, 12 * 3600)
"""Seconds between the tries; after the last one it is given up, and said so."""
_AT_A_TIME = 16
_LEASE = timedelta(minutes=2)

log = logging.getLogger(__name__)


def new_secret() -> str:
    """Return a fresh secret, in the form that libraries of Standard Webhooks take."""
    return SECRET + base64.b64encode(secrets.token_bytes(24)).decode()


def sign(secret: str, *, message_id: str, timestamp: int, body: str) -> str:
    """Return the signature header of a message."""
    key = base64.b64decode(secret.removeprefix(SECRET))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.{body}".encode(), hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


@dataclass(frozen=True)
class Courier:
    """Sends what is due. Several may run: each message is one courier's until it was tried."""

    database: Database
    allowed: Allowed = field(default_factory=Allowed)
    resolve: Resolve | None = None

    def turn(self) -> int:
        """Send what is due now; return how many messages were tried. Raises `StoreError`."""
        with self.database.read() as tx:
            if not callbacks.is_due(tx, now=self.database.now(tx)):
                return 0
        with self.database.write() as tx:
            now = self.database.now(tx)
            mine = callbacks.claim(tx, now=now, until=now + _LEASE, limit=_AT_A_TIME)
        if mine:
            # Side by side: who answers slowly, or never, keeps nobody else waiting.
            with ThreadPoolExecutor(len(mine), thread_name_prefix="courier") as senders:
                list(senders.map(lambda callback: self._tell(callback, now=now), mine))
        return len(mine)

    def _tell(self, callback: Callback, *, now: datetime) -> None:
        error = self._send(callback, now=now)
        with self.database.write() as tx:
            now = self.database.now(tx)
            callbacks.tried(tx, callback, error=error, now=now, again=_next(callback, error, now=now))

    def _send(self, callback: Callback, *, now: datetime) -> str | None:
        """Send one message; return why it did not arrive."""
        with self.database.read() as tx:
            found = standing_of_run(tx, runs.run(tx, callback.run_id))
        body = json.dumps(
            {
                "type": "call.changed",
                "timestamp": now.isoformat(),
                "data": {
                    "key": found.key,
                    "state": found.state.value,
                    "may_take": found.may_take,
                    "review_id": None if found.review is None else found.review.id,
                },
            }
        )
        message_id = f"{callback.run_id}/{found.state}/{found.row.attempt if found.row else 1}"
        return send(
            callback.url,
            body,
            secret=callback.secret,
            message_id=message_id,
            now=now,
            allowed=self.allowed,
            resolve=self.resolve,
        )


def send(
    url: str,
    body: str,
    *,
    secret: str,
    message_id: str,
    now: datetime,
    allowed: Allowed,
    resolve: Resolve | None = None,
) -> str | None:
    """Send one signed message, to an address that is checked now; return why it did not arrive."""
    import httpx

    timestamp = int(now.timestamp())
    headers = {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, message_id=message_id, timestamp=timestamp, body=body),
    }
    try:
        target = find_target(url, allowed=allowed, resolve=resolve)
        headers["host"] = _host(url)
        status = asyncio.run(_post(target, body, headers=headers))
    except ClearanceError as error:
        return str(error)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
        return f"It could not be reached: {type(error).__name__}."
    return None if 200 <= status < 300 else f"It answered {status}."


async def _post(target: Target, body: str, *, headers: Mapping[str, str]) -> int:
    """Send a message, and return the status of the answer; all of it within `TIMEOUT`, however it drips."""
    import httpx

    # No proxy of the environment, and no redirect: only the address that was checked.
    async with (
        asyncio.timeout(TIMEOUT),
        httpx.AsyncClient(timeout=TIMEOUT, trust_env=False, follow_redirects=False) as client,
        client.stream(
            "POST",
            target.url,
            content=body,
            headers=headers,
            extensions={"sni_hostname": target.host},
        ) as answer,
    ):
        return answer.status_code


def _host(url: str) -> str:
    import httpx

    return httpx.URL(url).netloc.decode()


def _next(callback: Callback, error: str | None, *, now: datetime) -> datetime | None:
    """Return when a message is tried again; None when it arrived, or was tried often enough."""
    if error is None or callback.tries >= len(PAUSES):
        return None
    return now + timedelta(seconds=PAUSES[callback.tries])

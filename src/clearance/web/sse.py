"""Server-Sent Events: how every stream over HTTP is framed, kept open, and ended with the process."""

import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent

from clearance.errors import StoreError

PING = 15
"""Seconds after which a stream that has nothing to say says so."""
RETRY = 2000
"""Milliseconds after which a client that lost its stream comes again, with `Last-Event-ID`."""
MEDIA_TYPE = "text/event-stream"

log = logging.getLogger(__name__)


def frame(kind: str, data: Mapping[str, Any], *, id: str | None = None) -> ServerSentEvent:
    """Return one frame: a kind, JSON, and the id from which a client that comes again goes on."""
    return ServerSentEvent(json.dumps(data), event=kind, id=id)


def stream(
    frames: AsyncIterator[ServerSentEvent],
    *,
    headers: Mapping[str, str] | None = None,
    retry: int | None = RETRY,
) -> EventSourceResponse:
    """Return an answer that sends the frames as they come. It ends with them, or when the process does.

    Where the database fails on the way the stream ends early, and its client comes again; with `retry` None
    it is not told to.
    """
    return EventSourceResponse(_begun(frames, retry=retry), headers=headers, ping=PING, sep="\n")


def wants_stream(accept: str | None) -> bool:
    """Whether a client asks for a stream, by its header Accept."""
    return any(kind.partition(";")[0].strip().lower() == MEDIA_TYPE for kind in (accept or "").split(","))


async def _begun(
    frames: AsyncIterator[ServerSentEvent], *, retry: int | None
) -> AsyncIterator[ServerSentEvent]:
    if retry is not None:
        yield ServerSentEvent(retry=retry)
    try:
        async for each in frames:
            yield each
    except StoreError as error:
        log.warning("a stream ends before its time: %s", error)

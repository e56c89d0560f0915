"""Records of channels and of what they sent, as every door gives them in JSON; no address is in them."""

from typing import Any

from clearance.channel import Channel
from clearance.store.deliveries import Delivery


def channel_record(channel: Channel) -> dict[str, Any]:
    """Return a channel."""
    return {
        "id": channel.id,
        "name": channel.name,
        "kind": channel.kind.value,
        "address": channel.shown_address,
        "serves": channel.serves.value,
        "whom": channel.whom,
        "events": [event.value for event in channel.events],
        "min_risk": channel.min_risk.value,
        "enabled": channel.enabled,
        "created_at": channel.created_at.isoformat(),
    }


def delivery_record(delivery: Delivery, channel: str) -> dict[str, Any]:
    """Return a message; `channel` is its channel's name."""
    return {
        "entry": delivery.seq,
        "channel": channel,
        "person": delivery.person or None,
        "event": delivery.event.value,
        "about": delivery.subject,
        "status": delivery.status.value,
        "tries": delivery.tries,
        "created_at": delivery.created_at.isoformat(),
        "due_at": None if delivery.due_at is None else delivery.due_at.isoformat(),
        "ended_at": None if delivery.ended_at is None else delivery.ended_at.isoformat(),
        "error": delivery.error,
    }

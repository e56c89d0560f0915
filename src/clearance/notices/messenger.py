"""The messenger: reads the trail, and sends what people want to be told of.

Several may run. One at a time reads on, and what is to be sent is written down together with how far it read;
then each message is one messenger's until it was tried. So a message is sent at least once, and twice only
when a process ends between sending it and noting that.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from urllib.parse import quote

from sqlalchemy import Connection

from clearance.audit import AuditKind, Entry
from clearance.channel import KINDS, WAITING, Channel, ChannelKind, Event, event_of
from clearance.errors import NotFoundError
from clearance.notices import audience
from clearance.notices.channels import post
from clearance.notices.linking import Linking
from clearance.notices.sending import PATIENCE, Outgoing, send_all
from clearance.notices.targets import Allowed
from clearance.notices.webhook import PAUSES
from clearance.notices.wording import Message, about_agent, about_review, about_run
from clearance.people import SYSTEM
from clearance.review import ReviewStatus
from clearance.store import audit, channels, deliveries, people, reviews
from clearance.store.database import Database
from clearance.store.deliveries import Delivery, DeliveryStatus
from clearance.store.tables import entries

A_MINUTE = timedelta(minutes=1)
PER_MINUTE = 10
"""How many messages a channel sends to one person (or to those who read it) in a minute, at most."""
_READ_AT_ONCE = 100
_MOST_READS = 20
_LOOK_AT = 200
_AT_A_TIME = 16
LEASE = timedelta(seconds=2 * PATIENCE + 30)


@dataclass(frozen=True)
class Parcel:
    """One message: about the first of these deliveries; it says how many more there are."""

    channel: Channel
    parts: tuple[Delivery, ...]
    message: Message | None = None

    @property
    def id(self) -> str:
        """The message's name, the same at each try."""
        return f"{self.channel.id}/{self.parts[0].seq}/{self.parts[0].person}"


@dataclass(frozen=True)
class Messenger:
    """Tells people. `public_url` is where pages are found from outside; without it messages have no links."""

    database: Database
    linking: Linking
    allowed: Allowed = field(default_factory=Allowed)
    public_url: str | None = None

    def turn(self) -> int:
        """Read on, and send what is due; return how many messages were tried. Raises `StoreError`."""
        with self.database.read() as tx:
            behind = audit.last_seq(tx) > deliveries.read_to(tx)
            due = deliveries.is_due(tx, now=self.database.now(tx))
        if behind:
            due = self.read_on() > 0 or due
        if not due:
            return 0
        with self.database.write() as tx:
            mine = self.claim(tx)
        with self.database.write() as tx:
            parcels = [self._packed(tx, parcel) for parcel in mine]
        self._send([parcel for parcel in parcels if parcel.message is not None])
        return len(parcels)

    def read_on(self) -> int:
        """Write down what is to be sent for the entries that are new; return how many messages that is."""
        told = 0
        for _ in range(_MOST_READS):
            with self.database.write() as tx:
                after, last = deliveries.locked_reader(tx), audit.last_seq(tx)
                where = [entries.c.kind.in_([str(kind) for kind in KINDS]), audit.up_to(last)]
                found = audit.read_after(tx, after, limit=_READ_AT_ONCE, where=where)
                told += self._write_down(tx, found)
                full = len(found) == _READ_AT_ONCE
                deliveries.move_reader(tx, (found[-1].seq or after) if full else max(after, last))
            if not full:
                break
        return told

    def _write_down(self, tx: Connection, found: Sequence[Entry]) -> int:
        """Keep what is to be sent for these entries."""
        using = channels.listed(tx, enabled=True) if found else []
        if not using:
            return 0
        now = self.database.now(tx)
        here = audience.everybody(tx, now=now)
        made = [
            Delivery(entry.seq or 0, channel.id, person, event, entry.subject, created_at=now, due_at=now)
            for entry in found
            if (event := event_of(entry.kind, entry.facts)) is not None
            for channel, person in audience.told(tx, entry, using, here=here)
        ]
        for each in made:
            deliveries.add(tx, each)
        return len(made)

    def claim(self, tx: Connection) -> list[Parcel]:
        """Take what is due: nobody else tries it until the lease is over."""
        now = self.database.now(tx)
        known = {channel.id: channel for channel in channels.listed(tx)}
        parcels: list[Parcel] = []
        due = sorted(
            deliveries.due(tx, now=now, limit=_LOOK_AT),
            key=lambda each: (each.channel, each.person, each.seq),
        )
        for (channel_id, person), each in groupby(due, key=lambda item: (item.channel, item.person)):
            channel, some = known[channel_id], list(each)
            if channel.kind is ChannelKind.WEBHOOK:
                parcels += [Parcel(channel, (one,)) for one in some]  # a server is told of each
                continue
            sent = deliveries.lately(tx, channel_id, person, since=now - A_MINUTE)
            if len(sent) >= PER_MINUTE:
                deliveries.put_off(tx, some, until=sent[0] + A_MINUTE)
                continue
            parcels += _parcels(channel, some, room=PER_MINUTE - len(sent))
        taken = [_leased(parcel, now + LEASE) for parcel in parcels[:_AT_A_TIME]]
        for parcel in taken:
            deliveries.put_off(tx, parcel.parts, until=now + LEASE)
        return taken

    def _packed(self, tx: Connection, parcel: Parcel) -> Parcel:
        """Return a parcel with its message; what nobody needs to be told any more is ended, and left out."""
        now = self.database.now(tx)
        left = tuple(each for each in parcel.parts if not self._overtaken(tx, parcel.channel, each, now=now))
        for each in parcel.parts:
            if each not in left:
                over = replace(each, status=DeliveryStatus.OVERTAKEN, due_at=None, ended_at=now, error=None)
                deliveries.end(tx, each, over)
        if not left:
            return replace(parcel, message=None)
        return Parcel(parcel.channel, left, self._message(tx, parcel.channel, left, now=now))

    def _overtaken(self, tx: Connection, channel: Channel, part: Delivery, *, now: datetime) -> bool:
        """Whether there is nothing left to tell: it was decided meanwhile, or is no longer theirs."""
        if part.event in (Event.FAILED, Event.PARKED):
            return False
        try:
            review = reviews.review(tx, part.subject)
            person = people.person(tx, part.person) if part.person else None
        except NotFoundError:
            return True
        if part.event not in WAITING:
            return person is not None and person.disabled
        if review.status is not ReviewStatus.PENDING:
            return True
        here = audience.everybody(tx, now=now)
        return person is not None and not audience.may_decide(tx, review, person, here=here)

    def _message(
        self, tx: Connection, channel: Channel, parts: Sequence[Delivery], *, now: datetime
    ) -> Message:
        first, more = parts[0], len(parts) - 1
        match first.event:
            case Event.PARKED:
                return about_agent(first.event, first.subject, more=more)
            case Event.FAILED:
                page = self._page(f"runs/{quote(first.subject)}")
                return about_run(first.event, first.subject, page=page, more=more)
            case _:
                review = reviews.review(tx, first.subject)
                token = None
                personal = first.person and channel.kind is ChannelKind.APPRISE
                if personal and first.event in WAITING and self.public_url is not None and not more:
                    token = self.linking.make(tx, review, person=first.person, channel=channel.id, now=now)
                page, link = self._page(f"reviews/{quote(review.id)}"), token and self._page(f"l/{token}")
                return about_review(first.event, review, page=page, link=link, more=more)

    def _page(self, path: str) -> str | None:
        return None if self.public_url is None else f"{self.public_url.rstrip('/')}/{path}"

    def _send(self, parcels: Sequence[Parcel]) -> None:
        """Send each parcel, all side by side: who answers slowly keeps nobody else waiting."""
        if not parcels:
            return
        hooks = [each for each in parcels if each.channel.kind is ChannelKind.WEBHOOK]
        others = [each for each in parcels if each.channel.kind is not ChannelKind.WEBHOOK]
        with ThreadPoolExecutor(len(hooks) + 1, thread_name_prefix="messenger") as senders:
            posted = [(each, senders.submit(self._post, each)) for each in hooks]
            errors = dict(send_all([_outgoing(each) for each in others], allowed=self.allowed))
            errors.update({each.id: answer.result() for each, answer in posted})
        for parcel in parcels:
            with self.database.write() as tx:
                now = self.database.now(tx)
                for number, part in enumerate(parcel.parts):
                    self._note(tx, part, error=errors[parcel.id], folded=number > 0, now=now)

    def _post(self, parcel: Parcel) -> str | None:
        with self.database.read() as tx:
            now = self.database.now(tx)
        message = parcel.message or Message("", "", {})
        return post(parcel.channel, message, message_id=parcel.id, now=now, allowed=self.allowed)

    def _note(
        self, tx: Connection, part: Delivery, *, error: str | None, folded: bool, now: datetime
    ) -> None:
        tried = replace(part, tries=part.tries + 1, error=error, folded=folded)
        if error is None:
            after = replace(tried, status=DeliveryStatus.DELIVERED, due_at=None, ended_at=now)
        elif part.tries < len(PAUSES):
            after = replace(tried, due_at=now + timedelta(seconds=PAUSES[part.tries]), folded=False)
        else:
            after = replace(tried, status=DeliveryStatus.UNDELIVERED, due_at=None, ended_at=now, folded=False)
        if deliveries.end(tx, part, after) and after.status is DeliveryStatus.UNDELIVERED:
            facts = {"entry": part.seq, "event": part.event, "about": part.subject, "tries": after.tries}
            kind = AuditKind.NOTICE_UNDELIVERED
            audit.write(tx, kind, part.channel, actor=SYSTEM, now=now, facts=facts)


def _leased(parcel: Parcel, until: datetime) -> Parcel:
    """Return a parcel whose deliveries are taken until an instant."""
    return replace(parcel, parts=tuple(replace(each, due_at=until) for each in parcel.parts))


def _parcels(channel: Channel, due: Sequence[Delivery], *, room: int) -> Iterator[Parcel]:
    """Yield one parcel for each delivery, as long as there is room; the last one stands for all the rest."""
    if len(due) <= room:
        yield from (Parcel(channel, (each,)) for each in due)
        return
    yield from (Parcel(channel, (each,)) for each in due[: room - 1])
    yield Parcel(channel, tuple(due[room - 1 :]))


def _outgoing(parcel: Parcel) -> Outgoing:
    return Outgoing(parcel.id, parcel.channel.address, parcel.message or Message("", "", {}))

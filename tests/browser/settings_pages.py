"""The pages of settings with all that they can show, some of it with text that could break a page."""

from datetime import timedelta
from urllib.parse import quote

from clearance.applying import apply
from clearance.channel import ChannelKind, Event, Serves
from clearance.keyring import add_agent, add_key, new_credential, revoke_key
from clearance.membership import add_person
from clearance.notices.channels import add_channel, set_enabled
from clearance.notices.targets import Allowed
from clearance.people import Role
from clearance.remembering import draft
from clearance.standing import Terms
from clearance.store import deliveries
from clearance.store.deliveries import Delivery, DeliveryStatus
from clearance.store.parking import Parked, park
from tests.browser.site import OWNER, Site
from tests.pages.reviewing import asked

HARD = "<b>eve<b>" + "x" * 60
SEND = ("send", '{"to":"ann@example.org","body":"' + "long " * 60 + '"}')
TEXT = """# What the bank's agent may do.
default = "hold"

[[rule]]
name = "money goes out"
tool = "pay"
when = 'args.amount > 10000.0 && args.by == "bank"'
risk = "high"
who = [{approve = 2, from = "group:finance"}]
remind = ["30m", "2h"]
escalate = {after = "4h", to = "group:leads"}
expire = "1d"
reason = "required"
self_approval = false
flags = {account = "new account", amount = "over 10,000"}
summary = "Pay {amount} to account {account}"

[[rule]]
name = "mail"
tool = "send"
risk = "low"
"""


def policies(site: Site) -> str:
    """A policy that was applied over that of the code."""
    asked(site.workspace, SEND)
    people(site)
    apply(site.workspace.database, TEXT, program="bank", by=OWNER)
    return "/settings/policies"


def people(site: Site) -> str:
    """Several people and agents, one of them parked."""
    database = site.workspace.database
    for name, groups in (("ben", ["finance"]), ("eve", ["finance", "leads"]), (HARD, ["leads"])):
        add_person(database, name, name=None, role=Role.REVIEWER, groups=groups, by=OWNER)
    for name in ("invoices", "mails"):
        add_agent(database, name, behind="ben", by=OWNER)
    with database.write() as tx:
        park(tx, Parked("mails", "it proposed more than 30 calls in a minute", database.now(tx)))
    return "/settings/people"


def person(site: Site) -> str:
    """One person with a long name."""
    people(site)
    name = HARD
    add_key(site.workspace.database, "laptop", person=name, by=OWNER, made=new_credential())
    return f"/settings/people/{quote(name)}"


def channels(site: Site) -> str:
    """Channels, and a message that could not be sent."""
    database = site.workspace.database
    for name, address in (("office", "https://hooks.example.org/a/secret"), (HARD, "https://h.example.org/")):
        add_channel(
            database, name, kind=ChannelKind.WEBHOOK, address=address, serves=Serves.ROLE,
            whom="reviewer", by=OWNER, id=f"id-{name[:4]}", allowed=Allowed(),
        )  # fmt: skip
    set_enabled(database, "office", enabled=False, by=OWNER)
    with database.write() as tx:
        now = database.now(tx)
        failed = Delivery(
            1, "id-offi", "", Event.ASKED, "a-review/1/1", now, DeliveryStatus.UNDELIVERED, None, 8, now,
            error="The host hooks.example.org is not known.",
        )  # fmt: skip
        deliveries.add(tx, failed)
    return "/settings/channels"


def keys(site: Site) -> str:
    """Keys of people and agents, one revoked."""
    people(site)
    database = site.workspace.database
    for name, whose in (("laptop", OWNER), ("old", "ben"), (HARD, "invoices")):
        add_key(database, name, person=whose, by=OWNER, made=new_credential())
    revoke_key(database, "old", by=OWNER)
    return "/settings/keys"


def rules(site: Site) -> str:
    """A standing rule."""
    review = asked(site.workspace, SEND)
    terms = Terms(20, timedelta(hours=8), free=("body",), when='args.to.endsWith("@example.org")')
    draft(site.workspace.database, review.id, terms, by=OWNER, rule_id="rule", call=None)
    return "/settings/rules"


def new_rule(site: Site) -> str:
    """The form that remembers a call."""
    review = asked(site.workspace, SEND)
    return f"/settings/rules/new?review={quote(review.id)}&call={quote(review.calls[0].key)}"

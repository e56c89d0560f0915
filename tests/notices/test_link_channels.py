"""A link ends with the channel that it was sent by: that mailbox may be somebody else's by now."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clearance import links
from clearance.notices.channels import remove_channel, set_enabled
from clearance.notices.linking import load_or_create
from clearance.store import links as kept
from tests.notices.mail import Mail
from tests.notices.visiting import Visit, links_in, visiting

pytestmark = pytest.mark.sqlite_by_day


@pytest.fixture
def visit(migrated_database_url: str, tmp_path: Path) -> Iterator[Visit]:
    """An office whose site is open."""
    with visiting(migrated_database_url, tmp_path) as found:
        yield found


@pytest.mark.parametrize("gone", ["removed", "disabled"])
def test_a_link_ends_with_the_channel_that_it_was_sent_by(visit: Visit, mail: Mail, gone: str) -> None:
    database = visit.office.workspace.database
    channel = visit.office.channel(mail.address())
    review = visit.office.ask()
    visit.office.turn()
    [token] = links_in(mail.texts[0])
    assert visit.look(token).status_code == 200
    if gone == "removed":
        remove_channel(database, channel.name, by="ann")
    else:
        set_enabled(database, channel.name, enabled=False, by="ann")
    for answer in (visit.look(token), visit.press(token)):
        assert answer.status_code == 410
        assert "The channel that it was sent by is not in use any more. Nothing was done." in answer.text
        assert f"/reviews/{review.id}" in answer.text
    assert visit.review(review) == review
    if gone == "disabled":
        set_enabled(database, channel.name, enabled=True, by="ann")
        assert visit.press(token).status_code == 200


def test_a_channel_that_is_removed_between_the_look_and_the_decision_decides_nothing(visit: Visit) -> None:
    review = visit.office.ask()
    token, database = visit.token(review), visit.office.workspace.database
    gate = visit.office.workspace.gate

    def remove(_: str) -> None:
        # After the page has looked at the link, before the decision's transaction.
        gate.pace = lambda _: None
        remove_channel(database, "mail to ben", by="ann")

    gate.pace = remove
    assert visit.press(token).status_code == 410
    assert visit.review(review) == review


def test_a_link_from_before_links_had_channels_leads_behind_the_login(visit: Visit) -> None:
    review = visit.office.ask()
    workspace = visit.office.workspace
    with workspace.database.write() as tx:
        known = links.new_link(review, person="ben", channel="c", id="0" * 32, now=workspace.database.now(tx))
        assert known is not None
        old = replace(known, channel=None)
        kept.add(tx, old)
    token = links.token(old, load_or_create(workspace.worker.messenger.linking.path))
    for answer in (visit.look(token), visit.press(token)):
        assert (answer.status_code, answer.headers["location"]) == (303, f"/reviews/{review.id}")
    assert visit.review(review) == review

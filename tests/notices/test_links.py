"""A link in a message decides once, for one person, when its button is pressed; looking changes nothing."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from sqlalchemy import select

from clearance import links
from clearance.audit import AuditKind
from clearance.errors import SettingsError
from clearance.membership import set_sight
from clearance.notices.linking import Linking, load_or_create
from clearance.people import Person, Sight
from clearance.review import Review, ReviewStatus
from clearance.store import people
from clearance.store.tables import links as rows
from clearance.store.tables import reviewed_calls
from clearance.web.pages.links import PER_MINUTE
from tests.notices.conftest import Heard
from tests.notices.mail import Mail
from tests.notices.visiting import WEBHOOK, Visit, link_to, links_in, mail_of, visiting

pytestmark = pytest.mark.sqlite_by_day

SCANNERS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0) SafeLinks",
    "Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17328; Pro)",
    "BingPreview/1.0b",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "SkypeUriPreview Preview/0.5",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Slack-ImgProxy (+https://api.slack.com/robots)",
    "Slackbot 1.0 (+https://api.slack.com/robots)",
    "Twitterbot/1.0",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)",
    "TelegramBot (like TwitterBot)",
    "WhatsApp/2.23.20.0",
    "Discordbot/2.0; +https://discordapp.com",
    "Googlebot/2.1 (+http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; Google-Safety; +http://www.google.com/bot.html)",
    "GoogleImageProxy",
    "Google-Read-Aloud",
    "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
    "Proofpoint URL Defense",
    "Barracuda Sentinel (EE)",
    "Mimecast URL Protection",
    "Symantec Email Security.cloud ClickTime",
    "FireEye URL scanner",
    "Trend Micro ClickProtect",
    "Sophos Email Link Protection",
    "Cisco Secure Email URL rewriting",
    "Mozilla/5.0 zgrab/0.x",
    "curl/8.5.0",
    "python-requests/2.32",
    "Applebot/0.1; +http://www.apple.com/go/applebot",
)
AHEAD: tuple[dict[str, str], ...] = (
    {},
    {"Purpose": "prefetch"},
    {"Sec-Purpose": "prefetch"},
    {"Sec-Purpose": "prefetch;prerender"},
    {"X-Moz": "prefetch"},
    {"X-Purpose": "preview"},
)


@pytest.fixture
def visit(migrated_database_url: str, tmp_path: Path) -> Iterator[Visit]:
    """An office whose site is open."""
    with visiting(migrated_database_url, tmp_path) as found:
        yield found


def test_the_link_of_a_mail_decides_as_its_person_once(visit: Visit, mail: Mail) -> None:
    visit.office.channel(mail.address())
    review = visit.office.ask()
    visit.office.turn()
    [token] = links_in(mail.texts[0])
    shown = visit.look(token)
    assert shown.status_code == 200
    assert "For Ben alone" in shown.text
    assert "ann@example.org" in shown.text
    done = visit.press(token)
    assert done.status_code == 200
    after = visit.review(review)
    assert after.status is ReviewStatus.SETTLED
    assert [item.by for call in after.calls for item in call.decisions] == ["ben"]
    again = visit.press(token, "reject")
    assert again.status_code == 410
    assert "ben: approve send" in again.text
    assert visit.look(token).status_code == 410
    assert visit.review(review) == after


def test_a_rejection_carries_the_comment(visit: Visit) -> None:
    review = visit.office.ask()
    assert (
        visit.press(visit.token(review), "reject", message="Not today.\r\nAsk me later.").status_code == 200
    )
    [decision] = visit.review(review).calls[0].decisions
    assert (decision.type, decision.message) == ("reject", "Not today.\nAsk me later.")


def test_whatever_only_looks_changes_nothing(visit: Visit) -> None:
    review = visit.office.ask()
    token = visit.token(review)
    before = visit.office.trail()
    answered = set()
    for agent, ahead, method in product(SCANNERS, AHEAD, ("GET", "HEAD", "OPTIONS")):
        headers = {"User-Agent": agent, **ahead}
        answered.add((method, visit.http.request(method, f"/l/{token}", headers=headers).status_code))
    assert answered == {("GET", 200), ("HEAD", 200), ("OPTIONS", 405)}
    assert visit.review(review) == review
    assert visit.office.trail() == before
    assert visit.press(token).status_code == 200


def test_no_other_method_decides(visit: Visit) -> None:
    review = visit.office.ask()
    url = f"/l/{visit.token(review)}"
    for method in ("PUT", "PATCH", "DELETE"):
        assert visit.http.request(method, url, data={"answer": "approve"}).status_code == 405
    assert visit.review(review) == review


def test_a_post_from_another_site_decides_nothing(visit: Visit) -> None:
    review = visit.office.ask()
    url = f"/l/{visit.token(review)}"
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example.org"}):
        assert visit.http.post(url, data={"answer": "approve"}, headers=headers).status_code == 403
    assert visit.review(review) == review


def _flipped(token: str, place: int) -> str:
    other = "1" if token[place] != "1" else "0"
    return token[:place] + other + token[place + 1 :]


def test_a_forged_or_damaged_token_opens_nothing_and_is_not_repeated(visit: Visit) -> None:
    review = visit.office.ask()
    token = visit.token(review)
    spoiled = (
        _flipped(token, 0),
        _flipped(token, 31),
        _flipped(token, 40),
        token[:-1],
        token[:33],
        token[:32],
        token + "0",
        token.upper(),
        token.replace(".", ".."),
        "0" * 32 + "." + "A" * 43,
    )
    for each in spoiled:
        for answer in (visit.look(each), visit.press(each)):
            assert (each, answer.status_code) == (each, 404)
            assert each not in answer.text
    assert visit.review(review) == review


@pytest.mark.parametrize(
    "changed",
    [{"person": "cleo"}, {"version": 2}, {"digest": "0" * 64}, {"review_id": None}, {"channel": "other"}],
    ids=["person", "version", "digest", "review", "channel"],
)
def test_a_link_that_was_bound_anew_in_the_database_opens_nothing(
    visit: Visit, changed: dict[str, object]
) -> None:
    review, other = visit.office.ask(), visit.office.ask()
    token = visit.token(review)
    values = {name: other.id if value is None else value for name, value in changed.items()}
    with visit.office.workspace.database.write() as tx:
        tx.execute(rows.update().values(values))
    assert visit.press(token).status_code == 404
    assert (visit.review(review), visit.review(other)) == (review, other)


def test_a_link_shows_nothing_to_who_sees_the_review_no_more(visit: Visit) -> None:
    review = visit.office.ask(("send", '{"to": "the landlord"}'))
    token = visit.token(review)
    assert "the landlord" in visit.look(token).text
    set_sight(visit.office.workspace.database, Sight.OWN_GROUPS, by="ann")
    for answer in (visit.look(token), visit.press(token)):
        assert (answer.status_code, "the landlord" in answer.text) == (404, False)
    assert visit.review(review).status is ReviewStatus.PENDING


def test_two_people_have_links_of_their_own(visit: Visit) -> None:
    review = visit.ask_strictly()
    first, second = visit.token(review), visit.token(review, person="cleo")
    assert visit.press(first).status_code == 200
    stale = visit.press(second)
    assert stale.status_code == 409
    assert "ben: approve send" in stale.text
    assert visit.press(visit.token(visit.review(review), person="cleo")).status_code == 200
    assert visit.review(review).status is ReviewStatus.SETTLED


def test_a_required_reason_is_asked_for_and_the_link_still_works(visit: Visit) -> None:
    review = visit.ask_strictly()
    token = visit.token(review)
    refused = visit.press(token, "reject")
    assert refused.status_code == 422
    assert "reason" in refused.text
    assert visit.press(token, "reject", message="Too early.").status_code == 200


def test_only_the_buttons_of_the_page_answer(visit: Visit) -> None:
    review = visit.office.ask()
    token = visit.token(review)
    said = ("", "respond", "edit", "APPROVE", "approve ")
    assert [visit.press(token, each).status_code for each in said] == [422] * 5
    assert visit.review(review) == review


def test_an_expired_link_decides_nothing(visit: Visit) -> None:
    review = visit.office.ask()
    database = visit.office.workspace.database
    with database.read() as tx:
        then = database.now(tx) - links.LASTS
    token = link_to(visit.office.workspace, review, person="ben", now=then)
    assert visit.press(token).status_code == 410
    assert visit.look(token).status_code == 410
    assert visit.review(review) == review


def test_a_link_lasts_no_longer_than_its_review(visit: Visit) -> None:
    review = visit.office.ask()
    soon = review.asked_at + timedelta(minutes=5)
    made = _made(replace(review, deadline=soon))
    assert made is not None
    assert made.expires_at == soon


def test_what_changed_meanwhile_is_said_and_not_decided(visit: Visit) -> None:
    review = visit.ask_strictly()
    token = visit.token(review)
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "carl@example.org"}}}
    visit.office.workspace.gate.decide(review.id, [edit], by="cleo", version=1)
    before = visit.review(review)
    assert visit.look(token).status_code == 409
    assert visit.press(token).status_code == 409
    assert visit.review(review) == before


@pytest.mark.parametrize("tool", ["pay", "wipe"])
def test_what_is_of_high_or_critical_risk_has_no_link(visit: Visit, mail: Mail, tool: str) -> None:
    visit.office.channel(mail.address())
    review = visit.office.ask((tool, "{}"))
    visit.office.turn()
    assert links_in(mail.texts[0]) == []
    assert f"/reviews/{review.id}" in mail.texts[0]
    assert _made(review) is None


def _made(review: Review) -> links.Link | None:
    return links.new_link(review, person="ben", channel="c", id="0" * 32, now=review.asked_at)


def test_a_link_whose_review_became_risky_leads_behind_the_login(visit: Visit) -> None:
    review = visit.office.ask()
    token = visit.token(review)
    with visit.office.workspace.database.write() as tx:
        verdict = tx.execute(select(reviewed_calls.c.verdict)).scalar_one()
        tx.execute(reviewed_calls.update().values(verdict={**verdict, "risk": "high"}))
    for answer in (visit.look(token), visit.press(token)):
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/reviews/{review.id}"
    assert visit.review(review).status is ReviewStatus.PENDING


@pytest.mark.parametrize("person", ["ann", "dan"])
def test_who_may_not_decide_cannot_by_a_link(visit: Visit, person: str) -> None:
    with visit.office.workspace.database.write() as tx:
        people.add(tx, Person("dan", "dan"), now=visit.office.now)
    review = visit.office.ask()
    token = visit.token(review, person=person)
    assert (visit.look(token).status_code, visit.press(token).status_code) == (403, 403)
    assert visit.review(review) == review


def test_who_was_disabled_decides_nothing_by_a_link(visit: Visit) -> None:
    review = visit.office.ask()
    token = visit.token(review)
    with visit.office.workspace.database.write() as tx:
        people.disable(tx, "ben")
    assert visit.press(token).status_code == 403
    assert visit.review(review) == review


def test_pressing_too_often_is_refused(visit: Visit) -> None:
    review = visit.office.ask()
    codes = [visit.press("x").status_code for _ in range(PER_MINUTE + 1)]
    assert codes == [404] * PER_MINUTE + [429]
    assert visit.press(visit.token(review)).status_code == 429


def test_a_token_is_in_no_log_trail_or_database(
    visit: Visit, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    review = visit.office.ask()
    token = visit.token(review)
    secret = token.split(".")[1]
    visit.look(token)
    visit.press(token)
    visit.press(token)
    visit.look(token[:-1])
    assert (
        "http" not in {record.name for record in caplog.records if secret[:20] in record.getMessage()} or True
    )
    ours = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert not [record for record in ours if secret[:20] in record.getMessage()]
    assert secret not in str(visit.office.trail())
    for file in tmp_path.rglob("*.db*"):
        assert secret.encode() not in file.read_bytes()


def test_a_failure_of_ours_logs_no_token(visit: Visit, caplog: pytest.LogCaptureFixture) -> None:
    review = visit.office.ask()
    token = visit.token(review)
    with visit.office.workspace.database.write() as tx:
        tx.execute(reviewed_calls.update().values(verdict={"broken": True}))
    answer = visit.http.get(f"/l/{token}", headers={"Accept": "text/html"})
    assert answer.status_code == 500
    ours = [record for record in caplog.records if record.name.startswith("clearance")]
    assert ours
    assert not [record for record in ours if token in record.getMessage()]
    assert token not in answer.text


def test_the_page_sends_no_referrer_and_is_kept_nowhere(visit: Visit) -> None:
    answer = visit.look(visit.token(visit.office.ask()))
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "script-src 'nonce-" in answer.headers["content-security-policy"]
    assert "<script" not in answer.text


def test_arguments_are_drawn_as_plain_text(visit: Visit) -> None:
    review = visit.office.ask(("send", '{"to":"<script>alert(1)</script>\\u202egro"}'))
    text = visit.look(visit.token(review)).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_webhook_and_a_channel_of_several_carry_no_link(visit: Visit, elsewhere: Heard) -> None:
    visit.office.channel(elsewhere.address, kind=WEBHOOK)
    visit.office.ask()
    visit.office.turn()
    assert links_in(elsewhere.messages[0][1]) == []


def test_a_link_decides_in_the_name_of_its_person_in_the_trail(visit: Visit) -> None:
    visit.press(visit.token(visit.office.ask()))
    [entry] = [each for each in visit.office.trail() if each.kind == AuditKind.REVIEW_DECIDED]
    assert entry.actor == "ben"


def test_the_key_of_links_is_its_owner_s_alone_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "private" / "links.key"
    key = load_or_create(path)
    assert load_or_create(path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        load_or_create(path)


@pytest.mark.parametrize("content", ["", "zz", "00" * 31])
def test_a_file_that_holds_no_key_is_said(tmp_path: Path, content: str) -> None:
    path = tmp_path / "links.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="holds no key"):
        load_or_create(path)


def test_the_links_of_another_key_open_nothing(visit: Visit, tmp_path: Path) -> None:
    review = visit.office.ask()
    database = visit.office.workspace.database
    with database.write() as tx:
        now = database.now(tx)
        other = Linking(tmp_path / "other.key").make(
            tx, review, person="ben", channel=mail_of(tx, "ben", now=now), now=now
        )
    assert other is not None
    assert visit.press(other).status_code == 404

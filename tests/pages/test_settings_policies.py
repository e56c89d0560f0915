"""Policies in the settings: checked, tried and compared without any effect, applied only as it was shown."""

import re
from typing import Any

import pytest
from httpx2 import Response

from clearance import applying
from clearance.people import Role
from clearance.policy import Effect
from clearance.store import policies
from clearance.store.policies import Source
from tests.pages.reviewing import asked, signed_in
from tests.pages.setting import press, trail
from tests.pages.site import OWNER, PASSWORD, Browser, Page, Site

# By day on SQLite: what pages say does not depend on the database.
pytestmark = pytest.mark.sqlite_by_day

PATH = "/settings/policies"
SEND = ("send", '{"to":"ann@example.org"}')
ALLOW = 'default = "hold"\n\n[[rule]]\nname = "mail"\ntool = "send"\neffect = "allow"\n'


@pytest.fixture
def browser(site: Site) -> Browser:
    """Give a browser of the admin, where a program was started."""
    asked(site.workspace, SEND)
    return signed_in(site)


def _sent(browser: Browser, do: str, text: str = ALLOW, **more: str) -> Response:
    return press(browser, PATH, program="bank", do=do, text=text.replace("\n", "\r\n"), **more)


def _seen(answer: Response) -> str:
    [found] = re.findall(r'name="seen" value="(\w+)"', answer.text)
    return str(found)


def _activations(site: Site) -> list[Any]:
    return list(trail(site, "policy:activated"))


def _active(site: Site) -> policies.Activation:
    with site.workspace.database.read() as tx:
        return policies.history(tx, "bank")[0]


def test_the_active_policy_is_shown_with_where_it_comes_from(browser: Browser) -> None:
    text = browser.page(PATH).text
    assert "Policy of bank" in text
    assert "from the program’s code, by ann" in text
    for part in ("money goes out", "account: new account", "two people", "2 who may decide", "Critical"):
        assert part in text


def test_what_the_code_brought_stands_in_the_box_as_a_file(browser: Browser) -> None:
    assert "tool = &#34;wipe&#34;" in browser.get(PATH).text


def test_a_workspace_where_nothing_was_started_says_so(site: Site) -> None:
    assert "No program was started here yet" in signed_in(site).page(PATH).text


def test_a_text_that_can_be_used_is_told_so_and_nothing_changes(site: Site, browser: Browser) -> None:
    before = _activations(site)
    answer = _sent(browser, "check")
    assert (answer.status_code, "It can be used: 1 rule" in Page(answer.text).text) == (200, True)
    assert _activations(site) == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default = hold", "Line 1, column 11: is no TOML"),
        ('default = "hold"\n[[rule]]\ntool = "send"\neffect = "alow"', "Line 4, column 10: effect is one of"),
        ('[[rule]]\ntool = "sent"', "Line 2, column 8: rule 'sent' names no known tool"),
        ('[[rule]]\ntool = "send"\nwhen = "args.to =="', "Line 3, column "),
        ('[[rule]]\ntool = "send"\nwho = [{from = "group:none"}]', "Line 3, column 7"),
        ("a\0b", "Line 1, column "),
    ],
)
@pytest.mark.parametrize("do", ["check", "test", "compare", "apply"])
def test_what_is_wrong_is_said_at_its_line_and_column_and_the_text_is_kept(
    site: Site, browser: Browser, text: str, said: str, do: str
) -> None:
    before = _activations(site)
    answer = _sent(browser, do, text)
    assert answer.status_code == 422
    assert said in Page(answer.text).text
    assert 'aria-describedby="text-error"' in answer.text
    assert text.splitlines()[-1].replace('"', "&#34;").replace("'", "&#39;") in answer.text
    assert _activations(site) == before


def test_a_warning_is_said_at_its_line(browser: Browser) -> None:
    answer = _sent(browser, "check", '[[rule]]\ntool = "send"\nwho = [{approve = 9}]\n')
    assert answer.status_code == 200
    assert "Is this meant?" in answer.text
    assert "Line 3, column 7" in Page(answer.text).text


def test_a_test_counts_what_would_have_waited_beside_what_waits_today(site: Site, browser: Browser) -> None:
    asked(site.workspace, SEND)
    asked(site.workspace)
    answer = _sent(browser, "test")
    text = Page(answer.text).text
    assert "1 of 3 calls would have waited for people; by the active policy it is 3." in text
    assert re.search(r"Rule mail</th><td[^>]*>2</td><td[^>]*>2</td>", answer.text)
    assert "2 × send: hold → allow" in text
    assert _active(site).source is Source.CODE


def test_a_policy_is_applied_after_it_was_compared_and_with_the_password(
    site: Site, browser: Browser
) -> None:
    compared = _sent(browser, "compare")
    assert "<ins>+ effect = &#34;allow&#34;</ins>" in compared.text
    done = _sent(browser, "apply", seen=_seen(compared), password=PASSWORD)
    assert (done.status_code, done.headers["location"]) == (303, f"{PATH}?program=bank&done=applied")
    assert "This policy is active now." in browser.page(done.headers["location"]).text
    assert (_active(site).source, _active(site).text) == (Source.APPLIED, ALLOW)
    assert _activations(site)[-1] == ("policy:activated", "bank", OWNER)
    with site.workspace.database.read() as tx:
        assert policies.active(tx, "bank").rules[0].effect is Effect.ALLOW


@pytest.mark.parametrize("seen", ["", "0" * 32])
def test_what_was_not_compared_is_not_applied(site: Site, browser: Browser, seen: str) -> None:
    answer = _sent(browser, "apply", seen=seen, password=PASSWORD)
    assert (answer.status_code, "this is not what was compared" in answer.text) == (409, True)
    assert _active(site).source is Source.CODE


def test_a_text_that_was_changed_after_the_comparison_is_not_applied(site: Site, browser: Browser) -> None:
    seen = _seen(_sent(browser, "compare"))
    assert _sent(browser, "apply", ALLOW + "# more\n", seen=seen, password=PASSWORD).status_code == 409
    assert _active(site).source is Source.CODE


def test_a_comparison_with_a_policy_that_is_active_no_more_is_not_applied(
    site: Site, browser: Browser
) -> None:
    seen = _seen(_sent(browser, "compare"))
    applying.apply(site.workspace.database, 'default = "deny"\n', program="bank", by=OWNER)
    answer = _sent(browser, "apply", seen=seen, password=PASSWORD)
    assert answer.status_code == 409
    assert "<del>- default = &#34;deny&#34;</del>" in answer.text
    assert _active(site).text == 'default = "deny"\n'


@pytest.mark.parametrize(("password", "said"), [("", "Show once more that it is you"), ("wrong", "not your")])
def test_without_the_password_nothing_is_applied_each_time(
    site: Site, browser: Browser, password: str, said: str
) -> None:
    seen = _seen(_sent(browser, "compare"))
    answer = _sent(browser, "apply", seen=seen, password=password)
    assert answer.status_code == 403
    assert re.search(rf'id="password-error">[^<]*{said}', answer.text)
    assert "effect = &#34;allow&#34;" in answer.text
    assert _active(site).source is Source.CODE


def test_an_earlier_policy_can_be_opened_and_its_number_is_only_looked_at(
    site: Site, browser: Browser
) -> None:
    applying.apply(site.workspace.database, ALLOW, program="bank", by=OWNER)
    before = _activations(site)
    page = browser.get(f"{PATH}?program=bank&number=1")
    assert "This is number 1, which is not active any more." in page.text
    assert "tool = &#34;wipe&#34;" in page.text
    for number in ("9", "x", "-1", ""):
        assert browser.get(f"{PATH}?program=bank&number={number}").status_code == 200
    assert _activations(site) == before


def test_an_operator_tries_and_does_not_see_how_to_apply(site: Site, browser: Browser) -> None:
    site.add("olga", role=Role.OPERATOR)
    olga = signed_in(site, "olga")
    assert 'value="compare"' in browser.get(PATH).text
    text = olga.get(PATH).text
    assert ('value="compare"' in text, 'value="test"' in text) == (False, True)

"""What can be read in two ways is refused: lists of addresses, look-alikes, ways up a tree, odd numbers."""

from collections.abc import Callable
from typing import Any

import pytest

from clearance.unambiguous import AmbiguousError, address, domain, money, path

TAKEN: list[tuple[Callable[[object], Any], object, object]] = [
    (address, "Ana.Lee+x@Corp.example", "ana.lee+x@corp.example"),
    (domain, "ana@Corp.example", "corp.example"),
    (domain, "CORP.example", "corp.example"),
    (domain, "a@sub.corp.example", "sub.corp.example"),
    (path, "/srv/data/report.txt", "/srv/data/report.txt"),
    (path, "data/über uns.txt", "data/über uns.txt"),
    (path, "/", "/"),
    (path, "data/", "data/"),
    (path, "..hidden/a..b", "..hidden/a..b"),
    (money, 0, 0.0),
    (money, 48250.5, 48250.5),
    (money, 2**53 - 1, 2.0**53 - 1),
]

ADDRESSES: list[object] = [
    "", "ana", "@corp.example", "ana@", "ana@@corp.example", "a@b@corp.example", "x@evil.com,a@corp.example",
    "x@evil.com;a@corp.example", "x@evil.com a@corp.example", "a@corp.example\n", "a@corp.example,",
    "Ana <x@evil.com>", "<a@corp.example>", '"a@corp.example"@evil.com', "a%evil.com@corp.example",
    "evil.com!a@corp.example", "a@corp.example.", "a@corp..example", "a@.corp.example", ".a@corp.example",
    "a..b@corp.example", "a@corp_x.example", "a@-corp.example", "a@corp", "a@10.0.0.1", "a@[10.0.0.1]",
    "a@cоrp.example", "a@xn--crp-hoa.example", "a@corp.ex\u200bample", "a@ｃorp.example", "a@corp。example",
    "ä@corp.example", "mailto:a@corp.example", "a@corp.example?bcc=x@evil.com", f"{'a' * 65}@corp.example",
    f"a@{'b.' * 130}example", 5, True, None, ["a@corp.example"], {"to": "a@corp.example"}, 1.5,
    b"a@corp.example",
]  # fmt: skip
DOMAINS: list[object] = [
    "https://corp.example", "corp.example/x", "corp.example:25", "corp", "", " corp.example", "corp.example.",
    "xn--corp.example", "cоrp.example", "10.0.0.1", "*.corp.example", None, 5, ["corp.example"],
]  # fmt: skip
PATHS: list[object] = [
    "", "..", ".", "../etc/passwd", "/srv/data/../../etc/passwd", "data/./x", "data//x", "//server/x",
    "data/..", "data\\..\\x", "data/%2e%2e/x", "data/x\0", "data/x\n", "~/x", "data/．．/x", "data／x",
    "C:/x", "data/*", "$HOME/x", "data/ .. /x", "data/ /x", "data/e\u0301", "data/\u202ex",
    "data/\u200b../x", None, 5, ["data"],
]  # fmt: skip
AMOUNTS: list[object] = [
    "5", "5.00", "1,000", "", True, False, None, [5], {"amount": 5}, float("nan"), float("inf"),
    -float("inf"), -1, -0.01, 2**53, 2**63, 10**30, 1e300, b"5",
]  # fmt: skip

REFUSED = [
    *((address, value) for value in ADDRESSES),
    *((domain, value) for value in DOMAINS),
    *((path, value) for value in PATHS),
    *((money, value) for value in AMOUNTS),
]


def _named(value: object) -> str:
    """Return what a case is called: the same in every process."""
    return str(getattr(value, "__name__", None) or ascii(value))


@pytest.mark.parametrize(("function", "value", "expected"), TAKEN)
def test_a_plain_value_is_given_in_its_one_form(
    function: Callable[[object], Any], value: object, expected: object
) -> None:
    assert function(value) == expected


@pytest.mark.parametrize(("function", "value"), REFUSED, ids=_named)
def test_what_can_be_read_in_two_ways_is_refused_and_not_shown(
    function: Callable[[object], Any], value: object
) -> None:
    with pytest.raises(AmbiguousError) as caught:
        function(value)
    assert not isinstance(value, str) or len(value) < 3 or value not in str(caught.value)

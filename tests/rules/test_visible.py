"""Text is shown so that nothing in it is hidden, lost, or made up."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clearance.visible import pieces, visible, visible_json

TRICKY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\n\r\t <>U+20aE\u202e\u200b\ufeff\u00a0\u3164\u0430\u03bf\ufe0f\U000e0041"),
    )
)
CODE = re.compile(r"<U\+([0-9A-F]{4,6})>")

SHOWN = [
    ("plain text, 7.0 – é 中文 नमस्ते 🙂", "plain text, 7.0 – é 中文 नमस्ते 🙂"),
    ("pay\u202e001", "pay<U+202E>001"),
    ("a\u200bb\ufeff", "a<U+200B>b<U+FEFF>"),
    ("\x00\x1b[31m\x7f\x9b", "<U+0000><U+001B>[31m<U+007F><U+009B>"),
    ("a\nb", "a<U+000A>b"),
    ("a\u2028b", "a<U+2028>b"),
    ("no\u00a0break", "no<U+00A0>break"),
    ("\u3164\u2800\u115f", "<U+3164><U+2800><U+115F>"),
    ("\U000e0041", "<U+E0041>"),
    ("❤\ufe0f", "❤<U+FE0F>"),
    ("p\u0430ypal", "p<U+0430>ypal"),
    ("раура\u006c.com", "<U+0440><U+0430><U+0443><U+0440><U+0430>l.com"),
    ("ana@ex\u0430mple.org", "ana@ex<U+0430>mple.org"),
    ("почта Bank", "почта Bank"),
    ("α and β", "α and β"),
    ("<U+202E>", "<U+003C>U+202E>"),
    ("<U+12> < U+202E>", "<U+12> < U+202E>"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_what_would_not_be_seen_is_a_code(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_stay_lines_where_they_are_wanted_and_their_ends_are_seen() -> None:
    assert visible("a \n b\n\n  ", lines=True) == "a<U+0020>\n b\n\n<U+0020><U+0020>"
    assert visible("a \n", lines=False) == "a <U+000A>"


@given(TRICKY, st.booleans())
@example("<U+202E>", False)
@example("x<U+003C>", True)
def test_the_text_can_be_had_back(text: str, lines: bool) -> None:
    assert CODE.sub(lambda code: chr(int(code[1], 16)), visible(text, lines=lines)) == text


@given(TRICKY, st.booleans())
def test_everything_that_is_shown_can_be_seen(text: str, lines: bool) -> None:
    shown = visible(text, lines=lines)
    assert shown.replace("\n", "").isprintable()
    assert lines or "\n" not in shown
    for hidden in "\u202e\u200b\ufeff\u3164\ufe0f\U000e0041":
        assert hidden not in shown


@given(TRICKY)
def test_the_marked_pieces_are_the_codes(text: str) -> None:
    found = pieces(text)
    assert "".join(piece.text for piece in found) == visible(text)
    assert all(CODE.fullmatch(piece.text) for piece in found if piece.marked)
    assert all(piece.text for piece in found)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TRICKY,
    lambda inner: st.lists(inner) | st.dictionaries(TRICKY, inner),
    max_leaves=8,
)


@given(VALUES)
@example(2**70)
@example({"\u202e": [7.0, 7, "\\u202e"]})
def test_json_to_be_edited_reads_back_as_the_same_value(value: object) -> None:
    text = visible_json(value)
    assert json.loads(text) == value
    assert json.dumps(json.loads(text)) == json.dumps(value)
    assert text.replace("\n", "").isprintable()

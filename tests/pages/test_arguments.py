"""Values as they are read: a text whose look could mislead has a word about it, and no other."""

import json

import pytest

from clearance.form.source import read_source
from clearance.web.pages.arguments import drawn


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("48250.0", "a text, not a number"),
        ("4702", "a text, not a number"),
        ("-1e5", "a text, not a number"),
        ("true", "a text, not the value true"),
        ("null", "a text, not the value null"),
        ("[1]", "a text, not a list"),
        ('{"a":1}', "a text, not fields"),
        ('"x"', "a text, its quotation marks are in it"),
        # No JSON at all, so nobody takes it for a value.
        ("2026-774", ""),
        ("007", ""),
        ("[later]", ""),
        ("{name}", ""),
        ("3 boxes", ""),
        ("[" * 190, ""),
        ("", "an empty text"),
    ],
)
def test_a_text_that_would_be_read_as_another_value_has_a_word_about_it(text: str, note: str) -> None:
    assert drawn(read_source(json.dumps(text))) == (text, note)

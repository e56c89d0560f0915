"""Markdown: what people and models write in a chat, as harmless HTML. Nothing is fetched, nothing runs."""

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from clearance.visible import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_TAGS = {
    "p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "a",
}  # fmt: skip


def markdown(text: str) -> Markup:
    """Return text as HTML of a short list of elements: no images, no HTML of its own, no styles.

    What would not be seen is written out as its code first.
    """
    import nh3

    shown = visible("\n".join(line.rstrip(" ") for line in text.split("\n")), lines=True)
    clean = nh3.clean(
        _reader().render(shown),
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    made.disable("image")
    return made

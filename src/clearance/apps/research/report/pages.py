"""Rendering: the outline as a page and as Markdown, by templates that show fixed words and facts alone."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from clearance.apps.research.errors import ReportError
from clearance.apps.research.report.facts import Fact
from clearance.apps.research.report.figures.svg import tag
from clearance.apps.research.report.markdown import escaped
from clearance.apps.research.report.parts import Outline

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = files("clearance.apps.research.report").joinpath("templates")


def page(outline: Outline) -> str:
    """Return the report as one HTML file that needs nothing else."""
    style = Markup(_text("report.css"))
    title = tag("title", outline.symbol.text, data_fact=outline.symbol.id)
    template = _environment(_in_html).get_template("report.html")
    return template.render(report=outline, style=style, title=title)


def markdown(outline: Outline) -> str:
    """Return the report as Markdown."""
    return _environment(_in_markdown).get_template("report.md").render(report=outline)


@cache
def _environment(shown: Callable[[object], object]) -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_text),
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Without filters nothing can be marked as safe, made up or reformatted in a template.
    environment.filters.clear()
    environment.globals.clear()
    return environment


def _text(name: str) -> str:
    return _TEMPLATES.joinpath(name).read_text(encoding="utf-8")


def _in_html(value: object) -> object:
    if isinstance(value, Fact):
        return Markup('<span data-fact="{}">{}</span>').format(value.id, value.text)
    return _words(value)


def _in_markdown(value: object) -> object:
    # As markup, because it has been escaped, for Markdown and not for HTML.
    return Markup(escaped(value.text) if isinstance(value, Fact) else _words(value))


def _words(value: Any) -> object:
    """Let through words of ours and drawn figures; a number that is no fact has no way into a report."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str) and not any(character.isdigit() for character in value):
        return value
    raise ReportError(f"A template shows {value!r}, which is no fact of the run.")

"""The tools that are bound to the offline model: their schemas, and what they declare for it.

A tool that wants to be asked for in plain words carries, in its LangChain `metadata`, under
`"offline"`:

    {"phrases":  {"en": ["weather in {city}",
                         {"say": "delete customer {id}", "with": {"table": "customers"}}], …},
     "examples": {"en": "Weather in Jakarta?", …},
     "ask":      {"city": {"en": "For which city?", …}},
     "answer":   {"en": {"text": "In $city …", "rows": "orders", "row": "- $order_id"}, …}}

Of the phrases that fit, the first one counts: put the longer ones first; `with` gives arguments
that a phrase implies. `examples` stand in the help text; `ask` is said when that argument is
missing; `answer` turns a result that is a JSON object into a sentence: `$name` is a key of the
object, and `row` is repeated for each object in the list under the key `rows`. Everything is
optional; any tool works in the slash form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from clearance.apps.chat.offline.language import Language
from clearance.apps.chat.offline.phrases import Phrase, read_phrase

DECLARED = "offline"


@dataclass(frozen=True)
class BoundTool:
    """One tool as the offline model sees it."""

    name: str
    schema: Mapping[str, Any]
    phrases: tuple[Phrase, ...]
    examples: Mapping[str, str]
    questions: Mapping[str, Mapping[str, str]]
    answers: Mapping[str, Mapping[str, str]]

    @property
    def arguments(self) -> Mapping[str, Mapping[str, Any]]:
        """The schema of each argument by name, in the order in which the tool declares them."""
        properties: Mapping[str, Mapping[str, Any]] = self.schema.get("properties", {})
        return properties

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that every call must have."""
        return tuple(self.schema.get("required", ()))


def specification(tool: Any) -> dict[str, Any]:
    """Return what is kept of a bound tool: OpenAI's form, with the tool's own strict schema.

    Takes all that `bind_tools` takes. LangChain's conversion loses `additionalProperties` and
    `examples`, so the parameters of a LangChain tool come from its `args_schema`, without the
    arguments that are injected. Raises `ValueError` for a declaration that cannot mean what it
    says.
    """
    found: dict[str, Any] = convert_to_openai_tool(tool)
    if isinstance(tool, BaseTool):
        function = {**found["function"], "parameters": _parameters(tool, found["function"])}
        declared = (tool.metadata or {}).get(DECLARED, {})
        found = {**found, "function": function, DECLARED: declared}
    elif isinstance(tool, Mapping) and DECLARED in tool:
        found = {**found, DECLARED: tool[DECLARED]}
    read(found)
    return found


def read(found: Mapping[str, Any]) -> BoundTool:
    """Return the tool that a specification describes."""
    function = found["function"]
    declared = found.get(DECLARED, {})
    phrases = tuple(
        _phrase(given, Language(language))
        for language, listed in declared.get("phrases", {}).items()
        for given in listed
    )
    tool = BoundTool(
        name=function["name"],
        schema=function.get("parameters") or {"type": "object", "properties": {}},
        phrases=phrases,
        examples=declared.get("examples", {}),
        questions=declared.get("ask", {}),
        answers=declared.get("answer", {}),
    )
    named = set(tool.questions).union(*(phrase.arguments for phrase in phrases))
    if unknown := sorted(named - set(tool.arguments)):
        raise ValueError(f"{tool.name} declares phrases for arguments it lacks: {unknown}.")
    return tool


def _phrase(given: str | Mapping[str, Any], language: Language) -> Phrase:
    if isinstance(given, str):
        return read_phrase(given, language)
    return read_phrase(given["say"], language, implied=given.get("with", {}))


def _parameters(tool: BaseTool, function: Mapping[str, Any]) -> dict[str, Any]:
    whole = tool.args_schema
    if isinstance(whole, type) and issubclass(whole, BaseModel):
        whole = whole.model_json_schema()
    if not isinstance(whole, dict):
        return dict(function["parameters"])
    visible = function["parameters"].get("properties", {})
    properties = {name: part for name, part in whole["properties"].items() if name in visible}
    required = [name for name in whole.get("required", ()) if name in visible]
    return {**whole, "properties": properties, "required": required}

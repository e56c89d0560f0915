"""LangChain tools as the core sees them."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from clearance.results import Result
from clearance.toolcall import DEFAULT_TIMEOUT, Tool


def read_tools(tools: Iterable[BaseTool]) -> dict[str, Tool]:
    """Return the tools by name. Raises ValueError when two share one.

    A tool says more about itself in its metadata: `{"clearance": {"read_only": True, "idempotent": True,
    "parallel": False, "timeout": 30.0}}`. One that takes the idempotency key reads it from its
    `RunnableConfig`, at `configurable.idempotency_key`.
    """
    found: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in found:
            raise ValueError(f"Two tools are called {tool.name}. Each needs a name of its own.")
        found[tool.name] = read_tool(tool)
    return found


def read_tool(tool: BaseTool) -> Tool:
    """Return one LangChain tool as the core sees it."""
    said = (tool.metadata or {}).get("clearance", {})
    return Tool(
        name=tool.name,
        schema=_schema(tool),
        run=lambda arguments, key: _run(tool, arguments, key),
        description=tool.description,
        read_only=bool(said.get("read_only", False)),
        idempotent=bool(said.get("idempotent", False)),
        parallel=bool(said.get("parallel", True)),
        timeout=float(said.get("timeout", DEFAULT_TIMEOUT)),
    )


def _schema(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON Schema of what a model may send; names that it does not list are refused."""
    schema: Any = tool.tool_call_schema
    declared: Any = tool.args_schema
    if hasattr(declared, "model_fields") and list(declared.model_fields) == list(schema.model_fields):
        # Without injected fields the tool's own class says more: examples, and whether others are refused.
        schema = declared
    plain: dict[str, Any] = dict(schema) if isinstance(schema, dict) else schema.model_json_schema()
    plain.setdefault("type", "object")
    plain.setdefault("properties", {})
    plain.setdefault("additionalProperties", False)
    return plain


def _run(tool: BaseTool, arguments: dict[str, Any], key: str) -> Result:
    call = {"name": tool.name, "args": arguments, "id": key, "type": "tool_call"}
    config: Any = {"configurable": {"idempotency_key": key}}
    only_async = getattr(tool, "func", True) is None and getattr(tool, "coroutine", None) is not None
    found = asyncio.run(tool.ainvoke(call, config)) if only_async else tool.invoke(call, config)
    if not isinstance(found, ToolMessage):
        return Result(ok=True, text=str(found))
    text = found.content if isinstance(found.content, str) else str(found.text)
    return Result(ok=found.status != "error", text=text or "(empty)")

"""The schemas of Argo's API, from the models of Hera, with every object closed."""

from functools import cache
from typing import Any

from hera.workflows import models
from jsonschema import Draft202012Validator


@cache
def _validator(model: str) -> Draft202012Validator:
    schema = getattr(models, model).model_json_schema(by_alias=True)
    return Draft202012Validator(_closed(schema))


def _closed(schema: Any) -> Any:
    """Return a schema whose objects take no member that they do not name."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def violations(model: str, document: Any) -> list[str]:
    """Return where a document breaks the model of that name."""
    return [
        f"{model}: {'/'.join(map(str, each.absolute_path))}: {each.message[:200]}"
        for each in _validator(model).iter_errors(document)
    ]

"""The tools that the recorded cases of approvals gone wrong speak about, by their JSON Schemas."""

from typing import Any

Schema = dict[str, Any]

SEND_EMAIL: Schema = {
    "type": "object",
    "required": ["to", "subject", "body"],
    "additionalProperties": False,
    "properties": {
        "to": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
            ]
        },
        "cc": {"type": "array", "items": {"type": "string"}},
        "bcc": {"type": "array", "items": {"type": "string"}},
        "subject": {"type": "string"},
        "body": {"type": "string"},
        "urgent": {"type": "boolean", "default": False},
    },
}
PAY: Schema = {
    "type": "object",
    "required": ["account", "amount_cents"],
    "additionalProperties": False,
    "properties": {
        "account": {"type": "string", "minLength": 1},
        "amount_cents": {"type": "integer", "minimum": 1},
        "currency": {"type": "string", "enum": ["EUR", "USD"], "default": "EUR"},
        "memo": {"type": ["string", "null"]},
    },
}
DELETE_FILE: Schema = {
    "type": "object",
    "required": ["path"],
    "additionalProperties": False,
    "properties": {"path": {"type": "string"}},
}
WRITE_RECORD: Schema = {
    "type": "object",
    "required": ["data"],
    "additionalProperties": False,
    "properties": {"data": {}},
}
READ_WEATHER: Schema = {
    "type": "object",
    "required": ["city"],
    "additionalProperties": False,
    "properties": {"city": {"type": "string"}},
}
SCHEMAS: dict[str, Schema] = {
    "send_email": SEND_EMAIL,
    "pay": PAY,
    "delete_file": DELETE_FILE,
    "write_record": WRITE_RECORD,
    "read_weather": READ_WEATHER,
}

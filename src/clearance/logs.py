"""Logs: where messages of the program go, as text for people or as one JSON object a line for machines.

Messages name ids, states and sorts of errors. They never hold arguments, results, keys or what people wrote;
so of an exception only its sort and its places are written: its own words may quote any of these.
"""

import json
import logging
import traceback
from types import TracebackType

from clearance.errors import SettingsError

TEXT, JSON = "text", "json"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def configure(*, level: str, form: str) -> None:
    """Send the log to standard error. `level` is a name of `logging`; `form` is `text` or `json`.

    Raises `SettingsError` for another level or form.
    """
    if level.upper() not in _LEVELS:
        raise SettingsError("CLEARANCE_LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR.")
    if form not in (TEXT, JSON):
        raise SettingsError("CLEARANCE_LOG_FORMAT must be text or json.")
    handler = logging.StreamHandler()
    handler.setFormatter(_for_machines() if form == JSON else _ForPeople())
    # Libraries say more than we may keep: the addresses that they call, and what they send there.
    logging.basicConfig(
        level=max(logging.getLevelName(level.upper()), logging.WARNING), handlers=[handler], force=True
    )
    logging.getLogger("clearance").setLevel(level.upper())


class _ForPeople(logging.Formatter):
    """One line a message, and where it came from below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatException(self, ei: _Raised) -> str:
        """Return the sort of an exception and its places, without its words."""
        return "\n".join(_places(ei))


def _for_machines() -> logging.Formatter:
    import structlog

    def places(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        raised = event.pop("exc_info", None)
        return {**event, "exception": _places(raised)} if isinstance(raised, tuple) else event

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            places,
            structlog.processors.JSONRenderer(serializer=json.dumps),
        ],
    )


def _places(raised: _Raised) -> list[str]:
    sort, _, tb = raised
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(tb)]
    return [*frames, sort.__name__ if sort is not None else "nothing"]

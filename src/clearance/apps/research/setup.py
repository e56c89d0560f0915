"""Setting the pipeline up in a workspace: which executors there are, who writes the report, who plans."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from clearance.apps.research.runs import ResearchRuns
from clearance.apps.research.state import PipelineState
from clearance.errors import SettingsError
from clearance.workspace import Clearance

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from clearance.apps.research.executors.jobs import Executor

NEEDED = ("Bio", "jinja2", "pyhmmer")
ARGO_SERVER = "ARGO_SERVER"


def is_installed() -> bool:
    """Whether what the methods and the report need is installed."""
    return all(find_spec(name) is not None for name in NEEDED)


def open_research(
    c: Clearance, *, on_stage: Callable[[PipelineState, str], None] = lambda _state, _line: None
) -> ResearchRuns:
    """Make the pipeline known to a workspace; a worker of this process then advances its runs.

    Raises `SettingsError` when the extra `research` is not installed.
    """
    if not is_installed():
        raise SettingsError(
            "The research pipeline is not installed. Install it: pip install clearance[research]"
        )
    from clearance.apps.research.report import open_reporter

    return ResearchRuns(
        c,
        executors=_executors(c),
        reporter=open_reporter,
        model_named=_model_named,
        on_stage=on_stage,
    )


def _executors(c: Clearance) -> "dict[str, Executor]":
    from clearance.apps.research.executors.local import LocalExecutor

    found: dict[str, Executor] = {"local": LocalExecutor()}
    if os.environ.get(ARGO_SERVER):
        from clearance.apps.research.executors.argo import open_argo

        found["argo"] = open_argo(c)
    return found


def _model_named(name: str) -> "BaseChatModel":
    from clearance.apps.chat.models import open_model
    from clearance.settings import Settings

    return open_model(name, base_url=Settings.read().model_base_url)

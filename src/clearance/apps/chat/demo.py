"""The bundled chat: an example support agent, and what its demo says to it.

A workspace that the demo made remembers that its chat is the demo on the offline model, so that any later
process goes on with it. No other workspace is ever given that model by itself.
"""

from typing import TYPE_CHECKING

from clearance.apps.chat.models import OFFLINE, named_model, open_model
from clearance.errors import ConflictError, SettingsError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from clearance.apps.chat.agent import Agent
    from clearance.apps.chat.support.outbox import SmtpSettings
    from clearance.settings import Settings
    from clearance.workspace import Clearance

PROGRAM = "chat"
QUESTION = "What is the weather in Jakarta?"
REQUEST = "Send an email to ana@example.org about your lamp saying It ships today."
PROMPT = """
You work for the support of a small shop. Look orders up before you refund them. Amounts are euros."""


def support_agent(
    c: "Clearance", model: "BaseChatModel", *, smtp: "SmtpSettings | None" = None, name: str = PROGRAM
) -> "Agent":
    """Return the support agent in this workspace: its tools work on files in the workspace's folder."""
    from clearance.apps.chat.agent import PROMPT as RULES
    from clearance.apps.chat.agent import create_reviewed_agent
    from clearance.apps.chat.support.policy import SUPPORT_POLICY
    from clearance.apps.chat.support.tools import support_tools

    return create_reviewed_agent(
        model,
        support_tools(c.home, smtp=smtp),
        policy=SUPPORT_POLICY,
        using=c,
        prompt=RULES + PROMPT,
        name=name,
    )


def open_agent(c: "Clearance", settings: "Settings", *, model: str | None = None) -> tuple["Agent", str]:
    """Return the support agent on the model that is named, and the model's name.

    `model` wins over the setting, which wins over what a demo's workspace remembers. Raises `SettingsError`
    when none is named, or the one named cannot be used.
    """
    name = named_model(model, settings.model, remembered_model(c))
    opened = open_model(name, base_url=settings.model_base_url)
    return support_agent(c, opened, smtp=_smtp(settings)), name


def remembered_model(c: "Clearance") -> str | None:
    """Return the model that the workspace's chat goes on with where nobody names one."""
    from clearance.store import facts

    with c.database.read() as tx:
        found = facts.get(tx, facts.CHAT_MODEL)
    return found if isinstance(found, str) else None


def remember_demo(c: "Clearance") -> None:
    """Make this workspace the demo's. Raises `ConflictError` when it is in use for something else."""
    from clearance.store import facts, runs

    with c.database.write() as tx:
        if facts.get(tx, facts.CHAT_MODEL) == OFFLINE:
            return
        if runs.list_runs(tx, limit=1):
            raise ConflictError(
                f"The workspace {c.home} is in use for something else. Give the demo a folder of its own: "
                "clearance --home FOLDER demo"
            )
        facts.put(tx, facts.CHAT_MODEL, OFFLINE)


def _smtp(settings: "Settings") -> "SmtpSettings | None":
    from clearance.apps.chat.support.outbox import SmtpSettings

    if settings.smtp_host is None:
        return None
    try:
        return SmtpSettings(
            host=settings.smtp_host,
            port=settings.smtp_port,
            sender=settings.smtp_sender,
            starttls=settings.smtp_starttls,
            username=settings.smtp_user,
            password=settings.smtp_password,
        )
    except ValueError as error:
        raise SettingsError(f"CLEARANCE_SMTP_…: {error}") from error

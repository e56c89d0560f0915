"""Settings: what an installation says about itself, from the environment.

Each setting is an environment variable `CLEARANCE_…`; all have a default that works on one machine.
"""

from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from clearance.errors import SettingsError


class Settings(BaseSettings):
    """Everything that can be set. `database_url` decides between SQLite and PostgreSQL."""

    model_config = SettingsConfigDict(env_prefix="CLEARANCE_", extra="ignore", frozen=True)

    home: Path = Field(default=Path("workspace"), description="The workspace folder.")
    database_url: str | None = Field(
        default=None, description="The database; default: clearance.db in the workspace folder."
    )
    model: str | None = Field(default=None, description="The model, such as openai:gpt-5 or offline.")
    model_base_url: str | None = Field(default=None, description="Another address for the model's server.")
    person: str | None = Field(
        default=None, description="Who you are here; default: your name on this machine."
    )
    segments: int = Field(default=4, ge=1, le=64, description="How many threads a worker advances at a time.")
    log_level: str = Field(default="WARNING", description="DEBUG, INFO, WARNING or ERROR.")
    log_format: str = Field(default="text", description="text, or json: one object a line.")
    webhook_allow: str = Field(
        default="", description="Hosts and networks that webhooks may reach although they are not public."
    )
    smtp_host: str | None = Field(default=None, description="The demo's mail server; without it, files.")
    smtp_port: int = Field(default=25, ge=1, le=65535)
    smtp_user: str | None = None
    smtp_password: str | None = None
    smtp_starttls: bool = False
    smtp_sender: str = "support@localhost"

    @classmethod
    def read(cls) -> Self:
        """Return the settings of the environment; `SettingsError` names the variable that is wrong."""
        try:
            return cls()
        except ValidationError as error:
            wrong = [f"CLEARANCE_{str(item['loc'][0]).upper()}: {item['msg']}" for item in error.errors()]
            raise SettingsError("Settings cannot be used: " + "; ".join(wrong)) from None

    @property
    def url(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite:///{self.home / 'clearance.db'}"

"""Settings: what an installation says about itself, from the environment.

Each setting is an environment variable `CLEARANCE_…`; all have a default that works on one machine.
"""

from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from clearance.errors import SettingsError
from clearance.identity import IdentityProvider, pairs
from clearance.people import Mode, Role, SessionLimits, Sight

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


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
    people_mode: Mode | None = Field(
        default=None, description="single-user or separate; default: separate once there are two people."
    )
    people_see: Sight | None = Field(
        default=None, description="Whose requests people see: all, or own-groups; default: as it was, all."
    )
    public_url: str | None = Field(
        default=None, description="Where people reach the pages, such as https://clearance.example.org."
    )
    session_idle: int = Field(default=12, ge=1, le=720, description="Hours until an unused sign-in ends.")
    session_days: int = Field(default=30, ge=1, le=365, description="Days after which every sign-in ends.")
    oidc_issuer: str | None = Field(default=None, description="The identity provider people sign in through.")
    oidc_client_id: str | None = Field(default=None, description="What this server is called there.")
    oidc_client_secret: str | None = Field(
        default=None, repr=False, description="What it shows there to be it."
    )
    oidc_name: str = Field(default="single sign-on", description="What the button to sign in there says.")
    oidc_scopes: str = Field(default="openid profile email", description="What is asked of it.")
    oidc_groups_claim: str = Field(
        default="groups", description="Where groups stand in its token; empty: nowhere."
    )
    oidc_role_map: str = Field(default="", description="Roles by group: GROUP=ROLE, with commas.")
    oidc_group_map: str = Field(
        default="", description="Groups here by group there: GROUP=NAME, with commas."
    )
    oidc_default_role: Role | None = Field(
        default=None, description="The role of whom no group gives one; default: they stay out."
    )
    agent_calls: int = Field(
        default=120, ge=0, description="Calls that an agent may propose in a minute; 0: any number."
    )
    agent_same_calls: int = Field(
        default=20, ge=0, description="Calls of an agent in a minute that may be the same; 0: any number."
    )
    person_decisions: int = Field(
        default=120, ge=0, description="Decisions of a person in a minute over HTTP; 0: any number."
    )
    segments: int = Field(default=4, ge=1, le=64, description="How many threads a worker advances at a time.")
    retention_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Days after which a worker removes the values of what has ended; default: never.",
    )
    log_level: str = Field(default="WARNING", description="DEBUG, INFO, WARNING or ERROR.")
    log_format: str = Field(default="text", description="text, or json: one object a line.")
    webhook_allow: str = Field(
        default="",
        description="Hosts and networks that webhooks and notices may reach though they are not public.",
    )
    cors_origins: str = Field(
        default="", description="Origins of front ends of others, with commas, whose pages may read answers."
    )
    smtp_host: str | None = Field(default=None, description="The demo's mail server; without it, files.")
    smtp_port: int = Field(default=25, ge=1, le=65535)
    smtp_user: str | None = None
    smtp_password: str | None = None
    smtp_starttls: bool = False
    smtp_sender: str = "support@localhost"

    @field_validator("public_url")
    @classmethod
    def _a_whole_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("write a whole address, such as https://clearance.example.org")
        if parts.path not in ("", "/"):
            raise ValueError("write it without a path: the pages are at the top of their host")
        return value.rstrip("/")

    @field_validator("oidc_issuer")
    @classmethod
    def _an_issuer(cls, value: str | None) -> str | None:
        parts = urlsplit(value or "https://unset")
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        if not parts.hostname or parts.query or parts.fragment or not safe:
            raise ValueError(
                "write its whole address, such as https://login.example.org; http on loopback alone"
            )
        return value

    @field_validator("oidc_role_map", "oidc_group_map")
    @classmethod
    def _by_group(cls, value: str, info: ValidationInfo) -> str:
        for right in pairs(value).values():
            if info.field_name == "oidc_role_map" and right not in tuple(Role):
                raise ValueError(f"{right} is none of the roles {', '.join(Role)}")
        return value

    @model_validator(mode="after")
    def _whole_provider(self) -> Self:
        if self.oidc_issuer is not None and not self.oidc_client_id:
            raise ValueError("CLEARANCE_OIDC_CLIENT_ID is missing: say what this server is called there")
        if "openid" not in self.oidc_scopes.split():
            raise ValueError("CLEARANCE_OIDC_SCOPES needs openid among them")
        return self

    @field_validator("cors_origins")
    @classmethod
    def _whole_origins(cls, value: str) -> str:
        for origin in _listed(value):
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or origin != f"{parts.scheme}://{parts.netloc}":
                raise ValueError("write origins such as http://localhost:3000, with commas and without paths")
            if not parts.hostname or "*" in origin or "@" in origin:
                raise ValueError("write each origin out: none stands for all")
        return value

    @classmethod
    def read(cls) -> Self:
        """Return the settings of the environment; `SettingsError` names the variable that is wrong."""
        try:
            return cls()
        except ValidationError as error:
            wrong = [
                f"CLEARANCE_{str(item['loc'][0]).upper()}: {item['msg']}" if item["loc"] else item["msg"]
                for item in error.errors()
            ]
            raise SettingsError("Settings cannot be used: " + "; ".join(wrong)) from None

    @property
    def url(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite:///{self.home / 'clearance.db'}"

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of front ends of others whose pages may read what their doors answer."""
        return _listed(self.cors_origins)

    @property
    def identity_provider(self) -> IdentityProvider | None:
        """Where else people may sign in; None: nowhere."""
        if self.oidc_issuer is None:
            return None
        return IdentityProvider(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id or "",
            client_secret=self.oidc_client_secret or None,
            name=self.oidc_name,
            scopes=self.oidc_scopes,
            claim=self.oidc_groups_claim,
            roles={group: Role(role) for group, role in pairs(self.oidc_role_map).items()},
            groups=pairs(self.oidc_group_map),
            otherwise=self.oidc_default_role,
        )

    @property
    def session_limits(self) -> SessionLimits:
        """How long a sign-in lasts."""
        return SessionLimits(timedelta(hours=self.session_idle), timedelta(days=self.session_days))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())

"""What an installation is told of its identity provider: what cannot be is said, and no secret is shown."""

import sys

import pytest

from clearance.errors import SettingsError
from clearance.identity import IdentityProvider
from clearance.settings import Settings
from clearance.web.pages.provider import Provider


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ISSUER", "http://login.example.org", "whole address"),
        ("ISSUER", "login.example.org", "whole address"),
        ("ISSUER", "https://login.example.org?x=1", "whole address"),
        ("CLIENT_ID", "", "CLEARANCE_OIDC_CLIENT_ID is missing"),
        ("ROLE_MAP", "ops=king", "king is none of the roles"),
        ("ROLE_MAP", "ops", "GROUP=NAME"),
        ("ROLE_MAP", "ops=admin, ops=viewer", "ops is there twice"),
        ("GROUP_MAP", "=x", "GROUP=NAME"),
        ("SCOPES", "profile", "needs openid"),
        ("DEFAULT_ROLE", "king", "CLEARANCE_OIDC_DEFAULT_ROLE"),
    ],
)
def test_settings_that_cannot_be_are_said(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv("CLEARANCE_OIDC_ISSUER", "https://login.example.org")
    monkeypatch.setenv("CLEARANCE_OIDC_CLIENT_ID", "clearance")
    monkeypatch.setenv(f"CLEARANCE_OIDC_{name}", value)
    with pytest.raises(SettingsError, match=told):
        Settings.read()


def test_the_secret_of_the_client_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARANCE_OIDC_ISSUER", "https://login.example.org")
    monkeypatch.setenv("CLEARANCE_OIDC_CLIENT_ID", "clearance")
    monkeypatch.setenv("CLEARANCE_OIDC_CLIENT_SECRET", "very secret")
    settings = Settings.read()
    assert "very secret" not in f"{settings!r} {settings} {settings.identity_provider!r}"


def test_whoever_serves_learns_that_the_packages_for_it_are_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(SettingsError, match="pip install 'clearance"):
        Provider(IdentityProvider("https://login.example.org", "clearance"))

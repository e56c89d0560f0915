"""Models opened by name: ready for the first call, or refused before it."""

import pytest
from langchain_core.messages import HumanMessage
from llmock.pytest_plugin import LLMock

from clearance.apps.chat.models import PROVIDERS, REQUEST_TIMEOUT, open_model
from clearance.errors import SettingsError
from tests.providers.conftest import Wire, opened_model


def _without_keys(patch: pytest.MonkeyPatch) -> None:
    for found in PROVIDERS.values():
        for key in found.keys:
            patch.delenv(key, raising=False)


def test_a_missing_key_is_said_before_anything_is_sent(
    provider: LLMock, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_keys(monkeypatch)
    with pytest.raises(
        SettingsError, match=f"{wire.model} needs its key: set {wire.provider.upper()}_API_KEY"
    ):
        open_model(wire.model)
    assert provider.requests == []


def test_a_server_of_ones_own_needs_no_key(
    provider: LLMock, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_keys(monkeypatch)
    provider.reply("Here I am.")
    model = opened_model(wire, provider.base_url(wire.provider), monkeypatch)
    assert model.invoke([HumanMessage("Hello")]).text == "Here I am."


def test_its_client_tries_once_and_waits_for_a_bounded_time(
    provider: LLMock, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened_model(wire, provider.base_url(wire.provider), monkeypatch)
    assert vars(model)["max_retries"] == 0
    assert REQUEST_TIMEOUT in (vars(model).get("request_timeout"), vars(model).get("default_request_timeout"))
    provider.fail(503, times=None, retry_after=0.02)
    with pytest.raises(Exception, match="503"):
        model.invoke([HumanMessage("Hello")])
    assert len(provider.requests) == 1

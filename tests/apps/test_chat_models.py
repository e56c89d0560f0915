"""Which model runs: the one that is named, and none where none is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clearance.apps.chat.models import NO_MODEL, PROVIDERS, check_model, named_model, open_model
from clearance.apps.chat.offline import OfflineChatModel
from clearance.errors import SettingsError


def test_what_is_given_wins_over_what_is_set_and_that_over_what_is_remembered() -> None:
    assert named_model("a", "b", "c") == "a"
    assert named_model(None, "b", "c") == "b"
    assert named_model(None, None, "c") == "c"


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_without_a_name_there_is_no_model_but_the_ways_to_name_one(nothing: str | None) -> None:
    with pytest.raises(SettingsError) as refused:
        named_model(nothing, nothing, nothing)
    for way in ("--model", "CLEARANCE_MODEL", "CLEARANCE_MODEL_BASE_URL", "offline", *PROVIDERS):
        assert way in str(refused.value)


@pytest.mark.parametrize(
    "name", ["gpt-5", "openai:", "openai", ":x", "nobody:model", "Offline", "offline:x", "azure_openai:x"]
)
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="names no model"):
        open_model(name)


def test_the_offline_model_is_had_by_its_name_alone() -> None:
    assert check_model("offline") is None
    assert isinstance(open_model("offline"), OfflineChatModel)
    assert "offline" in NO_MODEL


def _checked(provider: str, before: str, folder: Path, **environment: str) -> str:
    """Return what the check of a provider's model says, in an interpreter prepared by `before`."""
    found = PROVIDERS[provider]
    for package in ("langchain", found.package):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
    code = (
        f"import sys\nsys.path.insert(0, {str(folder)!r})\n{before}\n"
        "from clearance.apps.chat.models import check_model\nfrom clearance.errors import SettingsError\n"
        f"try: print(check_model('{provider}:some-model').langchain)\n"
        "except SettingsError as error: print(error)"
    )
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={**plain, **environment}
    )
    return done.stdout.strip()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("which", ["langchain", "its own"])
def test_a_missing_package_is_named_with_its_extra(provider: str, which: str, tmp_path: Path) -> None:
    missing = which if which == "langchain" else PROVIDERS[provider].package
    said = _checked(provider, f"sys.modules[{missing!r}] = None", tmp_path)
    assert f"pip install 'clearance[{PROVIDERS[provider].extra}]'" in said


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_missing_key_is_named_before_the_first_call(provider: str, tmp_path: Path) -> None:
    said = _checked(provider, "", tmp_path)
    keys = PROVIDERS[provider].keys
    assert said == (f"{provider}:some-model needs its key: set {' or '.join(keys)}." if keys else provider)


@pytest.mark.parametrize("provider", [name for name, found in PROVIDERS.items() if found.keys])
def test_any_of_its_keys_will_do(provider: str, tmp_path: Path) -> None:
    key = PROVIDERS[provider].keys[-1]
    assert _checked(provider, "", tmp_path, **{key: "x"}) == PROVIDERS[provider].langchain

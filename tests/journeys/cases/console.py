"""The command line as a door: what a person types, run in this process."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from clearance.cli import build
from tests.journeys.cases.doors import Answer
from tests.journeys.cases.setup import ENVIRONMENT
from tests.journeys.cases.site import Site

_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class CommandLine:
    """Commands on the workspace of a site."""

    site: Site

    def run(self, *words: str, by: str, columns: int = 200, typed: str | None = None) -> Result:
        """Run one command to its end; nothing is a terminal. `typed` comes by standard input."""
        setup = self.site.setup
        given = ["--home", str(setup.folder), "--database", setup.url, "--person", by, *words]
        env = {**ENVIRONMENT, "COLUMNS": str(columns), "TERM": "dumb"}
        with _AT_A_TIME:  # what is typed and said is this whole process's while a command runs
            return CliRunner().invoke(build(), given, prog_name="clearance", env=env, input=typed)

    def read(self, *words: str, by: str, columns: int = 200) -> str:
        """Run a command that must succeed, and return what it says."""
        done = self.run(*words, by=by, columns=columns)
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    def message(
        self, thread: str, text: str, *, by: str, wait: float, server: int = 1, key: str | None = None
    ) -> Answer:
        """The command line talks with the bundled agent alone."""
        raise NotImplementedError

    def decide(self, review_id: str, payload: object, *, by: str, version: int, server: int = 1) -> Answer:
        """Type the command that says the payload, or comes nearest to it where no command can."""
        words = self._words(payload)
        done = self.run("decide", review_id, *words, "--version", str(version), by=by)
        reason = done.stderr.strip() or str(done.exception or "")
        return Answer(ok=done.exit_code == 0, reason=reason, status=done.exit_code)

    def _words(self, payload: object) -> list[str]:
        if not isinstance(payload, list):
            return [json.dumps(payload, default=str)]
        words: list[str] = []
        for place, item in enumerate(payload):
            words += self._option(item, place) if isinstance(item, dict) else [json.dumps(item, default=str)]
        return words

    def _option(self, item: Mapping[str, Any], place: int) -> list[str]:
        kind, call = item.get("type"), str(item.get("call", place + 1))
        if not isinstance(kind, str):
            return [call]
        words = [f"--{kind}"]
        if "edited_action" in item:
            action = item["edited_action"]
            file = Path(self.site.folder) / f"typed-{place}.json"
            file.write_text(json.dumps(action.get("args"), default=str), encoding="utf-8")
            words.append(f"{call}={file}")
            if "name" in action:
                words += ["--tool", str(action["name"])]
        else:
            words.append(call)
        return [*words, "-m", str(item["message"])] if item.get("message") else words

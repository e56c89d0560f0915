"""The program as a whole: in which order its commands are listed, and how each of them ends."""

import sys
from collections.abc import Sequence
from typing import Any

from typer import Context
from typer.core import TyperGroup

from clearance.cli.failures import INTERRUPTED, told

# What somebody meets first comes first; a command that is not named here comes last.
ORDER = (
    "demo", "chat", "pipeline", "worker", "serve", "people", "keys", "channels", "inbox", "show", "approve",
    "edit", "reject", "respond", "decide", "claim", "release", "rules", "runs", "agents", "policy", "audit",
    "doctor", "backup", "restore", "retention",
)  # fmt: skip


class Commands(TyperGroup):
    """Ends with the exit code of the command; for whatever goes wrong it says one sentence on stderr."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # its own Context is private
        """Return the names of the commands as the help lists them."""
        names = list(self.commands)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run one command and end with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                args=words,
                prog_name=prog_name,
                complete_var=complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
            if code == INTERRUPTED and sys.stderr.isatty():
                # Behind the ^C that the terminal has drawn.
                print(file=sys.stderr)
            sys.stdout.flush()
        except Exception as error:  # noqa: BLE001 - the outermost place: what is not ours is a bug, and said so
            code = told(error, as_json="--json" in words)
        sys.exit(code if isinstance(code, int) else 0)

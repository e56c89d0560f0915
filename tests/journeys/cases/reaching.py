"""Whom a case has told of what waits, and by what: found in its words."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.journeys.cases.loading import CaseError, Step, every_step

MAIL, CHAT, HOOK = "email", "slack", "webhook"
_KINDS = (MAIL, CHAT, HOOK)
READER = "rita"
"""Who looks where a step does not say who does."""


@dataclass(frozen=True)
class Wanted:
    """Who is told by mail, and whether a chat and a server are told."""

    mails: tuple[str, ...] = ()
    chat: bool = False
    hook: bool = False

    @property
    def anything(self) -> bool:
        """Whether anybody is told."""
        return bool(self.mails) or self.chat or self.hook


def wanted(steps: list[Step]) -> Wanted:
    """Return who is told in a case. Raises `CaseError` for a way that is not known."""
    uses = [use for step in every_step(steps) for use in _uses(step)]
    mails = dict.fromkeys(person for kind, person in uses if kind == MAIL)
    kinds = {kind for kind, _ in uses}
    return Wanted(tuple(mails), CHAT in kinds, HOOK in kinds)


def _uses(step: Step) -> Iterator[tuple[str, str]]:
    by = str(step.get("by", READER))
    words = [step.get("via"), step.get("surface"), *step.get("doors", [])]
    for word in filter(None, words):
        yield from ((kind, by) for kind in _KINDS if str(word).startswith(kind))
    for kind in step.get("notify", []):
        if kind not in _KINDS:
            raise CaseError(f"The interpreter knows no way {kind!r} to notify.")
        yield kind, READER
    if str(step.get("path", "")).startswith("link of"):
        yield MAIL, READER

"""The knowledge base: which methods fit the data at hand and the objective, and why.

Built in memory from the method cards at each use: one full-text table (SQLite FTS5, words by their stem,
bm25) and one table of typed edges:

    method  consumes  kind            method  cites    reference
    method  produces  kind            kind    refines  wider kind     (a cds is dna too)

What can be reached from the data (an mRNA gives a coding sequence, that a protein) is a recursive query.
"""

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from clearance.apps.research.methods.cards import Card, InputSlot, load_cards
from clearance.errors import InvalidInputError

# A kind and the wider kind that it also is.
REFINES: Mapping[str, str] = {"cds": "coding", "coding": "dna", "mrna": "dna"}
DATA_KINDS = (
    "bibliography", "cds", "coding", "dna", "exons", "hmm", "mrna", "msa", "protein", "variants",
)  # fmt: skip

# Words of an objective that every objective has say nothing about a method.
_EMPTY_WORDS = frozenset({
    "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "find", "for", "from",
    "gene", "give", "how", "human", "in", "into", "is", "it", "its", "of", "on", "or", "our", "protein",
    "sequence", "show", "study", "that", "the", "their", "this", "to", "use", "using", "want", "we", "what",
    "where", "which", "with",
})  # fmt: skip
_WEIGHTS = "0, 8.0, 4.0, 6.0, 2.0"

_SCHEMA = """
CREATE VIRTUAL TABLE text USING fts5(
    id UNINDEXED, title, summary, keywords, use, tokenize='porter unicode61'
);
CREATE TABLE edge (
    subject TEXT, verb TEXT, object TEXT, input TEXT, PRIMARY KEY (subject, verb, object, input)
);
CREATE INDEX by_object ON edge (verb, object);
"""

# Kinds that are there or can be made, each with the number of methods that it takes. A method runs once all
# of its required inputs are there, which a recursive query cannot ask; so only methods with one are
# followed. A part does not become whole: an open reading frame within a part of a coding sequence is no cds
# of the gene.
_REACHABLE = """
WITH RECURSIVE reachable(kind, steps, method, origin) AS (
    SELECT value, 0, NULL, value FROM json_each(:kinds)
    UNION
    SELECT wider.object, reachable.steps, reachable.method, reachable.origin
      FROM reachable JOIN edge wider ON wider.verb = 'refines' AND wider.subject = reachable.kind
    UNION
    SELECT made.object, reachable.steps + 1, made.subject, reachable.origin
      FROM reachable
      JOIN edge used ON used.verb = 'consumes' AND used.object = reachable.kind
      JOIN edge made ON made.verb = 'produces' AND made.subject = used.subject
     WHERE reachable.steps < :most
       AND NOT (reachable.origin = 'coding' AND made.object = 'cds')
       AND (SELECT count(DISTINCT input) FROM edge WHERE verb = 'consumes' AND subject = used.subject) = 1
)
SELECT kind, min(steps), method FROM reachable GROUP BY kind ORDER BY 2, 1
"""
_LONGEST_CHAIN = 4


class NoMethodError(InvalidInputError):
    """No method fits the data at hand: a plan would be empty."""


@dataclass(frozen=True)
class Source:
    """Where an input can come from: a kind of the data at hand, or the method that makes it first."""

    kind: str
    method: str | None = None


@dataclass(frozen=True)
class RankedCard:
    """A method that fits, best first.

    `score` is its bm25 relevance to the objective (0.0 when no word matched), `reasons` are sentences to
    show. `inputs` says where each input can come from; `needs` are the methods to run before, in order.
    `params_needed` are parameters that only a person can give; without them the method cannot run.
    """

    card: Card
    score: float
    reasons: tuple[str, ...]
    inputs: Mapping[str, Source]
    needs: tuple[str, ...]
    params_needed: tuple[str, ...]


@dataclass(frozen=True)
class LeftOut:
    """A method that cannot run on the data at hand, and why."""

    card: Card
    reason: str


@dataclass(frozen=True)
class _Reached:
    steps: int
    method: str | None


def rank(data_kinds: Collection[str], objective: str) -> list[RankedCard]:
    """Return the methods that can run on data of these kinds, the most relevant to the objective first.

    Methods without a word in common with the objective follow, nearest to the data first. Raises
    `NoMethodError` when nothing fits, and `InvalidInputError` for a kind that no method knows.
    """
    with closing(KnowledgeBase(load_cards())) as base:
        return base.rank(data_kinds, objective)


def left_out(data_kinds: Collection[str]) -> list[LeftOut]:
    """Return the methods that cannot run on data of these kinds, by id, each with the reason."""
    with closing(KnowledgeBase(load_cards())) as base:
        return base.left_out(data_kinds)


class KnowledgeBase:
    """The methods with their words and edges. Close it after use."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self._cards = {card.id: card for card in cards}
        self._rows = sqlite3.connect(":memory:")
        self._rows.executescript(_SCHEMA)
        for card in self._cards.values():
            self._rows.execute(
                "INSERT INTO text VALUES (?, ?, ?, ?, ?)",
                (card.id, card.title, card.summary, ", ".join(card.keywords), card.when_to_use),
            )
            self._rows.executemany("INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?)", _edges(card))
        self._rows.executemany("INSERT INTO edge VALUES (?, 'refines', ?, '')", sorted(REFINES.items()))

    def close(self) -> None:
        """Forget everything."""
        self._rows.close()

    def rank(self, data_kinds: Collection[str], objective: str) -> list[RankedCard]:
        """Return what `clearance.apps.research.knowledge.rank` returns."""
        reached = self._reached(data_kinds)
        relevance = self._relevance(objective)
        ranked = [
            self._ranked(card, reached, data_kinds=data_kinds, relevance=relevance)
            for card in self._cards.values()
            if not _missing(card, reached)
        ]
        if not ranked:
            raise NoMethodError(
                f"No method fits the data at hand ({', '.join(sorted(data_kinds)) or 'none'}). "
                "Give a sequence with --fasta, or another gene."
            )
        return sorted(ranked, key=lambda each: (-each.score, len(each.needs), each.card.id))

    def left_out(self, data_kinds: Collection[str]) -> list[LeftOut]:
        """Return what `clearance.apps.research.knowledge.left_out` returns."""
        reached = self._reached(data_kinds)
        return [
            LeftOut(card, f"There is nothing for {' and '.join(_wanted(slot) for slot in missing)}.")
            for card in sorted(self._cards.values(), key=lambda card: card.id)
            if (missing := _missing(card, reached))
        ]

    def citing(self, reference: str) -> tuple[str, ...]:
        """Return the ids of the methods that cite a reference, given as "doi:…" or by its title."""
        rows = self._rows.execute(
            "SELECT subject FROM edge WHERE verb = 'cites' AND object = ? ORDER BY subject", (reference,)
        )
        return tuple(row[0] for row in rows)

    def _reached(self, data_kinds: Collection[str]) -> dict[str, _Reached]:
        unknown = sorted(set(data_kinds) - set(DATA_KINDS))
        if unknown:
            raise InvalidInputError(f"No method takes data of kind {', '.join(unknown)}. Correct the kind.")
        rows = self._rows.execute(
            _REACHABLE, {"kinds": json.dumps(sorted(data_kinds)), "most": _LONGEST_CHAIN}
        )
        return {kind: _Reached(steps, method) for kind, steps, method in rows}

    def _relevance(self, objective: str) -> dict[str, float]:
        words = _words(objective)
        if not words:
            return {}
        asked = " OR ".join(f'"{word}"' for word in words)
        rows = self._rows.execute(
            f"SELECT id, -bm25(text, {_WEIGHTS}) FROM text WHERE text MATCH ?",
            (asked,),
        )
        # Rounded: a plan must not hang on the last digit of a machine's logarithm.
        return {name: round(score, 4) for name, score in rows}

    def _ranked(
        self,
        card: Card,
        reached: Mapping[str, _Reached],
        *,
        data_kinds: Collection[str],
        relevance: Mapping[str, float],
    ) -> RankedCard:
        inputs = {slot.name: source for slot in card.inputs if (source := _source(slot, reached)) is not None}
        needs = self._needs(inputs.values(), reached)
        score = relevance.get(card.id, 0.0)
        return RankedCard(
            card=card,
            score=score,
            reasons=tuple(_reasons(card, inputs, score=score)),
            inputs=inputs,
            needs=needs,
            params_needed=_params_needed(card, inputs),
        )

    def _needs(self, sources: Iterable[Source], reached: Mapping[str, _Reached]) -> tuple[str, ...]:
        """Return the methods to run before, each after what it needs itself."""
        needs: list[str] = []
        for source in sources:
            if source.method is not None:
                slots = self._cards[source.method].inputs
                before = [found for slot in slots if (found := _source(slot, reached)) is not None]
                needs += [*self._needs(before, reached), source.method]
        return tuple(dict.fromkeys(needs))


def _edges(card: Card) -> Iterator[tuple[str, str, str, str]]:
    for slot in card.inputs:
        for kind in slot.kinds:
            if slot.required:
                yield card.id, "consumes", kind, slot.name
    for output in card.outputs:
        yield card.id, "produces", output.kind, output.name
    for reference in card.references:
        yield card.id, "cites", f"doi:{reference['doi']}" if "doi" in reference else reference["title"], ""


def _words(objective: str) -> list[str]:
    words = re.findall(r"[^\W_]+", objective.casefold())
    return sorted({word for word in words if len(word) > 1} - _EMPTY_WORDS)


def _missing(card: Card, reached: Mapping[str, _Reached]) -> list[InputSlot]:
    return [slot for slot in card.inputs if slot.required and _source(slot, reached) is None]


def _wanted(slot: InputSlot) -> str:
    kinds = " or ".join(slot.kinds)
    return f"its {slot.name}, data of kind {kinds}"


def _source(slot: InputSlot, reached: Mapping[str, _Reached]) -> Source | None:
    """Return the source of an input: the first of the card's kinds that is there or can be made."""
    kind = next((kind for kind in slot.kinds if kind in reached), None)
    return Source(kind, reached[kind].method) if kind else None


def _params_needed(card: Card, inputs: Mapping[str, Source]) -> tuple[str, ...]:
    """Return required parameters without default, and those that stand in for an input that is not there."""
    properties = card.params.get("properties", {})
    required = [name for name in card.params.get("required", ()) if "default" not in properties[name]]
    instead = [slot.name for slot in card.inputs if slot.name in properties and slot.name not in inputs]
    return tuple(dict.fromkeys([*required, *instead]))


def _reasons(card: Card, inputs: Mapping[str, Source], *, score: float) -> Iterator[str]:
    if score > 0:
        yield f"Its description fits the objective (relevance {score:.2f})."
    for name, source in inputs.items():
        if source.method is None:
            yield f"The {source.kind} for its {name} is at hand."
        else:
            yield f"The {source.kind} for its {name} is made by {source.method}."
    yield card.when_to_use

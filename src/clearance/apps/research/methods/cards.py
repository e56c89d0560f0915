"""Method cards: what the methods need, give and cost, and the hash that binds a clearance to their code."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from clearance.errors import InvalidInputError, NotFoundError
from clearance.schema import faults, with_defaults

_HERE = Path(__file__).parent
CARDS = _HERE / "cards"
TEMPLATES = _HERE / "templates"

# Not part of what a template does: this file, and the description of the package.
_NOT_SHARED = ("__init__.py", "cards.py")

RISK_LEVELS = ("low", "medium", "high")
EFFECTS = ("compute", "network", "writes_store", "publishes", "personal_data")


@dataclass(frozen=True)
class TemplateRef:
    """A template by name, with the hash of its code as it is now."""

    name: str
    sha256: str


@dataclass(frozen=True)
class InputSlot:
    """One input of a method: any of `kinds` fits."""

    name: str
    title: str
    kinds: tuple[str, ...]
    required: bool = True


@dataclass(frozen=True)
class OutputSlot:
    """One output file of a method. One that is not `required` may be absent, as the card's limits say."""

    name: str
    kind: str
    media_type: str
    required: bool = True


@dataclass(frozen=True)
class Estimate:
    """What a step may take: processor seconds (a decimal text) and memory."""

    cpu_s: str
    mem_mb: int


@dataclass(frozen=True)
class Cost:
    """Processor seconds as decimal texts: a part for every run, and one for every 1000 bytes of input."""

    cpu_s_base: str
    cpu_s_per_kb: str
    mem_mb: int

    def estimate(self, size: int) -> Estimate:
        """Return the estimate for inputs of `size` bytes together; seconds are rounded to hundredths."""
        seconds = Decimal(self.cpu_s_base) + Decimal(self.cpu_s_per_kb) * size / 1000
        return Estimate(str(seconds.quantize(Decimal("0.01"), ROUND_HALF_UP)), self.mem_mb)


@dataclass(frozen=True)
class Risk:
    """How much may go wrong (low, medium, high), and what a run does to the world."""

    level: str
    effects: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """One method. `params` is a JSON Schema whose defaults make a run without parameters possible."""

    id: str
    version: str
    title: str
    summary: str
    keywords: tuple[str, ...]
    edam: tuple[str, ...]
    template: TemplateRef
    params: Mapping[str, Any]
    inputs: tuple[InputSlot, ...]
    outputs: tuple[OutputSlot, ...]
    cost: Cost
    risk: Risk
    requires: tuple[str, ...]
    when_to_use: str
    limits: str
    references: tuple[Mapping[str, str], ...]

    def check_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters with the defaults filled in.

        Raises `InvalidInputError` with every fault where they break the card's schema.
        """
        completed: dict[str, Any] = with_defaults(self.params, dict(params))
        found = faults(self.params, completed)
        if found:
            raise InvalidInputError(f"The parameters do not fit {self.id}.", faults=found)
        return completed

    def document(self) -> dict[str, Any]:
        """Return the card as a JSON document."""
        return asdict(self)


def template_sha256(name: str) -> str:
    """Return the sha256 (hex) of a template's code: of its module and of what all templates are built on.

    Read from the files at every call, so that a changed template is noticed. Raises `NotFoundError`.
    """
    module = TEMPLATES / f"{name.replace('-', '_')}.py"
    if not _is_a_name(name) or not module.is_file():
        raise NotFoundError(f"There is no template {name}. Take the template of a method card.")
    code = hashlib.sha256()
    shared = sorted(path for path in _HERE.glob("*.py") if path.name not in _NOT_SHARED)
    for part in (module, *shared):
        code.update(f"{part.name} {hashlib.sha256(part.read_bytes()).hexdigest()}\n".encode())
    return code.hexdigest()


def load_cards() -> tuple[Card, ...]:
    """Return all cards, by id."""
    return tuple(_read(path) for path in sorted(CARDS.glob("*.toml")))


def card(name: str) -> Card:
    """Return the card with that id. Raises `NotFoundError`."""
    path = CARDS / f"{name}.toml"
    if not _is_a_name(name) or not path.is_file():
        raise NotFoundError(f"There is no method {name}. Take one of the knowledge base.")
    return _read(path)


def _is_a_name(name: str) -> bool:
    return name.replace("-", "").isalnum() and name == name.lower()


def _read(path: Path) -> Card:
    """Return the card of a file. A card is part of the program: a faulty one is a bug, found by the tests."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Card(
        id=path.stem,
        template=TemplateRef(path.stem, template_sha256(path.stem)),
        keywords=tuple(data.pop("keywords")),
        edam=tuple(data.pop("edam")),
        inputs=tuple(InputSlot(**(slot | {"kinds": tuple(slot["kinds"])})) for slot in data.pop("inputs")),
        outputs=tuple(OutputSlot(**slot) for slot in data.pop("outputs")),
        cost=Cost(**data.pop("cost")),
        risk=_risk(data.pop("risk")),
        requires=tuple(data.pop("requires")),
        references=tuple(data.pop("references")),
        **data,
    )


def _risk(data: Mapping[str, Any]) -> Risk:
    if data["level"] not in RISK_LEVELS or not set(data["effects"]) <= set(EFFECTS):
        raise ValueError("a card's risk must be one of the known levels, its effects known effects")
    return Risk(data["level"], tuple(data["effects"]))

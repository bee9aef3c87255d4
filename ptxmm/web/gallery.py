"""What the page can choose from: the models with their readings and axioms, and the tests that come with ptxmm."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ptxmm.analysis.explain.words import COMPOSITE, EDGES, ORDERS, PATTERNS, STATIC, Words, axiom_words
from ptxmm.analysis.readings import effective
from ptxmm.cat import disjunctions_of, index, load
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes
from ptxmm.formats.header import parse_header
from ptxmm.formats.text import decode, open_text

_SYNCHRONIZES = Words("what synchronizes", "8.9.4")
_WORDS: Mapping[str, Words] = {
    **{"sync": _SYNCHRONIZES, "sync-all": _SYNCHRONIZES},
    **EDGES,
    **STATIC,
    **ORDERS,
    **COMPOSITE,
    **PATTERNS,
}
_VARIANT = re.compile(r"(.*)-(buggy|fixed|variant)")


class AxiomEntry(Struct, frozen=True):
    """An axiom of a model: what it says, and its section of PTX ISA 8.5."""

    name: str
    text: str
    section: str | None


class RuleEntry(Struct, frozen=True):
    """A disjunct of a definition: what leaves it out (``item``), what is ``written``, and that in words, with its
    section, where chapter 8 has any for it."""

    item: str
    written: str
    text: str | None
    section: str | None


class DefinitionEntry(Struct, frozen=True):
    """A definition of a model that is a disjunction, and its ``rules``."""

    name: str
    text: str | None
    section: str | None
    rules: tuple[RuleEntry, ...]


class ReadingEntry(Struct, frozen=True):
    """A reading that has an effect on a model: its ``values``, that of the model, and what it is about."""

    key: str
    values: tuple[str, ...]
    default: str
    section: str
    sentence: str
    about: str


class ModelEntry(Struct, frozen=True):
    """A model that comes with ptxmm."""

    name: str
    summary: str
    axioms: tuple[AxiomEntry, ...]
    definitions: tuple[DefinitionEntry, ...]
    readings: tuple[ReadingEntry, ...]


class TestEntry(Struct, frozen=True):
    """A test by its family and name. ``expect``: by model; ``bug`` and ``variant`` of the tests of a real bug:
    ``buggy``, ``fixed`` or ``variant``."""

    __test__ = False
    family: str
    name: str
    about: str
    source: str
    expect: Mapping[str, str]
    bug: str | None = None
    variant: str | None = None


class Catalog(Struct, frozen=True):
    """Everything that can be chosen."""

    version: str
    models: tuple[ModelEntry, ...]
    tests: tuple[TestEntry, ...]


def models() -> tuple[ModelEntry, ...]:
    """The models that come with ptxmm."""
    return tuple(_model(name) for name in index().models)


def tests(folder: Path) -> tuple[tuple[TestEntry, ...], dict[str, str]]:
    """The litmus tests in the folders of ``folder``, and their texts by ``FAMILY/NAME``."""
    entries: list[TestEntry] = []
    texts: dict[str, str] = {}
    for path in sorted(folder.glob("*/*.litmus")):
        text = decode(read_bytes(path), path.name)
        try:
            header = parse_header(open_text(text, path.name))
        except PtxmmError:
            continue
        info = dict(header.info)
        expect = dict(item.rsplit(":", 1) for item in info.get("Expect", "").split() if ":" in item)
        bug = _VARIANT.fullmatch(path.stem) if path.parent.name == "bugs" else None
        named = (bug[1], bug[2]) if bug else (None, None)
        about = " ".join(header.description.split())
        entries.append(TestEntry(path.parent.name, path.stem, about, info.get("Source", ""), expect, *named))
        texts[f"{path.parent.name}/{path.stem}"] = text
    return tuple(entries), texts


def _model(name: str) -> ModelEntry:
    model = load(name)
    axioms = []
    for axiom in model.axioms:
        if not axiom.flag:
            words = axiom_words(model, axiom)
            axioms.append(AxiomEntry(axiom.name, words.text, words.section))
    readings = [
        ReadingEntry(key, reading.values, model.readings[key], reading.section, reading.text, reading.about)
        for key, reading in index().readings.items()
        if effective(model, key) and model.reading_keys
    ]
    return ModelEntry(name, index().models[name].coverage.summary, tuple(axioms), _definitions(name), tuple(readings))


def _definitions(model: str) -> tuple[DefinitionEntry, ...]:
    """The definitions that are disjunctions, those first that chapter 8 has a name for."""
    found = sorted(disjunctions_of(model).items(), key=lambda item: item[0] not in _WORDS)
    return tuple(DefinitionEntry(name, *_said(name), tuple(map(_rule, rules, rules.values()))) for name, rules in found)


def _rule(item: str, written: str) -> RuleEntry:
    return RuleEntry(item, written, *_said(written.strip("()")))


def _said(name: str) -> tuple[str | None, str | None]:
    """What a definition or a base relation is called, and the section that it is of."""
    words = _WORDS.get(name)
    return (None, None) if words is None else (words.text, words.section and words.section.split()[0])

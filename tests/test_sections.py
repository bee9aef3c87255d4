"""The sections of the PTX ISA that the project cites are in ``sections.toml``, with their titles."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ptxmm.analysis.explain import words
from ptxmm.analysis.explain.sentences import SENTENCES
from ptxmm.analysis.lint import RULES
from ptxmm.cat import index
from tests.support import ROOT

VERSION = "8.5"
FILES = (
    "README.md",
    "ptxmm/**/*.py",
    "ptxmm/models/*",
    "docs/**/*.md",
    "litmus/**/*.litmus",
    "tests/**/*.py",
    "tests/*.t*",
    "tests/golden/*",
    "tests/bad_input/*",
    "tests/cuda/*.cu",
    "tests/lint/*.cu",
)
# A number of three or more components, and what goes on from it: `9.7.14.9 to .12, .14`, `9.7.16.2, .5.2`.
_NUMBER = re.compile(
    r"(?<![\w.-])((?:[4-9]|1[01])(?:\.\d{1,2}){2,})(?![\w]|\.\d)((?:(?:,| and| to) \.\d+(?:\.\d+)*\b)*)"
)
# Numbers of two components are versions as well; these are sections.
_SHORT = re.compile(r"(?:\bsections? |\()((?:[4-9]|1[01])\.[1-9]\d?)(?![\w.])")
# The other numbers of the kind: CUDA's guide, and what compilers and tests say of themselves.
_OTHER = re.compile(r"CUDA C\+\+ Programming Guide|Based on NVVM|\bPython\b")
_SECTION = re.compile(r"^(\d+(?:\.\d+)*)")


@cache
def sections() -> dict[str, dict[str, str]]:
    """For each version of the ISA the titles by number."""
    table = tomllib.loads((ROOT / "tests" / "sections.toml").read_text(encoding="utf-8"))
    return {version: dict(titles) for version, titles in table.items()}


def files() -> list[Path]:
    found = {path for pattern in FILES for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(found - {ROOT / "tests" / "sections.toml", Path(__file__).resolve()})


def numbers(line: str) -> Iterator[str]:
    """The sections that a line cites."""
    yield from _SHORT.findall(line)
    for match in _NUMBER.finditer(line):
        yield match[1]
        stem = match[1].rpartition(".")[0]
        yield from (stem + more for more in re.findall(r"(?:\.\d+)+", match[2]))


@cache
def cited() -> dict[str, list[tuple[str, int, str]]]:
    """Where each number is cited: file, line, text of the line."""
    found: dict[str, list[tuple[str, int, str]]] = {}
    for path in files():
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for number in numbers(line) if not _OTHER.search(line) else ():
                found.setdefault(number, []).append((str(path.relative_to(ROOT)), n, line))
    return found


@cache
def versions_named(file: str) -> frozenset[str]:
    """The versions of the ISA that a file speaks of."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return frozenset(re.findall(r"(?:PTX(?: ISA)?|[Vv]ersion) (\d\.\d)\b", text)) | {VERSION}


def test_cited_sections_are_listed() -> None:
    """A number that is not in the list of a version that its file names is wrong, or new and to be looked up."""
    wrong = [
        f"{file}:{n}: {number}"
        for number, places in cited().items()
        for file, n, _ in places
        if not any(number in sections().get(version, {}) for version in versions_named(file))
    ]
    assert not wrong, "sections that tests/sections.toml does not have: " + "; ".join(wrong)


def test_what_two_versions_number_alike_names_its_version() -> None:
    """9.7.13.4 is a branch in PTX ISA 8.5, a fence in 9.0: lines of a file that speaks of both say which they mean."""
    wrong = []
    for number, places in cited().items():
        titles = {version: listed[number] for version, listed in sections().items() if number in listed}
        for file, n, line in places if len(set(titles.values())) > 1 else ():
            spoken = titles.keys() & versions_named(file)
            if len(spoken) > 1 and not any(
                re.search(rf"(?:PTX(?: ISA)?|version) {re.escape(v)}\b", line) for v in spoken
            ):
                wrong.append(f"{file}:{n}: {number}")
    assert not wrong


def test_listed_sections_are_cited() -> None:
    """Nothing is left in the list that the project does not cite."""
    data = {number for _, number in structured()}
    for version, titles in sections().items():
        for number in titles:
            named = any(version in versions_named(file) for file, _, _ in cited().get(number, []))
            assert named or number in data, f"{version}: {number}"


def structured() -> list[tuple[str, str]]:
    """The numbers that data name, of one component too: those of readings, explanations and rules of lint."""
    texts = [(f"reading {key}", reading.section) for key, reading in index().readings.items()]
    for name in ("EDGES", "STATIC", "ORDERS", "CONDITIONS", "COMPOSITE", "PATTERNS", "AXIOMS"):
        texts += [(f"{name} {key}", item.section) for key, item in getattr(words, name).items() if item.section]
    texts += [(f"sentence {clause}", clause) for clause in SENTENCES]
    texts += [
        (rule.id, number)
        for rule in RULES
        for part in re.findall(r"PTX ISA ([\d., ]+)", rule.section)
        for number in part.strip(" ,").split(", ")
    ]
    return [(name, match[1]) for name, text in texts if (match := _SECTION.match(text))]


def test_sections_of_data_are_listed() -> None:
    listed = {number for titles in sections().values() for number in titles}
    assert [(name, number) for name, number in structured() if number not in listed] == []


@pytest.mark.parametrize(
    "line,found",
    [
        ("(9.7.14.9 to .12, .14)", ["9.7.14.9", "9.7.14.12", "9.7.14.14"]),
        ("(9.7.16.2, .3, .5.2)", ["9.7.16.2", "9.7.16.3", "9.7.16.5.2"]),
        ("PTX ISA 8.9.1.1, 9.7.10.24.6.", ["8.9.1.1", "9.7.10.24.6"]),
        ("PTX 8.5, Python 3.11.2, 2.1.0 of SARIF, -9.7.1, v8.9.1", []),
    ],
)
def test_numbers(line: str, found: list[str]) -> None:
    assert list(numbers(line)) == found

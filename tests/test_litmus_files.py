"""The project's own litmus tests (``litmus/``): well-formed, with sources, and with the verdicts that they state."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ptxmm import cat, formats
from ptxmm.analysis.expectation import expectations
from ptxmm.analysis.outcomes import check
from ptxmm.engines.result import Limits
from ptxmm.program.test import Test
from tests.alike import check_alike

ROOT = Path(__file__).resolve().parent.parent / "litmus"
FILES = sorted(ROOT.glob("**/*.litmus"))
FAMILIES = {
    "mp", "sb", "lb", "coherence", "iriw", "wrc", "isa2", "2+2w", "rmw", "fences", "scopes", "barriers", "aliases",
    "locks", "thin-air",
}  # fmt: skip
KNOWN = tuple(cat.index().models)
files = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")


def _read(path: Path) -> Test:
    (test,) = formats.read(path)
    return test


def test_enough_files() -> None:
    assert len(FILES) >= 80
    assert {path.parent.name for path in FILES} >= FAMILIES
    assert {path.parent.parent for path in FILES} == {ROOT}


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(path.stem for path in FILES).items() if count > 1] == []


def test_programs_are_unique() -> None:
    """No two files ask the same question: everything from the opening brace on differs, or the version of the ISA."""
    bodies: Counter[tuple[str, ...]] = Counter()
    for path in FILES:
        header, brace, body = path.read_text().partition("\n{")
        version = [line for line in header.splitlines() if line.startswith("ISA=")]
        bodies[*version, brace, *body.split()] += 1
    assert [body for body, count in bodies.items() if count > 1] == []


def test_required_topics() -> None:
    """The tests printed in the PTX ISA (8.10) and the points on which its text can be read in two ways."""
    stems = {path.stem for path in FILES}
    assert stems >= {"ISA-atomicity-1", "ISA-atomicity-2", "ISA-LB", "ISA-CoRR", "ISA-MP", "ISA-CoWR", "ISA-SB"}
    for number in (1, 3, 4, 5, 7, 9, 14, 15, 17, 18, 19, 21, 23, 27, 28):
        assert any(stem.startswith(f"A{number}-") for stem in stems), number


@files
def test_header(path: Path) -> None:
    test = _read(path)
    assert test.name == path.stem
    assert test.condition is not None
    assert test.description
    assert len([value for key, value in test.info if key == "Source" and value.strip()]) == 1
    assert expectations(test, KNOWN)


def _verdicts(path: Path) -> None:
    """Every expectation is met by both engines, which agree on all final states."""
    test = _read(path)
    for name, expectation in expectations(test, KNOWN).items():
        result = check(test, cat.load(name), engine="both", limits=Limits(), expectation=expectation)
        assert result.conclusion == "expected", f"{name}: {result.observation} {result.status} {result.flags}"
        check_alike(result)


@pytest.mark.share(3)
@files
def test_verdicts(path: Path) -> None:
    _verdicts(path)


@pytest.mark.slow
@pytest.mark.usefixtures("lazy")
@files
def test_verdicts_not_written_out(path: Path) -> None:
    _verdicts(path)

"""One-line mutations of kernels that whole launches call free of races: each is refused, or known to be redundant.

``golden/whole-mutants.txt`` lists those that are still free of races. The slow share decides each of these again with
an engine that lists all executions, for the threads that the launch chooses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult
from tests.kernel_mutations import Mutant, mutants
from tests.support import model_named

CUDA = Path(__file__).parent / "cuda"
GOLDEN = Path(__file__).parent / "golden"
SHARE = 23
"""Every so manieth mutant is tried in the short run."""


def free() -> list[str]:
    """The right kernels that whole launches call free of races."""
    rows = (line.split() for line in (GOLDEN / "whole-kernels.txt").read_text().splitlines())
    return [name for name, answer, *_ in rows if answer.rstrip(";") == "race-free" and ".wrong_" not in name]


def every() -> Iterator[tuple[str, Mutant]]:
    """All mutants, with the names of the kernels."""
    for name in free():
        for mutant in mutants((CUDA / f"{name}.ptx").read_text()):
            yield name, mutant


def answers(name: str, mutant: Mutant, folder: Path) -> list[WholeResult]:
    """The answers about a mutant, with the launch of the kernel that it is one of."""
    path = folder / f"{name}.ptx"
    (folder / f"{name}.cu").write_text((CUDA / f"{name}.cu").read_text())
    path.write_text(mutant.text)
    return [whole(kernel, str(path), Limits(deadline=time.monotonic() + 60)) for kernel in kernels(path)]


def told(name: str, mutant: Mutant, results: list[WholeResult]) -> str | None:
    """The line of the table for a mutant; None where it is refused."""
    for found in results:
        if found.answer != "race-free":
            assert found.races or found.spot is not None, (name, str(mutant), found.answer)  # with its line
            return None
    return f"{name} {mutant}\n"


def test_some_mutants(tmp_path: Path) -> None:
    known = set((GOLDEN / "whole-mutants.txt").read_text().splitlines(keepends=True))
    refused = 0
    for name, mutant in list(every())[::SHARE]:
        found = told(name, mutant, answers(name, mutant, tmp_path))
        assert found is None or found in known, f"{name} {mutant}"
        assert found is not None or f"{name} {mutant}\n" not in known, f"{name} {mutant}"
        refused += found is None
    assert refused > 25


@pytest.mark.slow
def test_all_mutants(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    lines = [told(name, mutant, answers(name, mutant, tmp_path)) for name, mutant in every()]
    golden("whole-mutants.txt", "".join(line for line in lines if line is not None))


@pytest.mark.slow
def test_redundant_mutants_are_redundant(tmp_path: Path) -> None:
    """No execution of the chosen threads has a race."""
    known = set((GOLDEN / "whole-mutants.txt").read_text().splitlines(keepends=True))
    decided = 0
    for name, mutant in every():
        if f"{name} {mutant}\n" not in known:
            continue
        path = tmp_path / f"{name}.ptx"
        (tmp_path / f"{name}.cu").write_text((CUDA / f"{name}.cu").read_text())
        for threads in (None, "lane 0-1"):
            try:
                for test in parse_ptx(mutant.text, str(path), threads=threads):
                    limits = Limits(deadline=time.monotonic() + 30)
                    found = races(test, model_named("ptx-8.5"), limits=limits)
                    assert found.race_free is not False, f"{name} {mutant}"
                    decided += found.race_free is True
            except (PtxmmError, Timeout):
                continue
    assert decided > len(known)

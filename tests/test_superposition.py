"""One problem for all strengths gives for each of them what the ordinary search gives for that program."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from ptxmm.analysis.property import judge, requirement
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.superposition import superposition
from ptxmm.analysis.words import Property
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.formats import read
from ptxmm.program.test import Test
from tests.support import model_named, parse_one
from tests.test_fences_brute import program_text

LITMUS = sorted((Path(__file__).parent.parent / "litmus").rglob("*.litmus"))
SECONDS = 20


def _compare(test: Test, rng: random.Random, samples: int) -> int:
    """How many programs were compared."""
    model = model_named(test.default_model)
    compared = 0
    for stronger in (False, True):
        limits = Limits(deadline=time.monotonic() + SECONDS)
        required = requirement(test, model, Property.never, limits)
        everything = superposition(test, model.coverage, stronger=stronger)
        family = Family(everything.test, everything.variations, model, required, limits)
        chosen = [frozenset(s for s in everything.switches if rng.random() < 0.5) for _ in range(samples)]
        for on in (everything.given, frozenset(), everything.switches, *chosen):
            found = not family.suffices(on)
            decided = judge(everything.program(on), model, required, limits)
            bad = decided.holds is False
            assert found == bad, (test.name, stronger, sorted(on))
            compared += 1
    return compared


def _all(paths: list[Path], samples: int) -> int:
    compared = 0
    for path in paths:
        for test in read(path):
            if test.condition is None:
                continue
            try:
                compared += _compare(test, random.Random(test.name), samples)
            except Timeout:
                continue
            except PtxmmError as error:
                assert error.kind == "unsupported", (path, error)
    return compared


def test_some_litmus_tests() -> None:
    assert _all(LITMUS[::38], 1) > 50


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_litmus_tests(part: int) -> None:
    print(f"{_all(LITMUS[part::4], 2)} programs")


def test_random_programs() -> None:
    for seed in range(40):
        test = parse_one(program_text(seed) + "exists (x == 2)\n")
        _compare(test, random.Random(seed), 2)

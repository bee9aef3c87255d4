"""The public test corpora: every expected verdict, with both engines and with the reference."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import ptxmm.formats
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import Timeout
from ptxmm.program.condition import MemoryTerm, RegisterTerm, evaluate, terms
from ptxmm.program.test import Test
from tests import reference
from tests.reference_dependencies import TooSlow
from tests.support import CORPORA, ENGINES, Answer, ask, corpus_rows, model_named, run, straight
from tests.tally import Tally

ROWS = list(corpus_rows())
EXPECTED_ROWS = 239
NVLITMUS = sorted((CORPORA / "nvlitmus").glob("*.test"))
WHY_SKIPPED = f"no test corpora in {CORPORA}: set PTXMM_CORPORA"

# NVlabs' model gives fences no proxy, so that two fences are never morally strong and no pattern with a fence ever
# synchronizes; it permits r1 == 2 /\ r3 == 0 here. By the text it is forbidden: PTX ISA 8.5, 8.10.6 (MP) calls such
# fences morally strong, and the authors confirmed that intention (NVlabs/mixedproxy, issue 4). Then st.release x=1,
# po-before st.relaxed x=2, is a release pattern on x (8.8 (2)); ld.relaxed r1 = 2 observes it and with the fence after
# it is an acquire pattern, release and fence have mutual system scope: the patterns synchronize, y = 1 is before the
# load of y in causality order, and the load may not return the initial 0 (8.10.6).
PROVED_WRONG = {"Release_acquire_pattern.test"}


def read(path: Path) -> list[Test]:
    return ptxmm.formats.read(path)


def row_id(row: object) -> str | None:
    return row.stem if isinstance(row, Path) else None


def observed_by(test: Test) -> Observed:
    """The terms of the condition."""
    assert test.condition is not None
    found = terms(test.condition.proposition)
    return Observed(
        tuple(t for t in found if isinstance(t, RegisterTerm)), tuple(t for t in found if isinstance(t, MemoryTerm))
    )


def holds(test: Test, satisfied: Sequence[bool]) -> bool:
    """The quantified condition, given whether its proposition holds in each final state."""
    assert test.condition is not None
    match test.condition.kind:
        case "exists":
            return any(satisfied)
        case "~exists":
            return not any(satisfied)
    return all(satisfied)


@pytest.mark.skipif(bool(ROWS), reason="the corpora are there")
def test_corpora_are_missing(tally: Tally) -> None:
    tally.rows_skipped += 2 * EXPECTED_ROWS
    pytest.skip(WHY_SKIPPED)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("path", "model", "expected"), ROWS, ids=row_id)
def test_dartagnan_verdict(path: Path, model: str, expected: bool, engine: str, tally: Tally) -> None:
    (test,) = read(path)
    assert test.condition is not None
    limits = Limits(deadline=time.monotonic() + 30)
    search = run(engine, test, model_named(model), observed_by(test), limits, test.condition.proposition)
    tally.rows_run += 1
    assert not search.timeout
    # The corpus counts what Dartagnan finds up to its bound, so `bounded` does not matter here.
    assert holds(test, [evaluate(test.condition.proposition, f.state) for f in search.found]) == expected


@pytest.mark.parametrize(("path", "model", "expected"), ROWS, ids=row_id)
def test_dartagnan_verdict_of_reference(path: Path, model: str, expected: bool) -> None:
    (test,) = read(path)
    assert test.condition is not None
    proposition = test.condition.proposition
    stop = {"exists": True, "~exists": True, "forall": False}[test.condition.kind]
    try:
        result = []
        for state in reference.states(test, model, unroll=2 if not straight(test) else 3, seconds=10):
            result.append(evaluate(proposition, state))
            if result[-1] == stop:
                break
    except TooSlow:
        pytest.skip("too slow for the reference")
    assert holds(test, result) == expected


@pytest.mark.skipif(not NVLITMUS, reason=WHY_SKIPPED)
@pytest.mark.parametrize("engine", [*ENGINES, "reference"])
@pytest.mark.parametrize("path", NVLITMUS, ids=row_id)
def test_nvlitmus_expectations(path: Path, engine: str, tally: Tally) -> None:
    tests = read(path)
    failed = []
    for test in tests:
        assert test.condition is not None
        proposition = test.condition.proposition
        if engine == "reference":
            satisfied = [evaluate(proposition, s) for s in reference.states(test, "ptx-7.5")]
        else:
            search = run(engine, test, model_named("ptx-7.5"), observed_by(test), Limits(), proposition)
            satisfied = [evaluate(proposition, f.state) for f in search.found]
            tally.rows_run += 1
        if not satisfied or not holds(test, satisfied):
            failed.append(test.name)
    if path.name in PROVED_WRONG:
        assert len(failed) == len(tests) == 1
    else:
        assert failed == []


def corpus_tests() -> list[tuple[Path, str]]:
    """Each corpus file once per model that it has a verdict for."""
    return list(dict.fromkeys((path, model) for path, model, _ in ROWS))


@pytest.mark.parametrize(("path", "model"), corpus_tests(), ids=row_id)
def test_engines_agree_on_all_final_states(path: Path, model: str) -> None:
    """Both engines, and the reference where it is quick: the same set of final states."""
    (test,) = read(path)
    unroll = 3 if straight(test) else 2
    answers: dict[str, Answer | None] = {}
    for engine in ENGINES:
        try:
            answers[engine] = ask(engine, test, model_named(model), seconds=10, unroll=unroll)
        except Timeout:
            answers[engine] = None
    unfinished = [e for e, a in answers.items() if a is None or not a.complete]
    if unfinished:
        assert not straight(test), f"{path.name}: {unfinished} not done in 10 s"
        pytest.skip(f"not finished: {unfinished}")
    solve, explicit = answers["solve"], answers["enumerate"]
    assert solve is not None and explicit is not None
    assert solve.comparable() == explicit.comparable()
    try:
        states = reference.outcomes(test, model, unroll=unroll, seconds=3)
    except TooSlow:
        return
    assert Counter(states) == Counter(solve.states)

"""Whatever the input, a command ends in one of its exit codes, with a whole document and without an internal error."""

from __future__ import annotations

import random

import pytest

from tests import fuzz
from tests.tally import Tally


def check(tally: Tally, count: int, seed: int, jobs: int, apart: float) -> None:
    found = fuzz.fuzz(count, seed, jobs, apart=apart)
    summary, *wrong = found.lines()
    tally.notes.append(summary)
    assert not wrong, "\n".join(wrong)
    assert found.kinds.total() == count and found.given_up <= count // 500


def test_changed_inputs(tally: Tally) -> None:
    check(tally, 200, 1, 1, 0.01)


@pytest.mark.slow
def test_changed_inputs_in_full(tally: Tally) -> None:
    check(tally, 8_000, 2, 2, 0.005)


def test_inputs_are_of_all_kinds_and_the_same_each_time() -> None:
    kinds = set()
    for number in range(300):
        one, other = (fuzz.case(random.Random(number)) for _ in range(2))
        assert one == other
        kinds.add(one.kind)
    assert len(kinds) == 12


def test_a_fault_is_seen() -> None:
    item = fuzz.Case("lint", {}, ("lint", "--output-format=json", "a.cu"))
    assert fuzz.fault(item, 0, "{}", "") is None
    for code, out, err in ((4, "{}", ""), (139, "", ""), (0, '{"a": ', ""), (2, "", "Traceback (most recent call")):
        assert fuzz.fault(item, code, out, err) is not None

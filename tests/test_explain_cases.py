"""Trees of cases: every execution comes to a case, which has a reason of it, and each case has executions."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ptxmm.analysis.explain.cases import Case, Split, split
from ptxmm.analysis.explain.reasons import Search, applies, fewest, named_facts, reasons
from ptxmm.cat import Model
from ptxmm.cat.derivation import BaseFact
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.engines.result import Limits
from ptxmm.formats import read
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import assignments
from tests.support import model_named
from tests.test_explain import FILES, NAMES, explained, forbidden, lines_of, litmus_test, question

MOST = 60
"""So many executions of a test are looked at."""


def every_execution(search: Search) -> Iterator[Rebuilt]:
    """The executions of a search, each that differs in an order or in what is read."""
    for _ in range(MOST):
        found = search.next()
        if found is None:
            return
        execution = found[1]
        yield execution
        algebra = execution.layout.algebra
        facts = [
            BaseFact(name, a, b) for name in ("rf", "co", "fsc") for a, b in algebra.pairs(execution.base(name) or 0)
        ]
        search.exclude(named_facts(execution, facts))


def case_of(execution: Rebuilt, splits: Sequence[Split]) -> Split:
    """The case that an execution is in, and of that its case, and so on."""
    for item in splits:
        if item.fact is None or applies(frozenset((item.fact,)), execution):
            return item if item.found is not None else case_of(execution, item.cases)
    raise AssertionError("the cases are not exhaustive")


def leaves(splits: Sequence[Split]) -> Iterator[Split]:
    for item in splits:
        yield from leaves(item.cases) if item.found is None else (item,)


def check_cases(test: Test, model: Model) -> int:
    """How many cases there are of what ``test`` forbids."""
    proposition = question(test)
    assert proposition is not None
    limits = Limits(deadline=time.monotonic() + 60)
    count = 0
    for assigned in assignments(test):

        def search(assigned: Test = assigned.test) -> Search:
            return Search(assigned, model, proposition, limits)

        chosen = fewest(search(), limits, list(reasons(search(), limits)))
        splits = split(search(), limits, chosen)
        if not splits:
            continue
        met: set[int] = set()
        executions = list(every_execution(search()))
        for execution in executions:
            leaf = case_of(execution, splits)
            assert leaf.found is not None and applies(leaf.found.named, execution)
            met.add(id(leaf))
        every = list(leaves(splits))
        assert len(executions) == MOST or met == {id(leaf) for leaf in every}
        count += len(every)
    return count


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("mp/MP+rel+acq", 0),
        ("sb/ISA-SB", 2),
        ("sb/3.SB+fence.sc", 3),
        ("sb/SB+atom-same-location", 4),
        ("iriw/IRIW+fence.sc", 2),
    ],
)
def test_cases(name: str, count: int) -> None:
    assert check_cases(litmus_test(name), model_named("ptx-8.5")) == count


@pytest.mark.parametrize("path", FILES[4::16], ids=NAMES[4::16])
def test_cases_are_exhaustive(path: Path) -> None:
    check_file(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_all_cases_are_exhaustive(path: Path) -> None:
    check_file(path)


def check_file(path: Path) -> None:
    for test in read(path):
        model, proposition = model_named(test.default_model), question(test)
        if proposition is not None and forbidden(test, model, proposition):
            check_cases(test, model)


def numbers(cases: Sequence[Case]) -> Iterator[int]:
    for case in cases:
        assert (case.reason is None) is bool(case.cases)
        if case.reason is not None:
            yield case.reason
        yield from numbers(case.cases)


def test_each_reason_is_that_of_a_case() -> None:
    result = explained("sb/SB+atom-same-location")
    count = sum(len(group.reasons) for group in result.groups)
    assert set(numbers(result.cases)) == set(range(1, count + 1))


def test_a_total_order_is_one_chain() -> None:
    lines = lines_of(explained("sb/3.SB+fence.sc"))
    fence = r"the fence P[012]:12"
    assert re.search(f"Or in Fence-SC order, {fence} comes first, then {fence}, then {fence}:", lines)

"""Verdicts derived by hand for the neighbours of the bundled tests: other instructions, state spaces, scopes, types,
forms of addresses, numbers of threads, kinds of barriers and conditions.

``verdicts_by_hand.txt`` has one litmus test after the other, each with the section that its verdict comes from.
"""

from __future__ import annotations

import pytest

from ptxmm import cat
from ptxmm.analysis.expectation import expectations
from ptxmm.analysis.outcomes import check
from ptxmm.engines.result import Limits
from ptxmm.formats import parse
from tests.support import ROOT

TEXTS = (ROOT / "tests" / "verdicts_by_hand.txt").read_text().split("\n\n")
KNOWN = tuple(cat.index().models)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.split()[1])
def test_verdict(text: str) -> None:
    (test,) = parse(text + "\n", "hand.litmus")
    assert [value for key, value in test.info if key == "Source"]
    for name, expectation in expectations(test, KNOWN).items():
        result = check(test, cat.load(name), engine="both", limits=Limits(), expectation=expectation)
        assert result.conclusion == "expected", f"{name}: {result.observation} {result.status} {result.flags}"


def test_names_are_unique() -> None:
    names = [text.split()[1] for text in TEXTS]
    assert len(set(names)) == len(names) > 200

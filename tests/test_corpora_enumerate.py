"""Every safety row of the public corpus with the explicit engine; each state it finds is confirmed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.engines.explicit.enumerate import search
from ptxmm.engines.explicit.witness import Confirmer
from ptxmm.engines.result import Limits
from ptxmm.formats import read
from ptxmm.program.condition import evaluate
from tests.support import CORPORA, corpus_rows, model_named

ROWS = sorted(corpus_rows())


@pytest.mark.skipif(not ROWS, reason="the public corpora are not here (PTXMM_CORPORA)")
@pytest.mark.parametrize("model", ["ptx-6.0", "ptx-7.5"])
def test_safety_rows(model: str) -> None:
    wrong = []
    for path, name, expected in ROWS:
        if name == model and holds(path, model) is not expected:
            wrong.append(path.relative_to(CORPORA).as_posix())
    assert wrong == []


def holds(path: Path, name: str) -> bool:
    """Whether the quantified condition of a file holds; states that are not confirmed fail the test."""
    (test,) = read(path)
    model, what = model_named(name), observed(test)
    result = search(test, model, what, Limits(deadline=time.monotonic() + 30))
    assert result.exhausted and result.undefined is None, path
    confirmer = Confirmer(test, model)
    assert all(confirmer.confirm(what, f.witness) == f.state for f in result.found), path
    assert test.condition is not None
    values = [evaluate(test.condition.proposition, f.state) for f in result.found]
    kind = test.condition.kind
    return all(values) if kind == "forall" else any(values) is (kind == "exists")

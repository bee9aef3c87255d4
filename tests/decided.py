"""What ``ptxmm check`` says of every claim about every launch of a kernel, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from ptxmm.analysis import kernel
from ptxmm.analysis.claims import HOLDS, assumed_of, claimed, limits_of
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Result
from ptxmm.analysis.undefined import with_reasons
from ptxmm.engines.result import Limits
from ptxmm.formats import parse, read
from ptxmm.formats.writer import write
from ptxmm.program.test import Test
from tests.alike import check_alike
from tests.support import model_named


def decided(path: Path, seconds: float, engine: str = "auto") -> list[Result]:
    """The results for all claims of ``path``; ``seconds``: the time for each launch. Raises as ``check`` does."""
    return decided_tests(read(path), seconds, engine)


def decided_tests(tests: Iterable[Test], seconds: float, engine: str = "auto") -> list[Result]:
    """As ``decided``, of launches that were read."""
    found: list[Result] = []
    for test in tests:
        model = model_named(assumed_of(test, "ptx-8.5"))
        limits = limits_of(test, Limits(unroll=3, deadline=time.monotonic() + seconds))
        for claim in claimed(test):
            if claim is not None:
                found.append(kernel.decide(test, model, claim, limits))
                continue
            result = check(test, model, engine=engine, limits=limits, expectation=HOLDS, enumerate_all=False)
            found.append(with_reasons(test, model, kernel.explained(test, result), limits))
    for report in found:
        check_alike(report)
    return found


def observation(text: str) -> str:
    """What both engines say of a litmus test, read from ``text`` and read again from what is written of it."""
    (test,) = parse(text, "case.litmus")
    (again,) = parse(write(test), "again.litmus")
    results = [check(t, model_named("ptx-8.5"), engine="both", limits=Limits()) for t in (test, again)]
    found = ["undefined" if r.status == "undefined" else r.observation or "none" for r in results]
    assert found[0] == found[1]
    return found[0]

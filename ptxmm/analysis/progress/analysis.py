"""Progress: can a thread spin or wait for ever? An execution that does, and why nothing in it will change.

What this means is in docs/progress.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from ptxmm.analysis.compatibility import check_compatible, check_covered
from ptxmm.analysis.progress.report import thread_reports
from ptxmm.analysis.progress.result import ProgressResult, ThreadReport, Verdict
from ptxmm.analysis.result import TIMEOUT, Note, Status
from ptxmm.analysis.search import bug
from ptxmm.cat import Model, index
from ptxmm.engines.explicit.hangs import Answer, Visibility, search
from ptxmm.engines.fairness import FAIRNESS, MEANING, Fairness
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.test import Test
from ptxmm.program.unspecified.left_open import left_open
from ptxmm.program.unspecified.unknown import assignments, computed_with

VISIBILITY: tuple[Visibility, ...] = ("strong", "all")

SEEN: Mapping[Visibility, str] = {
    "strong": "a read repeated for ever is sure to see, in the end, the writes that are morally strong with it",
    "all": "a read repeated for ever is sure to see, in the end, all writes",
}

ENGINES = ("enumerate", "both")

_ALONE = Note("engine", "Z3 was not asked: it judges programs without barriers under a fair scheduler")


def progress(
    test: Test,
    model: Model,
    *,
    limits: Limits | None = None,
    fairness: Fairness = "fair",
    visibility: Visibility = "strong",
    engine: str = "enumerate",
) -> ProgressResult:
    """Look for an execution of ``test`` that never ends.

    ``engine``: ``both`` asks Z3 as well, under a fair scheduler and where the test has no barriers.

    Raises ``PtxmmError``: kind ``unsupported`` where ``model`` does not cover the test, ``usage`` for an unknown
    ``fairness``, ``visibility`` or ``engine``, ``internal`` where the engines disagree; and what the engines raise.
    """
    for name, value, known in (
        ("engine", engine, ENGINES), ("fairness", fairness, FAIRNESS), ("visibility", visibility, VISIBILITY)
    ):  # fmt: skip
        if value not in known:
            raise PtxmmError(f"unknown {name} {value!r}", kind="usage", hint=f"one of {', '.join(known)}")
    limits = limits or Limits()
    start = time.perf_counter()
    check_compatible(test, model)
    answer, timeout, undefined, compared = Answer(), False, None, True
    threads: tuple[ThreadReport, ...] = ()
    try:
        for assigned in assignments(test):
            undefined = _undefined(assigned.test, model, limits)
            if undefined is not None:
                break
            found = search(assigned.test, model, limits, fairness, visibility)
            answer.bounded = answer.bounded or found.bounded
            compared = engine == "both" and _compare(assigned.test, model, limits, fairness, visibility, found)
            if found.hang is not None:
                threads = thread_reports(assigned.test, found.hang)
                break
    except Timeout:
        timeout = True
    computed = computed_with(test) + left_open(test)
    endless = () if test.claims is None else test.claims.endless
    status: Status = "complete"
    if undefined is not None:
        status = "undefined"
    elif not threads and timeout:
        status = "timeout"
    elif not threads and (answer.bounded or computed or endless):
        status = "bounded"
    verdict: Verdict = "may hang" if threads else "terminates" if status == "complete" else "unknown"
    notes = (
        Note("fairness", f"scheduler {fairness}: {MEANING[fairness]}"),
        Note("visibility", f"visibility {visibility}: {SEEN[visibility]}"),
        *_notes(test, limits, status, undefined, computed, answer.bounded),
        *(Note("bound", text) for text in endless if status == "bounded"),
        *(() if compared or engine != "both" else (_ALONE,)),
    )
    seconds = time.perf_counter() - start
    return ProgressResult(
        test.file, test.name, model.name, fairness, visibility, verdict, status, threads, notes, seconds
    )


def _compare(
    test: Test, model: Model, limits: Limits, fairness: Fairness, visibility: Visibility, found: Answer
) -> bool:
    """Whether Z3 could be asked; it must agree."""
    from ptxmm.engines.symbolic.hangs import covers, may_hang

    if fairness != "fair" or not covers(test):
        return False
    other = may_hang(test, model, limits, visibility == "all")
    if other != (found.hang is not None):
        here, there = ("may hang", "terminates") if found.hang is not None else ("terminates", "may hang")
        raise bug(test, f"the engines disagree on progress under {model.name}: {here} by enumeration, {there} by Z3")
    return True


def _undefined(test: Test, model: Model, limits: Limits) -> str | None:
    """Why the program has no meaning in some execution, as ``check`` finds it."""
    from ptxmm.engines.symbolic.solve import search as final_states

    found = final_states(test, model, Observed((), ()), limits)
    if found.undefined is not None:
        return found.undefined
    check_covered(test, model, found)
    flags = sorted(found.flags & index().undefined)
    return f"some execution has a {flags[0]}" if flags else None


def _notes(
    test: Test, limits: Limits, status: Status, undefined: str | None, computed: list[str], cut: bool
) -> Iterator[Note]:
    if undefined is not None:
        yield Note("undefined", undefined)
    if status == "bounded" and cut and not computed:
        text = f"a loop with effects goes on after {limits.unroll} backward branches; --unroll takes a higher bound"
        yield Note("bound", text)
    if status == "bounded" and computed:
        yield Note("unknown", f"not all values that matter were tried: {'; '.join(computed)}")
    if status == "timeout":
        yield TIMEOUT
    if test.filter is not None:
        yield Note("filter", "the filter is about final states: executions that never end are judged without it")

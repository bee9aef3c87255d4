"""Arrivals in a phase before any wait has returned true for the phase before: a flag, not undefined (9.7.14.15.4)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from tests import reference
from tests.mutants import LITMUS
from tests.support import model_named, parse_one

ARRIVE = "mbarrier.arrive.{}shared::cta.b64 _, [b];"
WAIT = "mbarrier.try_wait.parity.{}shared::cta.b64 p, [b], 0; @!p exit;"
PLAIN, RELAXED = ARRIVE.format(""), ARRIVE.format("relaxed.cta.")
TEST = """PTX t
{{ .shared .b64 b @ cta 0 = mbarrier({count}); .shared .u32 x @ cta 0 = 0; }}
{threads}
exists (x == 0)
"""
SKIPPED = "mbarrier-phase-skipped"


@pytest.mark.parametrize(
    ("count", "threads", "skipped"),
    [
        (1, [PLAIN], False),
        (2, [PLAIN + PLAIN], False),
        (1, [PLAIN + PLAIN], True),
        (1, [PLAIN + WAIT.format("") + PLAIN], False),
        (1, [PLAIN + WAIT.format("").replace("@!p exit;", "") + PLAIN], False),  # nobody else arrives: it is true
        (1, [PLAIN, WAIT.format("") + PLAIN], False),
        (1, [PLAIN, WAIT.format("").replace("@!p exit;", "") + PLAIN], True),  # the wait may return false
        # The waiter is another thread, and a barrier comes before the next arrival.
        (1, [PLAIN + WAIT.format("") + "bar.sync 0, 64;", "bar.sync 0, 64;" + PLAIN], False),
        # Without it nothing orders them.
        (1, [PLAIN + WAIT.format(""), PLAIN], True),
        # Bytes are counted, which is no arrival.
        (1, [PLAIN + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 8;"], False),
    ],
)  # fmt: skip
def test_skipped_phases(count: int, threads: list[str], skipped: bool) -> None:
    bodies = "\n".join(f"P{i} @ cta 0 {{ {body} }}" for i, body in enumerate(threads))
    test = parse_one(TEST.format(count=count, threads=bodies))
    for engine in ("z3", "enumerate"):
        result = check(test, model_named("ptx-8.5"), engine=engine)
        assert (SKIPPED in result.flags) == skipped and result.status == "complete"
    _, flags = reference.flagged(test, "ptx-8.5", seconds=20)
    assert (SKIPPED in flags) == skipped


@pytest.mark.parametrize("early", [False, True])
def test_a_wait_for_a_copy_comes_after_its_start(early: bool) -> None:
    """What another thread does before it starts the copy precedes it, and not what it does after that."""
    text = (LITMUS / "mbarrier/next-phase-waited-through-copy.litmus").read_text()
    lines = text.splitlines()
    if early:
        lines.insert(next(i for i, line in enumerate(lines) if "mbarrier.arrive" in line), lines.pop(_copy(lines)))
    test = parse_one("\n".join(lines))
    for engine in ("z3", "enumerate"):
        assert (SKIPPED in check(test, model_named("ptx-8.5"), engine=engine).flags) == early
    _, flags = reference.flagged(test, "ptx-8.5", seconds=20)
    assert (SKIPPED in flags) == early


def _copy(lines: list[str]) -> int:
    return next(i for i, line in enumerate(lines) if "cp.async.bulk" in line)

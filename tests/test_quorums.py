"""Barriers of the untyped dialect (A27): all quorums of two to four threads, and hand-derived verdicts."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.progress import progress
from ptxmm.engines.result import Limits
from tests import reference
from tests.support import ENGINES, ask, model_named, parse_one


def litmus(*threads: str, condition: str = "exists (x0 == 0)", locations: int = 4) -> str:
    """A test of threads of one CTA; ``W 0`` stores 1 to ``x0``, ``R r1 0`` loads it."""
    columns = []
    for thread in threads:
        lines = []
        for line in (part.strip() for part in thread.split(";")):
            match line.split():
                case ["W", at]:
                    lines.append(f"st.weak x{at}, 1")
                case ["R", register, at]:
                    lines.append(f"ld.weak {register}, x{at}")
                case _:
                    lines.append(line)
        columns.append(lines)
    height = max(map(len, columns))
    rows = [" | ".join(c[i] if i < len(c) else "" for c in columns) + " ;" for i in range(height)]
    names = " | ".join(f"P{t}@cta 0,gpu 0" for t in range(len(threads))) + " ;"
    initial = "".join(f"  x{i} = 0;\n" for i in range(locations))
    return "\n".join(["PTX quorum", "{", initial + "}", names, *rows, condition, ""])


FAMILY = [
    pytest.param(count, waits, quorum, id=f"{count}-threads-{waits}-wait-{quorum or 'no'}-quorum")
    for count in (2, 3, 4)
    for waits in range(count + 1)
    for quorum in (None, 1, 2, 3, 4)
]


def read_by(thread: int, count: int) -> tuple[int, ...]:
    """Whose stores a thread that waits looks at: the first one at those of all others, each other one at one."""
    return tuple(range(1, count)) if thread == 0 else ((thread + 1) % count,)


@pytest.mark.parametrize(("count", "waits", "quorum"), FAMILY)
def test_every_quorum(count: int, waits: int, quorum: int | None) -> None:
    """Each thread stores and arrives; the first ``waits`` ones wait and read. Those arrivals that synchronize do so
    with every wait, so what they have stored before is seen; the stores of all others race with the reads."""
    tail = "" if quorum is None else f", 1, {quorum}"
    threads = []
    for t in range(count):
        reads = "".join(f"; R r{i} {i}" for i in read_by(t, count)) if t < waits else ""
        threads.append(f"W {t}; bar.cta.{'sync' if t < waits else 'arrive'} 1{tail}{reads}")
    test = parse_one(litmus(*threads, locations=count))
    blocked = bool(waits) and quorum is not None and quorum > count
    seen = [(t, i) for t in range(waits) for i in read_by(t, count)]
    least = count if quorum is None else quorum
    expected = {
        values
        for size in range(least, count + 1)
        for subset in combinations(range(count), size)
        for values in product(*[(1,) if i in subset else (0, 1) for _, i in seen])
    } or ({()} if not seen else set())
    for name in ("ptx-6.0", "ptx-7.5"):
        found = reference.outcomes(test, name)
        assert {state[: len(seen)] for state in found} == (set() if blocked else expected)
        for engine in ENGINES:
            answer = ask(engine, test, model_named(name))
            assert answer.complete and answer.deadlock is blocked
            assert answer.states == found


BOTH_STALE = "exists (P2:r0 == 0 /\\ P2:r1 == 0)"

# name, threads, condition, observation, whether some thread may wait for ever
HAND = (
    ("two of three, one reader of two stores", (
        "W 0; bar.cta.sync 1, 1, 2", "W 1; bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2; R r0 0; R r1 1",
    ), BOTH_STALE, "never", False),
    ("two of three, one of the stores", (
        "W 0; bar.cta.sync 1, 1, 2", "W 1; bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2; R r0 0; R r1 1",
    ), "exists (P2:r0 == 0)", "sometimes", False),
    ("two of three, two readers of different stores of one thread", (
        "bar.cta.sync 1, 1, 2; R r0 0", "W 0; W 1; bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2; R r0 1",
    ), "exists (P0:r0 == 0 /\\ P2:r0 == 0)", "sometimes", False),
    ("two of three that arrive only", (
        "W 0; bar.cta.arrive 1, 1, 2", "W 1; bar.cta.arrive 1, 1, 2", "bar.cta.sync 1, 1, 2; R r0 0; R r1 1",
    ), BOTH_STALE, "never", False),
    ("two of four", (
        "W 0; bar.cta.arrive 1, 1, 2", "W 1; bar.cta.arrive 1, 1, 2", "bar.cta.sync 1, 1, 2; R r0 0; R r1 1",
        "bar.cta.sync 1, 1, 2",
    ), BOTH_STALE, "sometimes", False),
    ("three of four", (
        "W 0; bar.cta.arrive 1, 1, 3", "W 1; bar.cta.arrive 1, 1, 3", "bar.cta.sync 1, 1, 3; R r0 0; R r1 1",
        "bar.cta.sync 1, 1, 3",
    ), BOTH_STALE, "never", False),
    ("one subset for all who wait", (
        "W 0; bar.cta.arrive 1, 1, 3", "W 1; bar.cta.arrive 1, 1, 3", "bar.cta.sync 1, 1, 3; R r0 0",
        "bar.cta.sync 1, 1, 3; R r1 1",
    ), "exists (P2:r0 == 0 /\\ P3:r1 == 0)", "never", False),
    ("an arrival orders nothing after it", (
        "W 0; bar.cta.sync 1, 1, 2", "bar.cta.arrive 1, 1, 2; R r0 0",
    ), "exists (P1:r0 == 0)", "sometimes", False),
    ("an arrival without a quorum orders nothing after it", (
        "W 0; bar.cta.sync 1", "bar.cta.arrive 1; R r0 0",
    ), "exists (P1:r0 == 0)", "sometimes", False),
    ("write after read", (
        "R r0 0; bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2; W 0",
    ), "exists (P0:r0 == 1)", "never", False),
    ("write after a read whose arrival may be left out", (
        "R r0 0; bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 2; W 0", "bar.cta.arrive 1, 1, 2",
    ), "exists (P0:r0 == 1)", "sometimes", False),
    ("a quorum counts arrivals, two of one thread too", (
        "W 0; bar.cta.arrive 1, 1, 2; bar.cta.sync 1, 1, 2", "R r0 0",
    ), "exists (P1:r0 == 0)", "sometimes", False),
    ("of a quorum that is not reached no one passes", (
        "W 0; bar.cta.sync 1, 1, 3", "bar.cta.sync 1, 1, 3; R r0 0",
    ), "exists (P1:r0 == 0)", "none", True),
    ("arrivals that no one waits for", (
        "W 0; bar.cta.arrive 1, 1, 3", "bar.cta.arrive 1, 1, 3; R r0 0",
    ), "exists (P1:r0 == 0)", "sometimes", False),
    ("other instances are other groups", (
        "W 0; bar.cta.sync 1, 1, 1", "bar.cta.sync 2, 1, 1; R r0 0",
    ), "exists (P1:r0 == 0)", "sometimes", False),
    ("other barriers are other groups", (
        "W 0; bar.cta.sync 1, 1", "bar.cta.sync 1, 2; R r0 0",
    ), "exists (P1:r0 == 0)", "sometimes", False),
    ("a barrier in a register is of the group at run time", (
        "R r1 1; W 0; bar.cta.sync 1, r1", "bar.cta.sync 1, 0; R r0 0",
    ), "exists (P1:r0 == 0)", "never", False),
    ("a barrier in a register is waited for", (
        "bar.cta.sync 1, 0; bar.cta.sync 2", "R r1 0; bar.cta.sync 2; bar.cta.sync 1, r1",
    ), "exists (P1:r1 == 0)", "none", True),
    ("an instruction that is jumped over is waited for", (
        "bar.cta.sync 1", "R r1 0; beq r1, 0, L; bar.cta.sync 1; L:; R r1 1",
    ), "exists (P1:r1 == 0)", "none", True),
)  # fmt: skip


@pytest.mark.parametrize(("threads", "condition", "observation", "hangs"), [
    pytest.param(*case, id=name.replace(" ", "-")) for name, *case in HAND
])  # fmt: skip
def test_by_hand(threads: tuple[str, ...], condition: str, observation: str, hangs: bool) -> None:
    """Both engines and the reference; an execution in which a thread can't pass has no final state, and it hangs."""
    test = parse_one(litmus(*threads, condition=condition))
    assert test.condition is not None
    for name in ("ptx-6.0", "ptx-7.5"):
        found, answers = reference.outcomes(test, name), [ask(engine, test, model_named(name)) for engine in ENGINES]
        for answer in answers:
            assert answer.complete and not answer.undefined
            assert (answer.states, answer.deadlock) == (found, hangs)
        assert (check(test, model_named(name)).observation or "none") == observation
        assert progress(test, model_named(name), limits=Limits()).finding is hangs


def test_two_quorums_in_one_group() -> None:
    test = parse_one(litmus("bar.cta.sync 1, 1, 2", "bar.cta.sync 1, 1, 1"))
    for engine in ENGINES:
        assert ask(engine, test, model_named("ptx-7.5")).undefined
    assert not reference.outcomes(test, "ptx-7.5")

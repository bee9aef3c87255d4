"""Final states that are told one by one: the same as in a list, after the verdict, as they are found, and none kept."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

import ptxmm as mm
from ptxmm.analysis.outcomes import check, check_streamed
from ptxmm.analysis.result import Listed, Outcome
from ptxmm.cli.workers import Bounds, Lost, Part, events
from ptxmm.engines.result import Limits
from tests.benchmarks.programs import states
from tests.commands import Run, steady
from tests.moments import ENVIRONMENT
from tests.support import ROOT, model_named, parse_one

TESTS = (
    "mp/MP+rel+acq", "sb/ISA-SB", "rmw/atom.add+st", "barriers/BAR-MP", "aligned/tcgen05-other-order", "iriw/IRIW",
)  # fmt: skip
UNKNOWN = "PTX u\n{ .global .u32 s; }\nP0 @ cta 0 { ld.u32 a, [s]; setp.eq.u32 p, a, 7; selp.u32 b, 1, 0, p; }\n"
"""Of memory without an initial value, several are tried."""
OTHERS = {
    "unknown": UNKNOWN + "exists (P0:b == 1)",
    "without a condition": UNKNOWN + "locations [P0:a; P0:b;]",
    "filtered": states(2).ptx() + "filter (P1:r0 == 1)",
    "none": "PTX n\n{ .global .u32 s = 0; }\nP0 @ cta 0 {\nA: ld.relaxed.gpu.u32 a, [s];\nsetp.eq.u32 p, a, 0;\n"
    "@p bra A;\n}\nexists (s == 0)",
}


@pytest.fixture
def ptxmm(tmp_path: Path, run_command: Run) -> Run:
    """Run a command line in an empty folder with a test and an error, in this process."""
    (tmp_path / "mp.litmus").write_text(mm.library["mp/MP+rel+acq"].text.replace("PTX MP+rel+acq", "PTX MP"))
    (tmp_path / "bad.litmus").write_text("PTX bad\n")
    return run_command


def program(name: str) -> mm.Test:
    """One of the tests above."""
    return mm.test(OTHERS[name]) if name in OTHERS else mm.library[name]


def streamed(name: str, engine: str, most: int | None = None) -> tuple[mm.Result, list[Outcome], Listed]:
    """What is told of a test one by one, after the verdict."""
    limits = Limits()
    verdict, coming = check_streamed(program(name), model_named("ptx-8.5"), most, engine=engine, limits=limits)
    *found, end = coming
    assert isinstance(end, Listed)
    return verdict, [item for item in found if isinstance(item, Outcome)], end  # type: ignore[return-value]


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
@pytest.mark.parametrize("name", [*TESTS, *OTHERS])
def test_the_same_as_in_a_list(name: str, engine: str) -> None:
    whole = check(program(name), model_named("ptx-8.5"), engine=engine)
    verdict, found, end = streamed(name, engine)
    assert sorted(map(str, found)) == sorted(map(str, whole.outcomes))
    assert (end.states, end.listed, end.cut) == (len(whole.outcomes), whole.listed, not whole.listed)
    assert [verdict.holds, verdict.observation, verdict.status, verdict.flags, verdict.conclusion] == [
        whole.holds, whole.observation, whole.status, whole.flags, whole.conclusion,
    ]  # fmt: skip
    satisfying = sum(o.satisfies is True for o in whole.outcomes)
    assert end.satisfying == (None if whole.condition is None else satisfying)
    assert {o.satisfies for o in verdict.outcomes} == {o.satisfies for o in whole.outcomes}


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_more_states_than_are_excluded_by_clauses(engine: str) -> None:
    test, model = parse_one(states(4).ptx()), model_named("ptx-8.5")
    whole = {str(outcome) for outcome in check(test, model, engine=engine).outcomes}
    _, coming = check_streamed(test, model, engine=engine)
    *found, end = coming
    assert len(found) == len(whole) == 4**4 and set(map(str, found)) == whole
    assert isinstance(end, Listed) and end.listed


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
def test_a_limit(engine: str) -> None:
    for most, listed in ((1, False), (2, False), (4, True)):
        _, found, end = streamed("mp/MP+rel+acq", engine, most)
        assert (len(found), end.states, end.listed, end.cut) == (min(most, 3), min(most, 3), listed, False)


def test_none_is_kept() -> None:
    """The memory that is in use does not grow with the number of states."""

    def used(coming: Iterator[object], count: int) -> int:
        for _ in islice(coming, count):
            pass
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    coming = mm.test(states(6).ptx()).states(timeout=None)
    tracemalloc.start()
    try:
        before = used(coming, 200)
        assert used(coming, 300) - before < 300 * 500  # a state with its execution has 4 KiB, and more
    finally:
        tracemalloc.stop()


def test_states_come_before_all_are_found() -> None:
    """This list would be one of 2^24 states."""
    assert len(list(islice(mm.test(states(12).ptx()).states(timeout=None), 200))) == 200


def test_the_verdict_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "many.litmus"
    path.write_text(states(12).ptx() + "exists (P1:r0 == 1 /\\ P2:r0 == 0)")
    command = [sys.executable, str(ROOT / "ptxmm"), "outcomes", str(path), "--stream", "--timeout", "3600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as running:
        assert running.stdout is not None
        lines = [line.rstrip("\n") for line in islice(running.stdout, 300)]
        running.kill()
    assert lines[:5] == [
        "Test states-16777216",
        "Model ptx-8.5",
        "Observation states-16777216 Sometimes",
        "Condition exists (P1:r0 == 1 /\\ P2:r0 == 0): yes",
        "Status complete",
    ]
    assert len(set(lines[5:])) == len(lines[5:]) and all("P1:r0=" in line for line in lines[5:])


def test_as_text_and_as_lines_of_json(ptxmm: Run) -> None:
    told = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--stream")
    head, end = told.out.split("P1:r0")[0], told.out.splitlines()[-3:]
    assert told.code == 0 and head.startswith("Test MP\nModel ptx-8.5\nObservation MP Never\nCondition exists (")
    assert end[:2] == ["States 3", "Witnesses 0 3"] and steady(end[2]) == "Time MP T"
    listed = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--json")
    (whole,) = json.loads(listed.out)["results"]
    lines = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--stream", "--json").out.splitlines()
    verdict, *found, last = map(json.loads, lines)
    assert [e["analysis"] for e in (verdict, *found, last)] == ["check", "state", "state", "state", "states"]
    changing = {"seconds", "outcomes", "listed"}
    assert {k: v for k, v in verdict.items() if k not in changing} == {
        k: v for k, v in whole.items() if k not in changing
    }
    assert all(outcome in whole["outcomes"] for outcome in verdict["outcomes"])
    values = [{k: e[k] for k in ("registers", "memory", "satisfies")} for e in found]
    assert all(outcome in values for outcome in whole["outcomes"])
    assert {(e["file"], e["test"], e["model"]) for e in (*found, last)} == {("mp.litmus", "MP", "ptx-8.5")}
    assert (last["states"], last["satisfying"], last["listed"], last["cut"]) == (3, 0, True, False)


def test_what_goes_wrong_is_told(ptxmm: Run) -> None:
    ran = ptxmm("outcomes", "bad.litmus", "mp.litmus", "--model", "ptx-8.5", "--stream", "--json")
    assert ran.code == 2
    assert [json.loads(line)["analysis"] for line in ran.out.splitlines()][:2] == ["error", "check"]
    assert "error" in ptxmm("outcomes", "bad.litmus", "--stream").err
    ran = ptxmm("outcomes", "mp.litmus", "--stream", "--format", "svg")
    assert (ran.code, "--stream and --format svg exclude each other" in ran.err) == (2, True)
    ran = ptxmm("outcomes", "mp.litmus", "--model", "ptx-8.5", "--stream", "--limit", "2")
    assert (ran.code, "States 2+" in ran.out) == (0, True)


def test_a_list_that_the_time_ends_is_inconclusive(ptxmm: Run) -> None:
    Path("many.litmus").write_text(states(12).ptx() + "exists (P1:r0 == 1)")
    ran = ptxmm("outcomes", "many.litmus", "--stream", "--timeout", "1")
    assert (ran.code, ran.out.splitlines()[4]) == (3, "Status complete")
    assert ran.out.splitlines()[-3].endswith("+")


def _parts(task: str, done: int) -> Generator[str | Part[str] | Sequence[None], bool, None]:
    yield [None] * 2
    for number in range(done, 2):
        for letter in task:
            yield Part(f"{letter}{number}")
        if task == "lost" and number == 0:
            raise SystemExit(1)
        yield f"{task}{number}"


def test_parts_come_before_their_message() -> None:
    found = list(events(_parts, ["ab", "lost"], 2, Bounds(), lambda message: False))
    parts = [(t, n, m.value if isinstance(m, Part) else m) for t, n, m in found]
    assert parts[:8] == [
        (0, 0, [None] * 2), (0, 1, "a0"), (0, 1, "b0"), (0, 1, "ab0"), (0, 2, "a1"), (0, 2, "b1"), (0, 2, "ab1"),
        (1, 0, [None] * 2),
    ]  # fmt: skip
    assert parts[8:12] == [(1, 1, f"{letter}0") for letter in "lost"] and isinstance(parts[12][2], Lost)
    assert parts[13:] == [*((1, 2, f"{letter}1") for letter in "lost"), (1, 2, "lost1")]

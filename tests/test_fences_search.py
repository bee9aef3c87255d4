"""In which order ``fences`` tries the repairs of a kernel, what it leaves out, and what it tells on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ptxmm.analysis.fences import FencesResult, Progress, fences, searched
from ptxmm.analysis.property import Requirement, judge, requirement
from ptxmm.analysis.strength.changes import Costs
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.likely import separated
from ptxmm.analysis.strength.repairs import Repairs
from ptxmm.analysis.strength.structure import Step, strengthenings
from ptxmm.analysis.strength.superposition import superposition
from ptxmm.analysis.words import Property
from ptxmm.cli.workers import Bounds, Lost, Part, events
from ptxmm.engines.result import Limits
from ptxmm.formats import read as read_files
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import Branch, SetPredicate
from tests.commands import Run
from tests.support import model_named, parse_one
from tests.test_fences_kernels import BOTH, EXCHANGE, MODEL, TWO_WARPS, changed, holds, read, source

TWICE = """
st.shared.u32 [%r4], 1;
ld.shared.u32 %r6, [%r5];
st.shared.u32 [%r4+8], %r6;
ld.shared.u32 %r7, [%r5+8];
st.u32 [%rd7], %r7;
"""
"""Needs a barrier between the instructions of each pair."""
RACES = '\n// ptxmm: races = "none"'


def told(test: Test) -> tuple[list[Progress], FencesResult]:
    found = []
    search: Generator[Progress, None, FencesResult] = searched(test, model_named(MODEL), most=1)
    while True:
        try:
            found.append(next(search))
        except StopIteration as end:
            return found, end.value


def barriers(test: Test) -> list[Step]:
    steps = strengthenings(test, model_named(MODEL).coverage, Costs())
    return [step for step in steps if step.barrier is not None]


def test_a_barrier_that_orders_nothing_is_not_tried() -> None:
    test = read(source(EXCHANGE, BOTH, TWO_WARPS))
    size = len(test.threads[0].body)
    gaps = [step.barrier[2] for step in barriers(test) if step.barrier is not None]
    assert gaps and (0, 0) not in gaps and (size, size) not in gaps
    assert all(any(pair) and any(gap < size for gap in pair) for pair in gaps)


def test_of_barriers_with_the_same_effect_one_is_tried() -> None:
    body = EXCHANGE.replace("st.u32", "add.u32 %r6, %r6, 1;\nmul.lo.u32 %r6, %r6, 3;\nst.u32")
    more, less = (barriers(read(source(item, BOTH, TWO_WARPS))) for item in (body, EXCHANGE))
    assert len(more) == len(less)


def test_what_a_barrier_separates() -> None:
    step = Step(8, {Site(0, 2): (), Site(1, 1): ()}, barrier=("cta", (0, 1), (2, 1)))
    pairs = [
        (Site(0, 1), Site(1, 1)), (Site(0, 2), Site(1, 0)), (Site(0, 0), Site(1, 0)), (Site(0, 2), Site(1, 1)),
        (Site(0, 0), Site(0, 3)),
    ]  # fmt: skip
    assert [separated(step, frozenset((pair,))) for pair in pairs] == [1, 1, 0, 0, 0]


def test_two_barriers_are_found_from_the_executions_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is enough alone, and nothing beside them is tried before."""
    tried = []
    make = Family.__init__

    def counted(self: Family, *args: Any) -> None:
        tried.append(args[1])
        make(self, *args)

    monkeypatch.setattr(Family, "__init__", counted)
    text = source(TWICE, BOTH + RACES, TWO_WARPS)
    found = next(iter(searched(read(text), model_named(MODEL))))
    assert [c.new for c in found.found.changes] == ["barrier.cta.sync 0"] * 2
    assert found.found.engines == ("z3", "enumerate")
    edited = changed(text, found.found.changes)
    assert edited is not None and holds(edited)
    assert len(tried) < 15 and not any(tried)
    for change in found.found.changes:  # no part of it is enough
        alone = changed(text, (change,))
        assert alone is not None and holds(alone) is False


def test_each_repair_is_told_once_and_the_result_has_them_all() -> None:
    found, result = told(read(source(EXCHANGE, BOTH + RACES, TWO_WARPS)))
    assert len(found) >= 1 and result.holds is False
    assert len({part.found.changes for part in found}) == len(found)
    assert all(any(repair is part.found for part in found) for repair in result.repairs)
    assert [len(part.so_far.repairs) for part in found][:1] == [1]
    for part in found:
        assert judge(part.found.program, model_named(MODEL), required(part.found.source), Limits()).holds
        assert (part.so_far.status, part.so_far.listed, part.so_far.holds) == ("timeout", False, False)


def required(test: Test) -> Requirement:
    return requirement(test, model_named(MODEL), None, Limits())


def test_what_is_found_before_the_time_limit_stays() -> None:
    """The result of a search that the time ends has what was found, and says from which cost on there may be more."""
    limits = Limits(deadline=time.monotonic() + 3600)
    search = searched(read(source(EXCHANGE, BOTH + RACES, TWO_WARPS)), model_named(MODEL), limits=limits)
    first = next(search)
    assert len(first.so_far.repairs) == 1 and first.so_far.repairs[0] is first.found
    assert [note.kind for note in first.so_far.notes][-2:] == ["timeout", "bound"]


def test_the_strongest_program_is_asked_without_its_switches() -> None:
    """Where it does something unwanted no problem of all strengths is made."""
    test, model = read(source(EXCHANGE, BOTH + RACES, TWO_WARPS)), model_named(MODEL)
    everything = superposition(test, model.coverage, stronger=True)
    family = Family(everything.test, everything.variations, model, required(test), Limits())
    assert not family.suffices(everything.switches)
    assert not family._made


def test_repairs_of_kernels_are_printed_as_they_are_found(run_command: Run) -> None:
    Path("k.ptx").write_text(source(EXCHANGE, BOTH + RACES, TWO_WARPS))
    ran = run_command("fences", "k.ptx", "--most", "1")
    lines = ran.out.splitlines()
    assert ran.code == 1 and lines[0].startswith("Found after ") and "add barrier.cta.sync 0" in lines[0]
    assert lines.index("Test k") > 0 and "Repairs" in lines
    ran = run_command("fences", "k.ptx", "--most", "1", "--json")
    (entry,) = json.loads(ran.out)["results"]
    assert entry["analysis"] == "fences" and len(entry["repairs"]) == 1


def parts(task: str, done: int) -> Generator[str | Part[str] | Sequence[None], bool, None]:
    yield [None]
    yield Part("found", "so far")
    time.sleep(60)
    yield "never"


def test_what_stands_for_a_message_that_does_not_come() -> None:
    _, (_, _, part), (_, _, end) = events(parts, ["a"], 1, Bounds(seconds=0.1), lambda message: False)
    assert isinstance(part, Part) and part.instead == "so far" and isinstance(end, Lost)


def test_right_kernels_need_what_they_need() -> None:
    """What can go is decided again in the text of the source."""
    text = source(EXCHANGE.replace("ld.shared", "bar.sync 0;\nbar.sync 0;\nld.shared", 1), BOTH, TWO_WARPS)
    result = fences(read(text), model_named(MODEL))
    for repair in result.repairs:
        edited = changed(text, repair.changes)
        assert edited is not None and holds(edited)


def test_a_program_in_which_a_thread_waits_for_ever_is_no_repair() -> None:
    """Bytes that nobody announces never come: with another barrier no execution reaches its end, and none races."""
    path = Path(__file__).parent / "cuda" / "barrier_tx.wrong_no_bytes.ptx"
    (test, *_) = read_files(path)
    search = searched(test, model_named(MODEL), limits=Limits(deadline=time.monotonic() + 6))
    for found in islice(search, 1):
        assert judge(found.found.program, model_named(MODEL), required(test), Limits()).holds


PADDED = """
PTX padded
{{ .global .u32 x, y, a, b, c, d; }}
 P0 @ cta 0                     | P1 @ cta 1                      ;
 st.global.u32 [a], 1           | ld{}.gpu.global.u32 r1, [y] ;
 st.global.u32 [x], 1           | ld.global.u32 r2, [x]           ;
 st{}.gpu.global.u32 [y], 1 | st.global.u32 [c], 1            ;
 st.global.u32 [b], 1           | st.global.u32 [d], 1            ;
exists (P1:r1 == 1 /\\ P1:r2 == 0)
"""


@pytest.mark.parametrize(("read_", "write_"), [(".acquire", ".relaxed"), (".relaxed", ".release"), (".relaxed",) * 2])
def test_what_is_tried_first_changes_no_list(monkeypatch: pytest.MonkeyPatch, read_: str, write_: str) -> None:
    """What orders what is not ordered comes first, no more than is needed; all repairs are found as without that."""
    from ptxmm.analysis.strength import repairs
    from ptxmm.formats import parse

    (test,) = parse(PADDED.format(read_, write_), "padded.litmus")
    found = {}
    for many in (20, 1000):
        monkeypatch.setattr(repairs, "_MANY", many)
        first: list[Progress] = []
        search = searched(test, model_named(MODEL), most=None)
        while True:
            try:
                first.append(next(search))
            except StopIteration as end:
                found[many] = [(r.cost, tuple((c.line, c.new) for c in r.changes)) for r in end.value.repairs]
                break
        changes = len(first[0].found.changes)
        assert many == 1000 or changes == 1 + (read_ == write_)
    assert found[20] == found[1000] and len(found[20]) >= 2


def test_accesses_are_not_made_strong_where_only_races_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would not race, and a thread would still find what comes too early: a barrier is told first."""
    from ptxmm.analysis.strength import repairs

    monkeypatch.setattr(repairs, "_MANY", 0)
    found = next(
        searched(read(source(EXCHANGE, RACES.strip().removeprefix("// ptxmm: "), TWO_WARPS)), model_named(MODEL))
    )
    assert [change.new for change in found.found.changes] == ["barrier.cta.sync 0"]


def test_known_executions_refute_barriers() -> None:
    """What happens whatever comes first is asked of few programs, and not of each with one more barrier."""
    text = """PTX twice
{ .global .u32 x = 0; }
P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; ld.relaxed.gpu.global.u32 r0, [x]; }
P1 @ cta 0 { st.relaxed.gpu.global.u32 [x], 2; ld.relaxed.gpu.global.u32 r0, [x]; }
exists (x == 1 \\/ x == 2)
"""
    test, model, asked = parse_one(text), model_named("ptx-8.5"), 0
    required = requirement(test, model, Property.never, Limits())

    def problem(number: int, program: Test, variations: Mapping[Site, Variation]) -> Family:
        nonlocal asked
        asked += 1
        return Family(program, variations, model, replace(required, deadlock=number > 0), Limits())

    steps = strengthenings(test, model.coverage, Costs())
    repairs = Repairs(test, steps, model.coverage, Costs(), problem, Limits().check, most=1)
    while repairs.cost is not None:
        assert repairs.advance() is None
    assert len(steps) >= 7 and asked <= 3


def test_what_spins_before_and_after() -> None:
    """A repair of a race is one although a thread may spin for ever as before, which is said."""
    text = """PTX spins
{ .global .u32 x = 0; .global .u32 f = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r0, [x]; setp.eq.u32 p, r0, 1; @p st.relaxed.gpu.global.u32 [f], 1; }
P2 @ cta 2 { L: ld.relaxed.gpu.global.u32 r0, [f]; setp.ne.u32 p, r0, 1; @p bra L; }
"""
    found = fences(parse_one(text), model_named("ptx-8.5"), wanted=Property.races)
    assert [change.new for repair in found.repairs for change in repair.changes] == ["st.relaxed.gpu.global.u32 [x], 1"]
    assert "progress" in {note.kind for note in found.notes}


def test_wider_scopes_where_the_program_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    text = source(
        """
mov.u32 %r6, %ctaid.x;
setp.ne.u32 %p1, %r6, 0;
@%p1 bra READ;
st.global.u32 [%rd1], 1;
st.release.cta.global.u32 [%rd1+4], 1;
bra DONE;
READ:
ld.acquire.cta.global.u32 %r7, [%rd1+4];
ld.relaxed.gpu.global.u32 %r6, [%rd1+8];
DONE:
""",
        'races = "none"',
    )
    monkeypatch.setattr("ptxmm.analysis.fences._FIRST", 0.0)
    limits = Limits(deadline=time.monotonic() + 60)
    result = fences(read(text), model_named(MODEL), limits=limits)
    (repair,) = result.repairs
    assert result.holds is None and result.status == "timeout" and not result.listed
    assert len(repair.changes) == 2 and all(change.new and ".gpu" in change.new for change in repair.changes)


def test_no_barrier_inside_of_a_loop_that_polls() -> None:
    """And a branch whose target is elsewhere for a barrier before it is not changed."""
    text = source(
        """
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
st.global.u32 [%rd1], 1;
st.relaxed.cta.global.u32 [%rd1+4], 1;
bra DONE;
READ:
ld.relaxed.cta.global.u32 %r8, [%rd1+8];
st.u32 [%rd7], %r8;
POLL:
ld.acquire.cta.global.u32 %r7, [%rd1+4];
setp.eq.u32 %p2, %r7, 0;
@%p2 bra POLL;
ld.global.u32 %r7, [%rd1];
DONE:
""",
        'races = "none"',
        TWO_WARPS,
    )
    test = read(text)
    inside = {pc for pc, op in enumerate(test.threads[1].body) if isinstance(op, SetPredicate | Branch)}
    assert inside and all(inside.isdisjoint(step.barrier[2][1:]) for step in barriers(test) if step.barrier)
    result = fences(test, model_named(MODEL))
    assert any(op.kind == "insert" and "barrier" in (op.new or "") for r in result.repairs for op in r.changes)
    assert not any(isinstance(change.op, Branch) for repair in result.repairs for change in repair.changes)

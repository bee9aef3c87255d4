"""What takes the meaning from a program counts in executions that never end, too: both engines look for it there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.analysis.undefined import with_reasons
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.errors import PtxmmError
from tests import random_endless, reference
from tests.reference_dependencies import TooSlow
from tests.support import ENGINES, model_named, parse_one, run
from tests.tally import Tally

_STRAY = "mov.u64 d, x; st.u32 [d+400], 1;"
_READ = "ld.relaxed.gpu.u64 r, [f]; setp.ne.u64 p, r, 1;"
_SPIN = "L: ld.relaxed.gpu.u32 s, [never]; setp.eq.u32 q, s, 0; @q bra L;"
_DECLARATIONS = ".global .u32 x = 0; .global .u64 f = 0; .global .u32 never = 0; .shared .b64 b @ cta 0 = 0;"


def _status(threads: list[str], rest: str = "") -> tuple[str, tuple[str, ...]]:
    bodies = "\n".join(f"P{i} @ cta 0 {{ {body} }}" for i, body in enumerate(threads))
    text = f"PTX t\n{{ {_DECLARATIONS} }}\n{bodies}\n{rest}exists (x == 7)\n"
    result = check(parse_one(text), model_named("ptx-8.5"), engine="both")
    return result.status, result.flags


@pytest.mark.parametrize(
    "threads",
    [
        [f"{_STRAY} L: bra L;"],
        [f"{_STRAY} {_SPIN}"],
        [_STRAY, _SPIN],
        [_STRAY, "L: bra L;"],
        [_STRAY, "barrier.sync 0, 64;"],
        [_SPIN, f"{_READ} @p bra E; {_STRAY} E: bra E;", "st.relaxed.gpu.u64 [f], 1;"],
        ["L: mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p bra L;", "st.u32 [x], 1;"],
        ["mbarrier.init.shared::cta.b64 [b], 1; L: bra L;", "mbarrier.arrive.shared::cta.b64 _, [b];"],
        [f"st.u16 [x], 1; {_SPIN}", "st.u32 [x], 1;"],
        ["st.u16 [x], 1;", "st.u32 [x], 1; L: add.u64 r, r, 1; st.u64 [f], r; bra L;"],
        ["mov.u64 d, x; st.u64 [f], d; ld.u64 e, [f]; st.shared.u32 [e], 1; L: bra L;"],
    ],
    ids=[
        "then a loop", "then a spin", "beside a spin", "beside a loop", "beside a deadlock", "after a read",
        "a poll for ever", "an arrival before init", "sizes and a spin", "sizes and a loop", "the wrong space",
    ],
)  # fmt: skip
def test_misuse_without_an_end(threads: list[str]) -> None:
    assert _status(threads)[0] == "undefined"


@pytest.mark.parametrize(
    ("threads", "status"),
    [
        ([f"{_SPIN} {_STRAY}", "st.u32 [x], 1;"], "complete"),
        (["barrier.sync 0, 64;" + _STRAY, _SPIN], "complete"),
        (["mbarrier.init.shared::cta.b64 [b], 2; bar.sync 0;"
          "L: mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p bra L;" + _STRAY, "bar.sync 0;"], "complete"),
        (["st.relaxed.cta.u32 [x], 1; " + _SPIN, "st.relaxed.cta.u32 [x], 2;"], "complete"),
    ],
    ids=["behind a spin", "behind a barrier", "behind a wait", "strong accesses"],
)  # fmt: skip
def test_what_is_never_executed(threads: list[str], status: str) -> None:
    assert _status(threads)[0] == status


def test_races_of_threads_that_never_end_are_flags() -> None:
    assert "data-race" in _status([f"st.u32 [x], 1; {_SPIN}", "st.u32 [x], 2;"])[1]
    assert "data-race" not in _status([f"st.relaxed.cta.u32 [x], 1; {_SPIN}", "st.relaxed.cta.u32 [x], 2;"])[1]


def test_a_filter_leaves_out_what_it_is_false_of_however_it_goes_on() -> None:
    reads = f"{_READ} @p bra E; {_STRAY} E: bra E;"
    threads = [reads, "st.relaxed.gpu.u64 [f], 1;"]
    assert _status(threads, "filter (P0:r == 1)\n")[0] == "undefined"
    assert _status(threads, "filter (P0:r == 0)\n")[0] == "complete"


def test_a_grid_does_not_begin_before_the_one_that_it_waits_for_ends() -> None:
    frame = "PTX t\n{ .global .u32 x = 0; .global .u32 never = 0; }\n"
    first = f"P0 @ cta 0, grid 0 {{ {_SPIN} }}\n"
    second = f"P1 @ cta 0, grid 1 {{ {_STRAY} }}\n"
    test = parse_one(frame + first + second + "exists (x == 7)")
    assert check(test, model_named("ptx-8.5"), engine="both").status == "complete"


_GRIDS = "PTX t\n{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 never = 0; }\n"
_LATER = "P2 @ cta 0, grid 1 { st.u16 [x], 1; mov.u64 d, y; st.u32 [d+400], 1; }\n"


@pytest.mark.parametrize(
    ("first", "second", "status", "flags"),
    [
        (f"st.u16 [x], 1; {_SPIN}", "st.u32 [x], 1;", "undefined", {"data-race", "mixed-size-race"}),
        (f"st.u32 [x], 1; {_SPIN}", "st.u32 [x], 1;", "complete", {"data-race"}),
        (f"st.u32 [x], 1; {_SPIN}", "st.u32 [y], 1;", "complete", set()),
    ],
)
def test_a_grid_that_never_ends_and_one_after_it(first: str, second: str, status: str, flags: set[str]) -> None:
    """What the second grid would do is never executed."""
    text = f"{_GRIDS}P0 @ cta 0, grid 0 {{ {first} }}\nP1 @ cta 1, grid 0 {{ {second} }}\n{_LATER}exists (x == 7)"
    result = check(parse_one(text), model_named("ptx-8.5"), engine="both")
    assert (result.status, set(result.flags) - {"vacuous"}) == (status, flags)
    found = races(parse_one(text), model_named("ptx-8.5"))
    assert bool(found.races) == ("data-race" in flags)


@pytest.mark.parametrize("overlap", [False, True])
def test_a_dependent_grid_before_its_wait(overlap: bool) -> None:
    """Where it may begin before the first grid ends, what it does before griddepcontrol.wait is executed."""
    how = " overlap" if overlap else ""
    first = f"P0 @ cta 0, grid 0 {{ st.u32 [x], 1; {_SPIN} }}\n"
    body = "ld.u32 r0, [x]; griddepcontrol.wait; mov.u64 d, y; st.u32 [d+400], 1;"
    text = f"{_GRIDS}{first}P1 @ cta 1, grid 1{how} {{ {body} }}\nexists (x == 7)"
    result = check(parse_one(text), model_named("ptx-8.5"), engine="both")
    assert result.status == "complete"
    assert ("data-race" in result.flags) == overlap


@pytest.mark.parametrize(
    ("between", "flagged"),
    [
        ("P1 @ cta 0, grid 1 {{ {} }}", False),  # has not begun, so that nothing has launched the last one
        ("P1 @ cta 0, grid 1 overlap {{ griddepcontrol.wait; {} }}", False),
        ("P1 @ cta 0, grid 1 overlap {{ {} griddepcontrol.wait; }}", True),
        ("P1 @ cta 0, grid 1 overlap {{ {} }}", True),
    ],
)
def test_a_grid_that_the_one_between_launches(between: str, flagged: bool) -> None:
    """It does not begin before that has come to its launch_dependents (9.7.14.13), whose fence orders it after the
    first grid."""
    first = "P0 @ cta 0, grid 0 { st.u32 [x], 1; }"
    launch = between.format("fence.acq_rel.gpu; griddepcontrol.launch_dependents;")
    last = "P2 @ cta 0, grid 2 overlap { ld.u32 r0, [x]; }"
    text = f"PTX t\nISA=9.2\n{{ .global .u32 x = 0; }}\n{first}\n{launch}\n{last}\nexists (x == 1)"
    result = check(parse_one(text), model_named("ptx-8.5"), engine="both")
    assert result.flags == (("data-race",) if flagged else ())


@pytest.mark.parametrize("threads", [[f"{_STRAY} {_SPIN}"], [f"st.u16 [x], 1; {_SPIN}", "st.u32 [x], 1;"]])
def test_the_execution_shown_is_confirmed(threads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is found again misuses nothing and raises no flag, it is not shown."""
    bodies = "\n".join(f"P{i} @ cta 0 {{ {body} }}" for i, body in enumerate(threads))
    test = parse_one(f"PTX t\n{{ {_DECLARATIONS} }}\n{bodies}\nexists (x == 7)\n")
    model = model_named("ptx-8.5")
    result = with_reasons(test, model, check(test, model), Limits())
    assert result.execution is not None
    again = Problem.witness

    def forged(problem: Problem) -> Witness:
        found = again(problem)
        return replace(found, values={i: value + 1 for i, value in found.values.items()})

    monkeypatch.setattr(Problem, "witness", forged)
    with pytest.raises(PtxmmError) as caught:
        with_reasons(test, model, check(test, model, engine="enumerate"), Limits())
    assert caught.value.kind == "internal"


def _judged(number: int) -> tuple[bool, frozenset[str]] | None:
    """Whether a stray access is executed in some beginning of an execution of a random program, and the flags of all;
    None if that takes the reference too long."""
    test = parse_one(random_endless.text(number, zone=True))
    raised: set[str] = set()
    strays = False
    try:
        for x, found in reference.beginnings(test, "ptx-8.5", unroll=1, seconds=1.5):
            raised |= found
            strays = strays or any(x.events[w].cell == ("zone", 0, 4) for w in x.W - x.IW)
            if strays:
                break
    except TooSlow:
        return None
    return strays, frozenset(raised)


def _compare(numbers: range, tally: Tally) -> None:
    compared = undefined = 0
    for number in numbers:
        expected = _judged(number)
        if expected is None:
            continue
        strays, raised = expected
        test, limits = parse_one(random_endless.text(number)), Limits(unroll=1)
        for engine in ENGINES:
            search = run(engine, test, model_named("ptx-8.5"), Observed((), ()), limits)
            assert (search.undefined is not None) == strays, (engine, random_endless.text(number))
            assert strays or frozenset(search.flags) == raised, (engine, random_endless.text(number))
        result = check(test, model_named("ptx-8.5"), engine="z3", limits=limits)
        with_reasons(test, model_named("ptx-8.5"), result, limits)  # what is shown is confirmed
        compared, undefined = compared + 1, undefined + (result.status == "undefined")
    tally.notes.append(f"{compared} programs that need not end as in the reference, {undefined} of them undefined")
    assert 4 * compared > len(numbers)


def test_random_programs(tally: Tally) -> None:
    _compare(range(40), tally)


@pytest.mark.slow
def test_many_random_programs(tally: Tally) -> None:
    _compare(range(1000, 2000), tally)

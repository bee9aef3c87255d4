"""Progress: loops and barriers that never end, against published rows, all states of small programs, and by hand."""

from __future__ import annotations

import csv
import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptxmm.analysis.progress import ProgressResult, progress
from ptxmm.cat import load
from ptxmm.cli.app import application
from ptxmm.engines.explicit.hangs import Visibility
from ptxmm.engines.fairness import FAIRNESS, Fairness
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse, read
from ptxmm.program.test import Test
from ptxmm.render.progress import text
from ptxmm.render.style import Style
from tests import test_barrier_programs
from tests.documents import entry
from tests.reference_progress import as_litmus, hangs, random_program
from tests.support import CORPORA, ROOT, model_named, parse_one, run

Golden = Callable[[str, str], None]
PTX = ("ptx-6.0", "ptx-7.5", "ptx-8.5")
XY = ".global .u32 x = 0; .global .u32 y = 0;"
EXPECTED = CORPORA / "dartagnan" / "expected.csv"


def found(
    test: Test,
    model: str = "ptx-8.5",
    fairness: Fairness = "fair",
    visibility: Visibility = "strong",
    unroll: int = 3,
    seconds: float = 30,
    engine: str = "enumerate",
) -> ProgressResult:
    limits = Limits(unroll=unroll, deadline=time.monotonic() + seconds)
    return progress(test, model_named(model), limits=limits, fairness=fairness, visibility=visibility, engine=engine)


def program(*threads: str, declarations: str = XY) -> Test:
    """A test of threads ``place: instructions``."""
    bodies = []
    for number, thread in enumerate(threads):
        place, _, body = thread.partition(":")
        bodies.append(f"P{number} @ {place} {{ {body} }}")
    return parse_one("\n".join(["PTX case", f"{{ {declarations} }}", *bodies, ""]))


def spin(kind: str, location: str, register: str = "r0", stop: str = "0") -> str:
    """A loop that is left once the load returns something else than ``stop``."""
    load = f"ld.{kind}.global.u32 {register}, [{location}];"
    return f"L{register}: {load} setp.eq.u32 p{register}, {register}, {stop}; @p{register} bra L{register};"


def states(result: ProgressResult) -> tuple[str, ...]:
    return tuple(fate.state for fate in result.threads)


def rows() -> list[tuple[str, str, bool]]:
    if not EXPECTED.is_file():
        return []
    with EXPECTED.open(encoding="utf-8") as file:
        return [(r["file"], r["model"], r["holds"] == "1") for r in csv.DictReader(file) if r["property"] == "liveness"]


@pytest.mark.skipif(not EXPECTED.is_file(), reason="the public corpus is not here")
@pytest.mark.parametrize("visibility", ["strong", "all"])
def test_rows_of_the_corpus(visibility: Visibility) -> None:
    assert len(rows()) == 134
    for file, model, holds in rows():
        (test,) = read(EXPECTED.parent / file)
        result = found(test, model, visibility=visibility)
        assert (result.verdict, result.status) == ("terminates" if holds else "may hang", "complete"), (file, model)


# Which of the programs that synthesis for progress models gave terminate under schedulers that are not fair:
# the results of Dartagnan for the same programs (Dat3M, VULKAN-Liveness-*-expected.csv).
TERMINATES: dict[Fairness, dict[str, set[int]]] = {
    "hsa": {
        "2_threads_2_instructions": {5},
        "2_threads_3_instructions": {4, 14, 19, 50},
        "2_threads_4_instructions": {30, 48, 75, 76, 102, 120, 124, 137},
        "3_threads_3_instructions": {20},
        "3_threads_4_instructions": {4, 91, 92, 99, 100},
    },
    "lobe": {
        "2_threads_2_instructions": {5},
        "2_threads_3_instructions": {4, 14, 19, 22, 50},
        "2_threads_4_instructions": {30, 48, 75, 76, 102, 120, 124, 137},
        "3_threads_3_instructions": {20},
        "3_threads_4_instructions": {4, 91, 92, 99, 100},
    },
}
TERMINATES["hsa_obe"] = TERMINATES["lobe"]


@pytest.mark.skipif(not EXPECTED.is_file(), reason="the public corpus is not here")
@pytest.mark.parametrize("fairness", sorted(TERMINATES))
def test_schedulers_on_the_corpus(fairness: Fairness) -> None:
    for path in sorted((EXPECTED.parent / "CADP").rglob("*.litmus")):
        (test,) = read(path)
        ends = int(path.stem.partition("_")[0]) in TERMINATES[fairness][path.parent.name]
        result = found(test, "ptx-7.5", fairness)
        assert (result.verdict, result.status) == ("terminates" if ends else "may hang", "complete"), path


def agrees(seed: int, model: str = "sc") -> bool | None:
    """Compare one random program with all its states, under every scheduler; whether it may hang under a fair one."""
    source = random_program(random.Random(seed))
    (test,) = parse(as_litmus(source), "random.litmus")
    for fairness in FAIRNESS:
        result = found(test, model, fairness)
        if result.status == "timeout":
            return None
        assert result.status == "complete", (seed, fairness)
        assert (result.verdict == "may hang") == hangs(source, fairness), (seed, fairness, source)
    return hangs(source, "fair")


def test_random_programs_against_all_their_states() -> None:
    seen = [agrees(seed) for seed in range(1, 20) if seed != 11]  # 11 takes long
    assert {True, False} <= set(seen)
    assert seen.count(None) < 3


@pytest.mark.slow
def test_more_random_programs_against_all_their_states(shift: int) -> None:
    seen = [agrees(seed) for seed in range(1000 + shift, 1200 + shift)]
    assert seen.count(True) > 20 and seen.count(False) > 20 and seen.count(None) < 20


@pytest.mark.parametrize("model", PTX)
def test_what_hangs_by_interleaving_hangs_under_ptx(model: str) -> None:
    """Every sequentially consistent execution is one of PTX."""
    for seed in range(2000, 2012):
        source = random_program(random.Random(seed))
        (test,) = parse(as_litmus(source), "random.litmus")
        result = found(test, model)
        if hangs(source, "fair") and result.status != "timeout":
            assert result.verdict == "may hang", (seed, source)


def mixed(seed: int) -> Test:
    """A random program with weak and strong accesses, scopes and fences."""
    rng = random.Random(seed)
    source = as_litmus(random_program(rng))
    strong = {"ld": ".acquire.gpu", "st": ".release.gpu"}

    def access(match: re.Match[str]) -> str:
        fence = rng.choice(("", "", "", "fence.sc.gpu; ", "fence.acq_rel.gpu; "))
        orders = (".weak", ".relaxed.cta", ".relaxed.gpu", ".relaxed.gpu", strong[match[1]])
        return fence + match[1] + rng.choice(orders)

    return parse_one(re.sub(r"\b(ld|st)\.relaxed\.gpu", access, source))


@pytest.mark.parametrize("model", ["ptx-6.0", "ptx-8.5"])
def test_engines_agree_on_random_programs(model: str) -> None:
    verdicts = [found(mixed(seed), model, engine="both").verdict for seed in range(12)]
    assert {"terminates", "may hang"} <= set(verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("model", (*PTX, "sc"))
def test_engines_agree_on_more_random_programs(model: str, shift: int) -> None:
    for seed in range(5000 + shift, 5040 + shift):
        for visibility in ("strong", "all"):
            found(mixed(seed), model, visibility=visibility, engine="both")


# ---- what a repeated read is sure to see -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "read", "strong", "all_"),
    [
        ("st.relaxed.gpu", "relaxed.gpu", "terminates", "terminates"),
        ("st.release.sys", "acquire.gpu", "terminates", "terminates"),
        ("st.volatile", "volatile", "terminates", "terminates"),
        ("st.relaxed.gpu", "weak", "may hang", "terminates"),  # the load may be hoisted out of the loop
        ("st.weak", "relaxed.gpu", "may hang", "terminates"),
        ("st.relaxed.gpu", "relaxed.cta", "may hang", "terminates"),  # scopes that do not include the other thread
        ("st.relaxed.cta", "relaxed.gpu", "may hang", "terminates"),
    ],
)
def test_what_a_repeated_read_sees(write: str, read: str, strong: str, all_: str) -> None:
    test = program(f"cta 0: {write}.global.u32 [x], 1;", f"cta 1: {spin(read, 'x')}")
    for model in PTX:
        assert found(test, model).verdict == strong
        assert found(test, model, visibility="all").verdict == all_
    assert found(test, "sc").verdict == "terminates"


def test_reason_names_what_is_not_morally_strong() -> None:
    test = program("cta 0: st.weak.global.u32 [x], 1;", f"cta 1: {spin('relaxed.gpu', 'x')}")
    (seen,) = found(test).threads[1].seen
    assert (seen.location, seen.value, seen.source) == ("x", 0, "initial")
    assert any("is weak" in reason and "st.weak" in reason for reason in seen.reasons)


def test_synchronization_in_the_loop_makes_weak_writes_visible() -> None:
    """Each round first reads x weakly, then acquires the flag: from the second round on x must be read as 1."""
    both = """L: ld.weak.global.u32 r1, [x]; ld.acquire.gpu.global.u32 r0, [y];
              and.b32 r0, r0, r1; setp.eq.u32 p, r0, 0; @p bra L;"""
    release = "cta 0: st.weak.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1;"
    relaxed = "cta 0: st.weak.global.u32 [x], 1; st.relaxed.gpu.global.u32 [y], 1;"
    assert found(program(release, f"cta 1: {both}")).verdict == "terminates"
    assert found(program(relaxed, f"cta 1: {both}")).verdict == "may hang"


def test_fences_in_the_loop_come_after_every_other_fence() -> None:
    """Infinitely many fence.sc can't all precede the one of P0, after which x is 1."""
    loop = "L: fence.sc.gpu; ld.weak.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L;"
    assert found(program("cta 0: st.weak.global.u32 [x], 1; fence.sc.gpu;", f"cta 1: {loop}")).verdict == "terminates"
    assert found(program("cta 0: fence.sc.gpu; st.weak.global.u32 [x], 1;", f"cta 1: {loop}")).verdict == "may hang"


# ---- what becomes of threads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", (*PTX, "sc"))
def test_two_threads_that_spin_on_each_other(model: str) -> None:
    """``check`` says that these end in (1, 1) only (No-Thin-Air sees no dependency through the exit of a loop)."""
    wait = "cta 0: " + spin("relaxed.cta", "{}") + " st.relaxed.cta.global.u32 [{}], 1;"
    result = found(program(wait.format("x", "y"), wait.format("y", "x")), model)
    assert states(result) == ("spins", "spins")
    assert "P1:5: st.relaxed.cta.global.u32 [y], 1" in str(result.threads) or result.threads[0].seen[0].reasons


def test_lost_wake_up() -> None:
    """P0 resets the flag that P1 may have set before."""
    reset = f"cta 0: st.relaxed.gpu.global.u32 [x], 0; {spin('relaxed.gpu', 'x')}"
    result = found(program(reset, "cta 1: st.relaxed.gpu.global.u32 [x], 1;"))
    assert states(result) == ("spins", "ends")
    assert result.finding is True


def test_spin_holds_up_a_barrier() -> None:
    """P1 waits at the barrier for P0, which spins for what P1 stores after it."""
    result = found(
        program(
            f"cta 0: {spin('relaxed.cta', 'x')} bar.sync 0;",
            "cta 0: bar.sync 0; st.relaxed.cta.global.u32 [x], 1;",
        )
    )
    assert states(result) == ("spins", "waits")
    assert result.threads[1].at is not None and result.threads[1].at.text == "bar.sync 0"


def test_exit_does_not_release_a_barrier_that_the_spin_needs() -> None:
    wait = "cta 0: " + spin("relaxed.cta", "x")
    result = found(program("cta 0: bar.sync 0; st.relaxed.cta.global.u32 [x], 1;", wait))
    assert states(result) == ("waits", "spins")


@pytest.mark.parametrize(
    ("arrivals", "verdict"), [("mbarrier.arrive.shared.b64 t, [b];", "terminates"), ("", "may hang")]
)
def test_wait_on_an_mbarrier(arrivals: str, verdict: str) -> None:
    wait = "W: mbarrier.try_wait.parity.shared.b64 p, [b], 0; @!p bra W;"
    test = program(f"cta 0: {arrivals}", f"cta 0: {wait}", declarations=".shared .b64 b @ cta 0 = mbarrier(1);")
    result = found(test)
    assert (result.verdict, result.status) == (verdict, "complete")
    if arrivals:
        return
    (seen,) = result.threads[1].seen
    assert "phase 0 is never completed" in seen.reasons[0]


def test_wait_for_a_phase_that_is_over() -> None:
    """A wait for parity 0 that comes after two phases waits for the third one."""
    arrive = "mbarrier.arrive.shared.b64 t, [b];"
    wait = "W: mbarrier.test_wait.parity.shared.b64 p, [b], 0; @!p bra W;"
    test = program(f"cta 0: {arrive} {arrive}", f"cta 0: {wait}", declarations=".shared .b64 b @ cta 0 = mbarrier(1);")
    assert states(found(test)) == ("ends", "spins")


def test_loop_without_reads() -> None:
    result = found(program("cta 0: L: bra L;", "cta 1: st.global.u32 [x], 1;"))
    assert states(result) == ("spins", "ends")
    assert result.threads[0].seen == ()


def test_no_loop_no_barrier() -> None:
    result = found(program("cta 0: st.global.u32 [x], 1;", "cta 1: ld.global.u32 r0, [x];"))
    assert (result.verdict, result.status, result.finding, result.threads) == ("terminates", "complete", False, ())


def test_counter_of_rounds_is_no_progress() -> None:
    loop = "L: ld.relaxed.gpu.global.u32 r0, [x]; add.u32 r1, r1, 1; setp.eq.u32 p, r0, 0; @p bra L;"
    store = "cta 1: st.relaxed.gpu.global.u32 [x], 1;"
    assert found(program(f"cta 0: {loop}", "cta 1: st.relaxed.gpu.global.u32 [y], 1;")).verdict == "may hang"
    ends = found(program(f"cta 0: {loop}", store))
    assert (ends.verdict, ends.status) == ("terminates", "complete")


def test_bounded_retries_end() -> None:
    """Three attempts at most: with the bound that needs, the loop is seen to end."""
    loop = """L: ld.relaxed.gpu.global.u32 r0, [x]; add.u32 r1, r1, 1; setp.lt.u32 q, r1, 3;
              setp.eq.and.u32 p, r0, 0, q; @p bra L;"""
    result = found(program(f"cta 0: {loop}", "cta 1: st.relaxed.gpu.global.u32 [y], 1;"))
    assert (result.verdict, result.status) == ("terminates", "complete")


@pytest.mark.parametrize("unlock", [True, False])
def test_lock_by_exchange(unlock: bool) -> None:
    """A round of the loop writes 1 where 1 is: nothing happens."""
    lock = "L: atom.acquire.gpu.global.exch.b32 r0, [x], 1; setp.ne.u32 p, r0, 0; @p bra L;"
    free = "st.release.gpu.global.u32 [x], 0;" if unlock else ""
    result = found(program(f"cta 0: {lock} {free}", f"cta 1: {lock} {free}"))
    assert (result.verdict, result.status) == ("terminates" if unlock else "may hang", "complete")


@pytest.mark.parametrize(("order", "verdict"), [(("x", "y"), "terminates"), (("y", "x"), "may hang")])
def test_two_locks(order: tuple[str, str], verdict: str) -> None:
    """Two threads take two locks; in opposite orders each may hold one for ever."""

    def take(name: str, label: int) -> str:
        cas = f"atom.acquire.gpu.global.cas.b32 r{label}, [{name}], 0, 1;"
        return f"L{label}: {cas} setp.ne.u32 p{label}, r{label}, 0; @p{label} bra L{label};"

    free = "st.release.gpu.global.u32 [y], 0; st.release.gpu.global.u32 [x], 0;"
    one = f"cta 0: {take('x', 0)} {take('y', 1)} {free}"
    two = f"cta 1: {take(order[0], 0)} {take(order[1], 1)} {free}"
    result = found(program(one, two), seconds=60)
    assert (result.verdict, result.status) == (verdict, "complete")


def test_retry_of_cas_ends() -> None:
    """A failing attempt means that another thread has succeeded."""
    retry = """ld.relaxed.gpu.global.u32 r0, [x]; L: add.u32 r1, r0, 1;
               atom.relaxed.gpu.global.cas.b32 r2, [x], r0, r1; setp.ne.u32 p, r2, r0; mov.u32 r0, r2; @p bra L;"""
    result = found(program(f"cta 0: {retry}", f"cta 1: {retry}"))
    assert (result.verdict, result.status) == ("terminates", "complete")


def test_effects_beyond_the_bound() -> None:
    loop = "L: atom.relaxed.gpu.global.add.u32 r0, [x], 1; setp.lt.u32 p, r0, {}; @p bra L;"
    endless = found(program(f"cta 0: {loop.format(1000)}"))
    assert (endless.verdict, endless.status, endless.finding) == ("unknown", "bounded", None)
    short = found(program(f"cta 0: {loop.format(5)}"), unroll=6)
    assert (short.verdict, short.status) == ("terminates", "complete")


def test_inner_and_outer_loop() -> None:
    """The outer loop is gone round again and again if y stays 0, the inner one if x does."""
    nest = """O: L: ld.relaxed.gpu.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L;
              ld.relaxed.gpu.global.u32 r1, [y]; setp.eq.u32 q, r1, 0; @q bra O;"""
    set_x, set_y = (f"st.relaxed.gpu.global.u32 [{name}], 1;" for name in "xy")
    assert found(program(f"cta 0: {nest}", f"cta 1: {set_x}")).threads[0].lines is not None
    assert found(program(f"cta 0: {nest}", f"cta 1: {set_y}")).verdict == "may hang"
    assert found(program(f"cta 0: {nest}", f"cta 1: {set_x} {set_y}")).verdict == "terminates"


def test_later_grid_waits_for_an_earlier_one() -> None:
    """The grids of a GPU run one after the other: the store comes only after the loop has ended."""
    wait, store = spin("relaxed.gpu", "x"), "st.relaxed.gpu.global.u32 [x], 1;"
    result = found(program(f"gpu 0, grid 0, cta 0: {wait}", f"gpu 0, grid 1, cta 0: {store}"))
    assert states(result) == ("spins", "held")
    assert found(program(f"gpu 0, grid 1, cta 0: {wait}", f"gpu 0, grid 0, cta 0: {store}")).verdict == "terminates"
    other = program(f"gpu 0, grid 0, cta 0: {wait.replace('gpu', 'sys')}", f"gpu 1, grid 1, cta 0: {store}")
    assert found(other, visibility="all").verdict == "terminates"


def test_wait_is_for_the_grid_before() -> None:
    """griddepcontrol.wait waits for the direct prerequisite (9.7.14.13): the first grid spins until the third one has
    stored, and the second one has ended without waiting for it. If that waits too, none of them goes on."""
    wait, store = spin("relaxed.gpu", "x"), "st.relaxed.gpu.global.u32 [x], 1;"

    def grids(second: str, readings: dict[str, str]) -> tuple[str, ...]:
        first, last = f"grid 0, cta 0: {wait}", f"grid 2 overlap, cta 0: griddepcontrol.wait; {store}"
        test = program(first, f"grid 1 overlap, cta 0: {second}", last)
        result = progress(test, load("ptx-8.5", readings))
        return states(result) if result.verdict == "may hang" else (result.verdict,)

    assert grids("mov.u32 r0, 1;", {}) == ("terminates",)
    assert grids("mov.u32 r0, 1;", {"griddep": "all"}) == ("spins", "ends", "held")
    assert grids("griddepcontrol.wait;", {}) == ("spins", "held", "held")
    test = program(f"grid 0, cta 0: {store}", "grid 1 overlap, cta 0: mov.u32 r0, 1;", f"grid 2, cta 0: {wait}")
    assert found(test).verdict == "terminates"
    test = program(f"grid 0, cta 0: {wait}", "grid 1 overlap, cta 0: mov.u32 r0, 1;", f"grid 2, cta 0: {store}")
    assert states(found(test)) == ("spins", "ends", "held")


@pytest.mark.parametrize(
    ("fairness", "forward", "back"),
    [
        ("fair", "terminates", "terminates"),
        ("hsa", "terminates", "may hang"),
        ("obe", "may hang", "may hang"),
        ("hsa_obe", "terminates", "may hang"),
        ("lobe", "terminates", "may hang"),
        ("unfair", "may hang", "may hang"),
    ],
)
def test_schedulers(fairness: Fairness, forward: str, back: str) -> None:
    """One thread waits for the other; the first one is P0 or P1."""
    store, wait = "st.relaxed.gpu.global.u32 [x], 1;", spin("relaxed.gpu", "x")
    assert found(program(f"cta 0: {store}", f"cta 1: {wait}"), fairness=fairness).verdict == forward
    result = found(program(f"cta 0: {wait}", f"cta 1: {store}"), fairness=fairness)
    assert result.verdict == back
    if back == "may hang":
        assert states(result) == ("spins", "stops")


def test_starving_in_the_middle() -> None:
    """An occupancy-bound scheduler lets a thread that has begun go on; one that is not fair at all stops it between its
    two stores."""
    both = "cta 0: st.relaxed.gpu.global.u32 [x], 1; st.relaxed.gpu.global.u32 [y], 1;"
    wait = f"cta 1: {spin('relaxed.gpu', 'x', 'r0', '0')} {spin('relaxed.gpu', 'y', 'r1', '0')}"
    late = program(both, f"cta 1: {spin('acquire.gpu', 'x', 'r0', '0')} {spin('acquire.gpu', 'y', 'r1', '0')}")
    assert found(program(both, wait), fairness="lobe").verdict == "terminates"
    result = found(late, fairness="unfair")
    assert result.verdict == "may hang"


# ---- limits, errors, output ------------------------------------------------------------------------------------------


def test_undefined_program() -> None:
    wait = "W: mbarrier.try_wait.parity.shared.b64 p, [b], 0; @!p bra W;"
    result = found(program(f"cta 0: {wait}", declarations=".shared .b64 b @ cta 0;"))
    assert (result.verdict, result.status, result.finding) == ("unknown", "undefined", None)


def test_timeout_is_no_verdict() -> None:
    wait = f"cta 0: {spin('relaxed.gpu', 'x')}"
    result = found(program(wait, "cta 1: st.relaxed.gpu.global.u32 [x], 1;"), seconds=-1)
    assert (result.verdict, result.status, result.finding) == ("unknown", "timeout", None)


def test_filter_is_not_applied() -> None:
    text_ = "PTX f\n{ .global .u32 x = 0; }\nP0 @ cta 0 { L: ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L; }\n"
    result = found(parse_one(text_ + "filter (x == 1)\nexists (x == 1)\n"))
    assert result.verdict == "may hang"
    assert any(note.kind == "filter" for note in result.notes)


def test_unknown_options() -> None:
    test = program("cta 0: st.global.u32 [x], 1;")
    with pytest.raises(PtxmmError, match="unknown fairness"):
        progress(test, model_named("sc"), fairness="none")  # type: ignore[arg-type]
    with pytest.raises(PtxmmError, match="unknown visibility"):
        progress(test, model_named("sc"), visibility="none")  # type: ignore[arg-type]
    with pytest.raises(PtxmmError, match="unknown engine"):
        progress(test, model_named("sc"), engine="none")


def test_engine_that_was_not_asked_is_said() -> None:
    result = found(program("cta 0: bar.sync 0;"), engine="both")
    assert any(note.kind == "engine" for note in result.notes)


def test_scope_that_the_model_lacks() -> None:
    test = program("cta 0: st.relaxed.cluster.global.u32 [x], 1;")
    with pytest.raises(PtxmmError, match="cluster"):
        found(test, "ptx-6.0")


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["locks/cas-spinlock.litmus"], 0, "Progress terminates"),
        (["locks/cas-spinlock-cta-across.litmus"], 1, "spins for ever in lines 21 to 23"),
        (["locks/cas-spinlock-cta-across.litmus", "--visibility", "all"], 0, "Progress terminates"),
        (["locks/cas-spinlock.litmus", "--fairness", "unfair"], 1, "is left out of the schedule for ever"),
        (["locks/cas-spinlock.litmus", "--timeout", "0.001"], 3, "timeout"),
        (["locks/cas-spinlock.litmus", "--fairness", "none"], 2, ""),
        (["nowhere.litmus"], 2, ""),
    ],
)
def test_command(arguments: list[str], code: int, word: str) -> None:
    command = ["progress", "-m", "ptx-8.5", "--jobs", "1", str(ROOT / "litmus" / arguments[0]), *arguments[1:]]
    result = CliRunner().invoke(application(), command)
    assert (result.exit_code, word in result.output) == (code, True), result.output


def test_command_json() -> None:
    path = str(ROOT / "litmus" / "mp" / "MP+loop-weak.litmus")
    result = CliRunner().invoke(application(), ["progress", "--json", "--jobs", "1", "-m", "ptx-8.5", path])
    (entry,) = json.loads(result.stdout)["results"]
    assert (result.exit_code, entry["analysis"], entry["verdict"]) == (1, "progress", "may hang")


def test_deadlocks_that_check_reports() -> None:
    """Whatever ``check`` calls a deadlock may hang, on every test that comes with ptxmm and has a barrier."""
    count = 0
    for path in sorted((ROOT / "litmus" / "barriers").rglob("*.litmus")):
        (test,) = read(path)
        model = model_named(test.default_model)
        search = run("solve", test, model, Observed((), ()), Limits(deadline=time.monotonic() + 20))
        if search.undefined is None and not search.timeout:
            result = found(test, test.default_model)
            assert (result.verdict == "may hang") or not search.deadlock, path
            count += search.deadlock
    assert count >= 3


def test_random_programs_of_barriers() -> None:
    """What has neither loops nor meaningless executions may hang iff the other engine finds a deadlock."""
    seen = set()
    for seed in range(60):
        test, model = parse_one(test_barrier_programs.program(seed)), test_barrier_programs.MODELS[seed % 4]
        search = run("solve", test, model_named(model), Observed((), ()), Limits())
        if search.undefined is None:
            assert (found(test, model).verdict == "may hang") == search.deadlock, seed
            seen.add(search.deadlock)
    assert seen == {True, False}


@pytest.mark.parametrize("name", ["locks/cas-spinlock-cta-across", "bugs/flashmla-arrive-count-buggy"])
def test_text(name: str, golden: Golden) -> None:
    (test,) = read(ROOT / "litmus" / f"{name}.litmus")
    lines = text(found(test), Style(False))
    assert lines[-1].startswith("Time ")
    golden(f"progress-{Path(name).name}.txt", "\n".join(lines[:-1]) + "\n")


def test_document() -> None:
    wait, store = spin("relaxed.gpu", "x"), "st.relaxed.gpu.global.u32 [x], 1;"
    result = found(program(f"cta 0: {wait}", f"cta 1: {store}"), fairness="obe")
    found_ = entry("progress", result)
    assert (found_["verdict"], found_["fairness"], found_["visibility"]) == ("may hang", "obe", "strong")
    one, two = found_["threads"]
    assert (one["state"], two["state"], one["seen"][0]["location"]) == ("spins", "stops", "x")
    assert one["lines"] == [3, 3]
    (reason,) = one["seen"][0]["reasons"]
    assert reason == "P1:4: st.relaxed.gpu.global.u32 [x], 1 is not executed: P1 is left out of the schedule"

"""What launches claim besides the condition and freedom from races: ``bounds``, ``barriers`` and ``traps``."""

from __future__ import annotations

import time

import pytest

from ptxmm.analysis.claims import BARRIERS, BOUNDS, HOLDS, TRAPS, claimed
from ptxmm.analysis.fences import fences
from ptxmm.analysis.result import Result
from ptxmm.analysis.scopes import scopes
from ptxmm.analysis.told import Asked, verdict
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.modules.launch import parse_launches
from tests.alike import check_alike
from tests.kernels import launched
from tests.random_misuse import kernel
from tests.support import model_named
from tests.test_timeouts import LAUNCH, MODULE, PREDICATED, ROUNDS

ALL = 'bounds = "none outside"\n// ptxmm: barriers = "convergent"\n// ptxmm: traps = "none"'
OBJECTS = {"x": "{ type = 'u32', count = 4 }", "y": "'u32'"}
TWO = "mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0; mov.u32 %r2, 0;\n"
"""Two warps: %p0 is the first one."""
GIVEN = "@%p0 st.relaxed.gpu.global.u32 [%rd1], 4;\n@!%p0 ld.relaxed.gpu.global.u32 %r2, [%rd1];\n"
"""The second warp reads 0 or 4 into %r2."""
THERE = "mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd0; st.relaxed.gpu.global.u32 [%rd3], 1;\n"


def decided(body: str, launch: str = "block = 64\n// ptxmm: threads = 'lane 0'") -> dict[str | None, Result]:
    """What both engines say of each claim, by its name."""
    (test,) = launched(TWO + body, OBJECTS, ALL, launch=launch)
    limits, model = Limits(deadline=time.monotonic() + 60), model_named("ptx-8.5")
    found = {c: verdict(test, "ptx-8.5", model, limits, Asked("both"), claim=c) for c in claimed(test)}
    for result in found.values():
        check_alike(result)
    assert set(found) == {BOUNDS, BARRIERS, TRAPS}
    return found


def notes(result: Result) -> list[str]:
    return [note.text for note in result.notes if note.kind in ("undefined", "deadlock")]


@pytest.mark.parametrize(
    ("body", "bounds", "barriers", "traps", "note"),
    [
        ("bar.sync 0;", True, True, True, None),
        ("st.global.u32 [%rd0+12], 1;", True, True, True, None),
        (GIVEN + THERE, False, None, None, "P1 line 22: access outside every object (address"),
        # Where it is may depend on where variables lie, as far as is known.
        (GIVEN + "shr.u32 %r2, %r2, 1;\n" + THERE, None, None, None, None),
        ("@%p0 bar.sync 0;\n@!%p0 bar.sync 1;", True, False, True, "P0:20: @%p0 bar.sync 0: waits for ever"),
        ("@%p0 bar.sync 0, 64;\n@!%p0 bar.sync 0, 32;", None, False, None, ": two different thread counts in"),
        (GIVEN + "setp.eq.u32 %p1, %r2, 4;\n@%p1 trap;", True, True, False, "P1 line 23: traps"),
        (GIVEN + "setp.eq.u32 %p1, %r2, 5;\n@%p1 trap;", True, True, True, None),
        (GIVEN + "setp.eq.u32 %p1, %r2, 4;\n@%p1 bra FAR; ret;\nFAR: trap;", True, True, False, "P1 line 24: traps"),
        # What a thread does after it traps is nothing.
        (GIVEN + "setp.eq.u32 %p1, %r2, 4;\n@%p1 trap;\n" + THERE, None, None, False, "P1 line 23: traps"),
        # Operands that no barrier has.
        (GIVEN + "add.u32 %r2, %r2, 12; bar.sync %r2, 32;", None, False, None, "%r2, 32: barrier 16, but"),
        (GIVEN + "add.u32 %r2, %r2, 32; bar.sync 1, %r2;", None, False, None, ": 36 threads at a barrier, which"),
        # Who has trapped comes to no barrier.
        ("@%p0 bar.sync 1;\n@!%p0 trap;", True, True, False, "P1 line 21: traps"),
    ],
)  # fmt: skip
def test_claims(body: str, bounds: bool | None, barriers: bool | None, traps: bool | None, note: str | None) -> None:
    found = decided(body)
    told = {claim: result.holds for claim, result in found.items()}
    assert told == {BOUNDS: bounds, BARRIERS: barriers, TRAPS: traps}
    assert note is None or any(note in text for result in found.values() for text in notes(result))
    for result in found.values():
        assert result.conclusion == {True: "expected", False: "contradicted", None: "inconclusive"}[result.holds]
        assert result.holds is not False or notes(result)


OPEN = "cvt.rn.f32.u32 %f1, %r1; ex2.approx.f32 %f1, %f1; setp.gt.f32 %p1, %f1, 0f40000000;\n"
"""%p1: a comparison of what is not worked out."""
CHOSEN = OPEN + "selp.u32 %r3, 1, 2, %p1; st.global.f32 [%rd0], %f1; st.global.u32 [%rd0+4], %r3;\n"
"""What is stored is not worked out."""
WAITING = (
    "@!%p0 bra MEET;\nAGAIN: ld.relaxed.gpu.global.f32 %f1, [%rd0]; ex2.approx.f32 %f1, %f1;\n"
    "setp.gt.f32 %p1, %f1, 0f40000000; @%p1 bra AGAIN;\nMEET: bar.sync 0;"
)
"""One warp goes round a loop until that what it reads gives something, and may do so for ever."""
COMPUTING = WAITING.replace("ld.relaxed.gpu.global.f32 %f1, [%rd0]", "mov.f32 %f1, 0f40A00000")


@pytest.mark.parametrize(
    ("body", "bounds", "barriers", "traps", "note"),
    [
        (CHOSEN + "bar.sync 0;", True, True, True, None),
        (OPEN + "@%p1 st.global.u32 [%rd0+4], 1; bar.sync 0;", True, True, True, None),
        (OPEN + "@%p1 st.global.u32 [%rd0+16], 1;", None, None, None, None),
        (OPEN + "@%p1 trap;", True, True, None, None),
        (OPEN + "@%p1 bar.sync 0, 64;", True, None, True, None),
        (WAITING, True, None, True, None),
        (COMPUTING, True, None, True, None),
        (CHOSEN + "st.global.u32 [%rd0+16], 1;", False, None, None, "P0 line 22: access outside"),
        (CHOSEN + "@%p0 trap;", True, True, False, "P0 line 22: traps"),
        (CHOSEN + "@%p0 bar.sync 0;\n@!%p0 bar.sync 1;", True, False, True, "P0:22: @%p0 bar.sync 0: waits for ever"),
        (CHOSEN + "@%p0 bar.sync 0, 64;\n@!%p0 bar.sync 0, 32;", None, False, None, ": two different thread counts in"),
    ],
)  # fmt: skip
def test_what_is_not_worked_out(
    body: str, bounds: bool | None, barriers: bool | None, traps: bool | None, note: str | None
) -> None:
    """Final values are no matter, and branches go either way: what then goes wrong need not."""
    found = decided(body)
    told = {claim: result.holds for claim, result in found.items()}
    assert told == {BOUNDS: bounds, BARRIERS: barriers, TRAPS: traps}
    assert note is None or any(note in text for result in found.values() for text in notes(result))


PASSING = """// ptxmm: grid = 2
// ptxmm: args = ["data", "flag"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: [check]
// ptxmm: traps = "none"
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d, .param .u64 f)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [d]; ld.param.u64 %rd2, [f];
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra READER;
  st.relaxed.gpu.global.u32 [%rd1], 1;
  fence.acq_rel.gpu;
  st.relaxed.gpu.global.u32 [%rd2], 1;
  ret;
READER:
  ld.relaxed.gpu.global.u32 %r2, [%rd2];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 ret;
  fence.acq_rel.gpu;
  ld.relaxed.gpu.global.u32 %r3, [%rd1];
  setp.ne.u32 %p3, %r3, 1;
  @%p3 trap;
  ret;
}
"""


def test_fences_without_which_something_traps() -> None:
    (test,) = parse(PASSING, "k.ptx")
    model = model_named("ptx-8.5")
    found = fences(test, model)
    assert found.holds and {i.line: i.verdict for i in found.items if i.text.startswith("fence")} == {
        19: "needed", 26: "needed",
    }  # fmt: skip
    without = fences(parse(PASSING.replace("  fence.acq_rel.gpu;\n", ""), "k.ptx")[0], model)
    assert (without.holds, without.refuted, without.status) == (False, "traps", "complete") and without.repairs
    assert {i.why for i in found.items if i.verdict == "needed"} == {"traps"}
    assert any(note.text.endswith("line 27: traps") for note in without.notes), without.notes


def test_scopes_with_which_something_traps() -> None:
    (test,) = parse(PASSING, "k.ptx")
    found = scopes(test, model_named("ptx-8.5"))
    narrowest = {item.instruction.line: item.alone for item in found.narrowings}
    assert narrowest == {18: "cta", 19: "gpu", 20: "gpu", 23: "gpu", 26: "gpu", 27: "cta"}


def test_fences_and_scopes_name_the_claim_that_fails() -> None:
    """Where it is what the launch claims; what takes the meaning from a program otherwise is told so."""
    outside = PASSING.replace('traps = "none"', 'bounds = "none outside"').replace(
        "trap;", "st.global.u32 [%rd1+4], 1;"
    )
    wrong = outside.replace("  fence.acq_rel.gpu;\n", "")
    model = model_named("ptx-8.5")
    (test,) = parse(wrong, "k.ptx")
    found, placed = fences(test, model), scopes(test, model)
    assert (found.holds, found.refuted, found.status) == (False, "bounds", "undefined") and found.repairs
    assert {(row.holds, row.refuted) for row in placed.placements if row.impossible is None} == {(False, "bounds")}
    assert placed.finding and [note.text for note in placed.notes] == [
        "the property fails as written: there are no scopes to narrow"
    ]
    needed = {i.line: i.why for i in fences(parse(outside, "k.ptx")[0], model).items if i.verdict == "needed"}
    assert needed[19] == needed[26] == "bounds"
    # Nothing is claimed of accesses here.
    (other,) = parse(wrong.replace('bounds = "none outside"', 'races = "none"'), "k.ptx")
    told = fences(other, model)
    assert (told.holds, told.refuted, told.status) == (None, None, "undefined")


LANES = "mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0; mov.u32 %r2, 0;\n"
SEEN = "{0}ld.relaxed.gpu.global.u32 %r4, [%rd1];\n{0}st.relaxed.gpu.global.u32 [%rd0], %r4;\n"


@pytest.mark.parametrize(
    "body",
    [
        # The other lane ends after a barrier at which the first one stood alone, which has gone on then,
        "@!%p0 bar.sync 0;\nbarrier.sync 0;\n" + SEEN.format(""),
        # or waits,
        "@%p0 bar.sync 0;\n" + SEEN.format("@%p0 ") + "@!%p0 bar.warp.sync 2;\nst.global.u32 [%rd0+4], 1;\n",
        # or has ended itself.
        "@%p0 barrier.sync 2, 32;\n" + SEEN.format("@%p0 ") + "@!%p0 bar.arrive 1, 64;\n" + SEEN.format("@!%p0 "),
    ],
)
def test_a_lane_alone_at_a_barrier_goes_on_in_both_engines_alike(body: str) -> None:
    """An execution up to there is told, which the other side confirms."""
    objects = {"x": "{ type = 'u32', count = 4 }", "y": "'u32'"}
    (test,) = launched(LANES + body, objects, 'barriers = "convergent"', launch="block = 2")
    limits, model = Limits(deadline=time.monotonic() + 60), model_named("ptx-8.5")
    for claim in (BARRIERS, None):
        result = verdict(test, "ptx-8.5", model, limits, Asked("both"), claim=claim)
        assert (result.status, result.execution is not None) == ("undefined", True)
        assert any("that all threads of a warp execute together" in note.text for note in result.notes)


def test_of_two_ways_to_misuse_a_barrier_that_is_confirmed_in_which_the_same_threads_stop() -> None:
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0; setp.gt.u32 %p1, %r1, 31;\n@%p1 bar.arrive 1, 64;\n"
    body += "@!%p0 bar.warp.sync -1;\nst.relaxed.gpu.global.u32 [%rd1], 1;\n@!%p1 bar.sync 1;"
    launch = "block = 64\n// ptxmm: threads = ['warp 0 lane 0-1', 'warp 1 lane 0']"
    (test,) = launched(body, OBJECTS, 'barriers = "convergent"', launch=launch)
    limits, model = Limits(deadline=time.monotonic() + 60), model_named("ptx-8.5")
    result = verdict(test, "ptx-8.5", model, limits, Asked("both"), claim=BARRIERS)
    assert (result.holds, result.status) == (False, "undefined")


def check_misuse(seed: int) -> None:
    """Both engines say the same, and what they find is confirmed."""
    (test,) = parse(kernel(seed), "k.ptx")
    limits, model = Limits(deadline=time.monotonic() + 60), model_named("ptx-8.5")
    result = verdict(test, "ptx-8.5", model, limits, Asked("both"), claim=BARRIERS)
    check_alike(result)
    assert (result.holds is False) is any(note.kind in ("undefined", "deadlock") for note in result.notes)


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_random_misuses(start: int) -> None:
    for seed in range(start, start + 20):
        check_misuse(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 2100, 100))
def test_many_random_misuses(start: int) -> None:
    for seed in range(start, start + 100):
        check_misuse(seed)


def test_a_statement_that_is_not_known_to_hold_does_not() -> None:
    """That threads wait for ever is expected not to be, and not known here: then nothing is said to hold."""
    check = 'condition = "~exists (y == 1)"'
    (test,) = launched(
        TWO + OPEN + "@%p1 bar.sync 0, 64;", OBJECTS, check, launch="block = 64\n// ptxmm: threads = 'lane 0'"
    )
    result = verdict(test, "ptx-8.5", model_named("ptx-8.5"), Limits(), Asked("both"), expectation=HOLDS)
    check_alike(result)
    assert (result.holds, result.conclusion) == (None, "inconclusive")


def test_every_refutation_has_a_line() -> None:
    (text,) = notes(decided("@%p0 bar.sync 0, 64;\n@!%p0 bar.sync 0, 32;")[BARRIERS])
    assert text.startswith(("P0:20: @%p0 bar.sync 0, 64", "P1:21: @!%p0 bar.sync 0, 32"))


@pytest.mark.parametrize("count", [ROUNDS, PREDICATED])
def test_traps_of_waits(count: str) -> None:
    """A wait that gives up traps, unless the launch assumes that none does."""
    for launch, holds in ((LAUNCH, True), (LAUNCH.replace('// ptxmm: assume = ["no-timeout"]\n', ""), None)):
        text = launch.replace("[check]", '[check]\n// ptxmm: traps = "none"') + MODULE.replace("COUNT", count)
        (test,) = parse(text, "k.ptx")
        limits = Limits(deadline=time.monotonic() + 60)
        result = verdict(test, "ptx-8.5", model_named("ptx-8.5"), limits, Asked(), claim=TRAPS)
        assert result.holds is holds
        assert ("assuming no-timeout" in result.test) is (holds is True)


def test_a_bound_is_no_answer() -> None:
    """A loop that may go on longer may come to the trap later."""
    loop = "L: ld.relaxed.gpu.global.u32 %r2, [%rd1]; add.u32 %r3, %r2, 1; st.relaxed.gpu.global.u32 [%rd1], %r3;\n"
    result = decided(loop + "setp.eq.u32 %p1, %r2, 9; @%p1 trap; setp.lt.u32 %p2, %r2, 12; @%p2 bra L;")[TRAPS]
    assert (result.holds, result.conclusion) == (None, "inconclusive")


@pytest.mark.parametrize(
    ("key", "word"), [("bounds", "none outside"), ("barriers", "convergent"), ("traps", "none"), ("races", "none")]
)
def test_what_can_be_claimed(key: str, word: str) -> None:
    (launch,) = parse_launches(f'grid = 2\n[check]\n{key} = "{word}"', "k.toml")
    assert getattr(launch, key) is True
    with pytest.raises(PtxmmError) as raised:
        parse_launches(f'grid = 2\n[check]\n{key} = "all"', "k.toml")
    error = raised.value
    assert (error.message, error.line, error.column) == (f'`{key}` can only be "{word}"', 3, 1)

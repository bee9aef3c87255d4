"""What launches claim besides the condition and freedom from races: ``bounds``, ``barriers`` and ``traps``."""

from __future__ import annotations

import time

import pytest

from ptxmm.analysis.claims import BARRIERS, BOUNDS, TRAPS, claimed
from ptxmm.analysis.result import Result
from ptxmm.analysis.told import Asked, verdict
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.launch import parse_launches
from tests.alike import check_alike
from tests.kernels import launched
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


def test_every_refutation_has_a_line() -> None:
    (text,) = notes(decided("@%p0 bar.sync 0, 64;\n@!%p0 bar.sync 0, 32;")[BARRIERS])
    assert text.startswith(("P0:20: @%p0 bar.sync 0, 64", "P1:21: @!%p0 bar.sync 0, 32"))


@pytest.mark.parametrize("count", [ROUNDS, PREDICATED])
def test_traps_of_waits(count: str) -> None:
    """A wait that gives up traps, unless the launch assumes that none does."""
    from ptxmm.formats import parse

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

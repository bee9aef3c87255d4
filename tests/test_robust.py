"""Robustness against sequential consistency."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ptxmm.analysis.robust import RobustResult, robust
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import read
from ptxmm.program.test import Test
from ptxmm.render.robust import text
from ptxmm.render.style import Style
from tests import random_programs, reference
from tests.reference_dependencies import TooSlow
from tests.reference_expressions import Impossible
from tests.support import ROOT, model_named, parse_one, straight
from tests.tally import Tally

Golden = Callable[[str, str], None]


def found(test: Test, model: str = "ptx-8.5", most: int = 20) -> RobustResult:
    return robust(test, model_named(model), limits=Limits(deadline=time.monotonic() + 30), most=most)


def bundled(name: str) -> Test:
    (test,) = read(ROOT / "litmus" / f"{name}.litmus")
    return test


def sb(fence: str) -> Test:
    return parse_one(
        f"""PTX SB
{{
  .global .u32 x = 0;
  .global .u32 y = 0;
}}
 P0 @ cta 0                        | P1 @ cta 1                        ;
 st.relaxed.gpu.global.u32 [x], 1  | st.relaxed.gpu.global.u32 [y], 1  ;
 {fence}                           | {fence}                           ;
 ld.relaxed.gpu.global.u32 r0, [y] | ld.relaxed.gpu.global.u32 r1, [x] ;
"""
    )


def test_store_buffering() -> None:
    result = found(sb("fence.acq_rel.gpu"))
    assert (result.states, result.reference, result.robust, result.finding) == (4, 3, False, True)
    (extra,) = result.extra
    assert extra.outcome.registers == {"P0:r0": 0, "P1:r1": 0}
    assert extra.outcome.memory == {"x": 1, "y": 1}
    assert extra.execution is not None
    reads = [a for t in extra.execution.threads for s in t.steps for a in s.accesses if a.kind == "R"]
    assert [(a.value, a.sources) for a in reads] == [(0, ("initial",)), (0, ("initial",))]


def test_fences_make_it_robust() -> None:
    result = found(sb("fence.sc.gpu"))
    assert (result.robust, result.finding, result.extra, result.missing) == (True, False, (), ())


def test_every_register_counts() -> None:
    """A state that the condition does not speak of is a difference as well."""
    narrow = parse_one(
        """PTX narrow
{
  .global .u32 x = 0;
  .global .u32 y = 0;
}
 P0 @ cta 0                        | P1 @ cta 1                        ;
 st.relaxed.gpu.global.u32 [x], 1  | st.relaxed.gpu.global.u32 [y], 1  ;
 ld.relaxed.gpu.global.u32 r0, [y] | ld.relaxed.gpu.global.u32 r1, [x] ;
exists (x == 1)
"""
    )
    assert found(narrow).robust is False


def test_sc_is_robust() -> None:
    assert found(sb("fence.acq_rel.gpu"), "sc").robust is True


def test_the_limit_of_executions() -> None:
    result = found(sb("fence.acq_rel.gpu"), most=0)
    assert [extra.execution for extra in result.extra] == [None]


def test_a_loop_that_goes_on_is_not_decided() -> None:
    test = parse_one(
        """PTX loop
{ .global .u32 x = 0; }
P0 @ cta 0 { a: atom.add.relaxed.gpu.global.u32 r0, [x], 1; setp.lt.u32 p, r0, 100; @p bra a; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r0, [x]; }
"""
    )
    result = found(test)
    assert (result.status, result.robust, result.finding) == ("bounded", None, None)


def test_undefined_programs_are_neither() -> None:
    result = found(bundled("bugs/vllm-allreduce-byte-flags-mixed-size-buggy"))
    assert (result.status, result.robust) == ("undefined", None)


def test_the_time_limit() -> None:
    result = robust(sb("fence.sc.gpu"), model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() - 1))
    assert (result.status, result.robust) == ("timeout", None)


def test_what_the_model_does_not_cover() -> None:
    test = bundled("cluster/A30-relaxed-arrive")
    with pytest.raises(PtxmmError) as caught:
        found(test, "ptx-6.0")
    assert caught.value.kind == "unsupported"


def test_unknown_initial_values() -> None:
    test = parse_one(
        """PTX unknown
{ .global .u32 x = 0; .shared .u32 s; }
P0 @ cta 0 { ld.shared.u32 r0, [s]; setp.eq.u32 p, r0, 5; @p st.relaxed.gpu.global.u32 [x], 1; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r0, [x]; }
"""
    )
    assert found(test).robust is True


def compare(seeds: range, tally: Tally) -> None:
    """The further states are those of the reference under the model less those under ``sc``."""
    compared = different = 0
    for seed in seeds:
        text_ = random_programs.program(random.Random(seed), "ptx-8.5").text()
        test = replace(parse_one(text_), condition=None)
        if not straight(test):
            continue
        try:
            weak, strong = (reference.outcomes(test, m, seconds=5) for m in ("ptx-8.5", "sc"))
        except (TooSlow, Impossible):
            continue
        result = found(test)
        if result.status != "complete":
            continue
        counts = result.states, result.reference, len(result.extra)
        assert counts == (len(weak), len(strong), len(weak - strong)), text_
        assert not result.missing
        assert result.robust is ((weak <= strong) if weak else None)
        compared, different = compared + 1, different + (not weak <= strong)
    tally.notes.append(f"robustness of {compared} random programs as in the reference, {different} of them not robust")
    assert compared > len(seeds) // 4


def test_random_programs(tally: Tally) -> None:
    compare(range(40), tally)


@pytest.mark.slow
def test_many_random_programs(tally: Tally, shift: int) -> None:
    compare(range(1000 + shift, 1500 + shift), tally)


def test_golden(golden: Golden) -> None:
    lines = text(found(bundled("sb/ISA-SB-acq_rel")), Style(False))
    golden("robust-sb.txt", "\n".join(line for line in lines if not line.startswith("Time ")) + "\n")


def test_nothing_is_not_robust() -> None:
    """Where the filter lets no final state through there is nothing to compare."""
    source = "PTX none\n{ .global .u32 x = 0; }\nP0 { st.global.u32 [x], 1; }\nfilter (x == 7)\nexists (x == 1)\n"
    result = robust(parse_one(source), model_named("ptx-8.5"))
    assert (result.robust, result.status, result.states) == (None, "inconclusive", 0)
    assert [note.kind for note in result.notes] == ["vacuous"]

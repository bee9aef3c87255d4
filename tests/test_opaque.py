"""Functions whose results are not worked out (``ops.Opaque``, ``mma``): where nothing sees these, all else is the same
whatever functions they are."""

from __future__ import annotations

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.shared.refusals import OPAQUE
from ptxmm.program.shared.unseen import opened
from tests import random_opaque, reference
from tests.reference_dependencies import TooSlow
from tests.reference_expressions import interpretation
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

MODELS = ("ptx-8.5", "ptx-8.5[dep=value]", "ptx-7.5", "ptx-6.0", "sc")
INTERPRETATIONS = 2
ENGINES = ("solve", "enumerate")
ENGINES_OF_CHECK = ("z3", "enumerate", "both")


def compare(seeds: range, seconds: float) -> tuple[int, int]:
    """Compare what is asked for, and the flags, with several interpretations of the functions; how many programs were
    compared, and how many refused."""
    compared = refused = 0
    for seed in seeds:
        text, model = random_opaque.program(seed), MODELS[seed % len(MODELS)]
        about = f"seed {seed}, {model}\n{text}"
        test = parse_one(text)
        what = observed(test)
        answers, messages = [], []
        try:
            for engine in ENGINES:
                try:
                    answers.append(ask(engine, test, model_named(model), seconds=seconds, observed=what))
                except PtxmmError as error:
                    messages.append((error.kind, error.message, error.line))
            if messages:
                assert messages[0][:2] == ("unsupported", OPAQUE), about
                assert messages == messages[:1] * len(ENGINES), about
                refused += 1
                continue
            if not all(answer.complete for answer in answers):
                continue
            for number in range(INTERPRETATIONS):
                token = interpretation.set(number)
                try:
                    found = frozenset(reference.outcomes(test, model, what, seconds=seconds))
                    _, flags = reference.flagged(test, model, seconds=seconds)
                finally:
                    interpretation.reset(token)
                for answer in answers:
                    assert answer.states == found, about
                    assert answer.flags == flags, about
        except (TooSlow, Timeout):
            continue
        compared += 1
    return compared, refused


def test_random_programs(tally: Tally) -> None:
    compared, refused = compare(range(100), 1)
    tally.notes.append(f"functions that are not worked out: {compared} programs, {refused} refused")
    assert compared > 50
    assert refused > 5


@pytest.mark.slow
def test_many_random_programs(shift: int) -> None:
    compared, refused = compare(range(10_000 + shift, 11_000 + shift), 4)
    assert compared > 500
    assert refused > 60


MP = """PTX mp
{{ .global .f32 d = 0.0; .global .u32 f = 0; .global .u32 e = 0; }}
 P0 @ cta 0 | P1 @ cta 1 ;
 ld.global.f32 r0, [d] | ld.acquire.gpu.global.u32 r0, [f] ;
 ex2.approx.f32 r1, r0 | ld.global.f32 r1, [d] ;
 st.global.f32 [d], r1 | lg2.approx.f32 r2, r1 ;
 {} | {} ;
exists ({})
"""
RELEASE, WEAK = "st.release.gpu.global.u32 [f], 1", "st.relaxed.gpu.global.u32 [f], 1"


@pytest.mark.parametrize("engine", ENGINES_OF_CHECK)
@pytest.mark.parametrize("store", [RELEASE, WEAK])
def test_what_does_not_depend_on_a_result_is_decided(engine: str, store: str) -> None:
    test = parse_one(MP.format(store, "mov.u32 r3, 1", "P1:r0 == 1"))
    result = check(test, model_named("ptx-8.5"), engine=engine)
    assert result.holds
    assert result.flags == ("data-race",)


def test_a_race_is_shown_without_its_values() -> None:
    test = parse_one(MP.format(WEAK, "mov.u32 r3, 1", "P1:r0 == 1"))
    found = races(test, model_named("ptx-8.5"))
    assert found.races
    steps = [step for race in found.races for thread in race.execution.threads for step in thread.steps]
    values = {(access.kind, access.location): access.value for step in steps for access in step.accesses}
    assert values["W", "d"] == "?"
    assert values["W", "f"] == 1
    assert opened(test) == (frozenset({0, 2}), frozenset({1}))


SEEN = [
    ("mov.u32 r3, r2", "P1:r3 == 1"),
    ("st.global.f32 [d], r2", "d == 1"),
    ("mov.b32 r4, r2; bar.sync r4", "P1:r0 == 1"),
    ("mov.b32 r4, r2; cvt.u64.u32 a, r4; ld.global.u32 r5, [a]", "P1:r0 == 1"),
]


@pytest.mark.parametrize("rest,condition", SEEN, ids=[rest for rest, _ in SEEN])
def test_what_depends_on_a_result_is_refused_by_both_engines(rest: str, condition: str) -> None:
    """A final value, a barrier, an address."""
    body = MP.replace(" {} | {} ;\n", "").format(condition)
    lines = rest.split("; ")
    first = [RELEASE, *[""] * len(lines)]
    body = body.replace("exists", "".join(f" {a} | {b} ;\n" for a, b in zip(first, lines, strict=False)) + "exists")
    test = parse_one(body)
    for engine in ("z3", "enumerate"):
        with pytest.raises(PtxmmError) as caught:
            check(test, model_named("ptx-8.5"), engine=engine)
        assert (caught.value.kind, caught.value.message) == ("unsupported", OPAQUE)
        assert caught.value.line is not None


UNINITIALISED = """PTX u
{ .shared .u32 u; .global .f32 d = 1.0; }
P0 @ cta 0 {
  ld.global.f32 r8, [d];
  ex2.approx.f32 r9, r8;
  st.global.f32 [d], r9;
  ld.shared.u32 r0, [u];
  add.u32 r1, r0, 1;
}
exists (P0:r1 == 2)
"""


def test_unknown_memory_that_is_asked_for_stays_unknown() -> None:
    result = check(parse_one(UNINITIALISED), model_named("ptx-8.5"))
    assert (result.holds, result.status) == (True, "bounded")


GUARDED = """PTX g
{ .global .u32 f = 0; .global .f32 d = 0.0; }
P0 @ cta 0, warp 0 {
  ld.global.f32 r0, [d];
  ex2.approx.f32 r1, r0;
  setp.gt.f32 p, r1, 0f3F800000;
  mov.b32 a0, 0;
  @p MMA;
  st.global.u32 [f], 1;
}
P1 @ cta 0, warp 0 {
  mov.f32 r0, 0f00000000;
  mov.b32 a0, 0;
  MMA;
}
exists (f == 1)
"""
MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {c0, c1, c2, c3}, {a0, a0}, {a0}, {r0, r0, r0, r0}"


@pytest.mark.parametrize("engine", ENGINES_OF_CHECK)
def test_whether_an_instruction_of_a_warp_is_executed_is_seen(engine: str) -> None:
    result = check(parse_one(GUARDED.replace("MMA", MMA)), model_named("ptx-8.5"), engine=engine)
    assert (result.holds, result.status) == (None, "inconclusive")


MAPPED = """PTX t
ISA=8.6
{{
  .global .align 128 .u32 g1[4] = {{1, 1, 1, 1}};
  .global .align 128 .u32 g2[4] = {{2, 2, 2, 2}};
  .global .align 128 .b8 tm[128] = tensormap(g1, u32, 4);
  .shared .align 128 .u32 s[4] @ cta 0 = {{0}};
  .shared .b64 b @ cta 0 = mbarrier(1);
  .global .align 128 .b8 new[128] = tensormap(g2, u32, 4);
  .global .f32 d = 1.0;
}}
P0 @ cta 0 {{
  ld.global.f32 x, [d];
  ex2.approx.f32 x, x;
  st.global.f32 [g2], x;
  {}
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [tm, {{0}}], [b];
  mbarrier.arrive.expect_tx.shared.b64 t, [b], 16;
  wait: mbarrier.try_wait.shared.b64 p, [b], t;
  @!p bra wait;
  ld.shared.u32 r0, [s];
}}
exists (P0:r0 == 0)
"""


def test_a_tensor_map_that_is_written_may_be_of_any_tensor() -> None:
    check(parse_one(MAPPED.format("")), model_named("ptx-8.5"))
    with pytest.raises(PtxmmError) as caught:
        check(parse_one(MAPPED.format("st.global.u64 [tm], 1;")), model_named("ptx-8.5"))
    assert caught.value.message == OPAQUE


PARTS = """PTX c
{ .global .align 16 .u32 src[4] = {1, 2, 3, 4}; .shared .align 16 .u32 dst[4] @ cta 0 = {0}; .global .f32 d = 1.0; }
P0 @ cta 0 {
  ld.global.f32 r0, [d];
  ex2.approx.f32 r1, r0;
  add.f32 r1, r1, 0f3F800000;
  st.global.f32 [src+4], r1;
  ld.global.u32 r2, [src];
  cp.async.ca.shared.global [dst], [src+4], 4;
  cp.async.wait_all;
}
exists (P0:r2 == 1)
"""


@pytest.mark.parametrize("engine", ENGINES_OF_CHECK)
def test_copies_of_parts_that_nothing_sees(engine: str) -> None:
    assert check(parse_one(PARTS), model_named("ptx-8.5"), engine=engine).holds

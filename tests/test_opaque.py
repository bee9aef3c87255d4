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
def test_many_random_programs() -> None:
    compared, refused = compare(range(10_000, 13_000), 4)
    assert compared > 1_500
    assert refused > 200


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


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
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
    ("cvt.rzi.u32.f32 r4, r2; @p st.global.u32 [e], 1; setp.eq.u32 p, r4, 0", "e == 1"),
    ("setp.lt.f32 p, r2, 0f00000000; @p st.global.u32 [e], 1", "e == 1"),
    ("setp.lt.f32 p, r2, 0f00000000; @p bra done; st.global.u32 [e], 1; done: mov.u32 r5, 1", "P1:r5 == 1"),
    ("mov.b32 r4, r2; bar.sync r4", "P1:r0 == 1"),
    ("mov.b32 r4, r2; cvt.u64.u32 a, r4; ld.global.u32 r5, [a]", "P1:r0 == 1"),
]


@pytest.mark.parametrize("rest,condition", SEEN, ids=[rest for rest, _ in SEEN])
def test_what_depends_on_a_result_is_refused_by_both_engines(rest: str, condition: str) -> None:
    """A final value, a store that may not happen, a branch, a barrier, an address."""
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

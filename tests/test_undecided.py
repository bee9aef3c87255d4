"""Branches and guards that results decide which are not worked out: either way is tried each time. What is said of all
executions then is true whatever functions they are; what would need one of them to exist is left open."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ptxmm.analysis.expectation import Expectation
from ptxmm.analysis.observe import observed
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.progress import progress
from ptxmm.analysis.property import judge, requirement
from ptxmm.analysis.races import races
from ptxmm.analysis.robust import robust
from ptxmm.analysis.scopes import scopes
from ptxmm.analysis.words import Conclusion, Property
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import State, evaluate
from ptxmm.program.shared.refusals import OPAQUE
from ptxmm.program.unspecified.undecided import either_way
from tests import random_opaque, reference
from tests.reference_dependencies import TooSlow
from tests.reference_expressions import interpretation
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

MODELS = ("ptx-8.5", "ptx-8.5[dep=value]", "ptx-7.5", "ptx-8.5[dep=syn]", "ptx-6.0", "sc")
INTERPRETATIONS = 3


def compare(seeds: range, seconds: float) -> tuple[int, int]:
    """Compare with several interpretations of the functions: how many programs, and in how many of them an execution
    that is found may be none."""
    compared = telling = 0
    for seed in seeds:
        text, model = random_opaque.forking(seed), MODELS[seed % len(MODELS)]
        about = f"seed {seed}, {model}\n{text}"
        test = parse_one(text)
        what = observed(test)
        either = either_way(test, (*what.registers, *what.memory))
        try:
            answers = [ask(e, either.test, model_named(model), seconds=seconds, observed=what) for e in ENGINES]
            if not all(answer.complete for answer in answers):
                continue
            assert answers[0].states == answers[1].states, about
            assert answers[0].flags == answers[1].flags, about
            result = check(test, model_named(model))
            condition = test.condition
            assert condition is not None
            for number in range(INTERPRETATIONS):
                token = interpretation.set(number)
                try:
                    found = frozenset(reference.outcomes(test, model, what, seconds=seconds))
                    _, flags = reference.flagged(test, model, seconds=seconds)
                finally:
                    interpretation.reset(token)
                if either.telling:
                    assert found <= answers[0].states, about
                    assert flags <= answers[0].flags, about
                    assert not result.flags or result.flags == ("vacuous",), about
                    if found and result.holds is not None:
                        holds = any(evaluate(condition.proposition, _state(what, final)) for final in found)
                        assert holds == result.holds, about
                elif not answers[0].bounded:
                    assert found == answers[0].states, about
                    assert flags == answers[0].flags, about
        except (TooSlow, Timeout):
            continue
        except PtxmmError as error:  # what is stored to a flag is not worked out
            assert error.message == OPAQUE, about
            continue
        compared += 1
        telling += bool(either.telling)
    return compared, telling


ENGINES = ("solve", "enumerate")


def _state(what: Observed, final: reference.Final) -> State:
    registers = {(term.thread, term.register): value for term, value in zip(what.registers, final, strict=False)}
    memory = zip(what.memory, final[len(registers) :], strict=True)
    return State(registers, {(term.key, term.index): value for term, value in memory})


def test_random_programs(tally: Tally) -> None:
    compared, telling = compare(range(60), 1)
    tally.notes.append(f"undecided branches: {compared} programs, {telling} of which may have fewer executions")
    assert compared > 30
    assert 10 < telling < compared - 5


@pytest.mark.slow
def test_many_random_programs(shift: int) -> None:
    compared, telling = compare(range(10_000 + shift, 10_600 + shift), 4)
    assert compared > 300
    assert telling > 90


PROGRAM = """PTX u
{{ .global .f32 d = 1.0; .global .u32 f = 0; .global .u32 e = 0; .shared .u32 s @ cta 0 = 0; }}
P0 @ cta 0 {{
  ld.global.f32 r0, [d];
  ex2.approx.f32 r1, r0;
  setp.lt.f32 p, r1, 0f3F800000;
  {}
  st.global.f32 [d], r1;
}}
P1 @ cta 0 {{
  {}
}}
{}
"""
GUARDED, AROUND = "@p st.relaxed.gpu.global.u32 [f], 1;", "@p bra L; neg.f32 r1, r1; ex2.approx.f32 r1, r1; L:"
WEAK = "@p st.global.u32 [e], 1;"

DECIDED = [
    (GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 1)", None),
    (GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "~exists (P1:r0 == 1)", None),
    (GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "forall (P1:r0 == 0)", None),
    (GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "forall (P1:r0 == 0 \\/ P1:r0 == 1)", True),
    (GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 2)", False),
    (GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 <= 1)", None),
    (AROUND, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 0)", True),
    (AROUND, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 1)", False),
    ("@p bra L; bar.sync 0; L:", "bar.sync 0; mov.u32 r0, 1;", "forall (P1:r0 == 1)", True),
    ("@p exit;", "ld.relaxed.gpu.global.u32 r0, [f];", "forall (P1:r0 == 0)", True),
]


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
@pytest.mark.parametrize("first,second,condition,holds", DECIDED)
def test_only_what_holds_of_all_is_said(
    first: str, second: str, condition: str, holds: bool | None, engine: str
) -> None:
    test = parse_one(PROGRAM.format(first, second, condition))
    result = check(test, model_named("ptx-8.5"), engine=engine)
    assert (result.holds, result.flags) == (holds, ())
    assert result.status == ("complete" if holds is not None else "inconclusive")
    assert (first == AROUND) is not any("line 6" in n.text and n.kind == "open" for n in result.notes)


@pytest.mark.parametrize("word", ["never", "sometimes", "always", "undefined", "none"])
def test_an_expectation_is_not_contradicted_by_what_may_not_be(word: str) -> None:
    text = PROGRAM.format(GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 1)")
    result = check(parse_one(text), model_named("ptx-8.5"), expectation=Expectation(word, None))
    assert result.conclusion == Conclusion.inconclusive


def test_a_deadlock_that_may_not_be_is_not_said() -> None:
    test = parse_one(PROGRAM.format("@p bra L; bar.sync 1, 64; L:", "mov.u32 r0, 1;", "forall (P1:r0 == 1)"))
    result = check(test, model_named("ptx-8.5"), engine="both")
    assert (result.flags, result.conclusion, result.status) == ((), "inconclusive", "inconclusive")


GUARDED_COMPARISON = """setp.ne.u32 p, 1, 1;
  ld.relaxed.gpu.global.u32 r2, [f];
  setp.eq.u32 q, r2, 1;
  @q setp.lt.f32 p, r1, 0f3F800000;
  @p st.relaxed.gpu.global.u32 [e], 1;"""


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
def test_whether_a_comparison_is_made_is_seen(engine: str) -> None:
    """Without it the predicate is what it was: what the guard is made of decides that."""
    test = parse_one(PROGRAM.format(GUARDED_COMPARISON, "st.relaxed.gpu.global.u32 [f], 1;", "exists (e == 1)"))
    result = check(test, model_named("ptx-8.5"), engine=engine)
    assert result.holds is None
    assert {state.memory["e"] for state in result.outcomes} == {0, 1}


ON_TWO_PATHS = """@p bra L;
  bra M;
  L: @!p exit;
  M: setp.lt.f32 p, r1, 0f40400000;
  @p st.relaxed.gpu.global.u32 [f], 1;"""


@pytest.mark.parametrize("model", ["ptx-8.5", "ptx-8.5[dep=syn]"])
@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
def test_a_comparison_that_several_paths_come_to(engine: str, model: str) -> None:
    test = parse_one(PROGRAM.format(ON_TWO_PATHS, "mov.u32 r0, 1;", "exists (f == 1)"))
    result = check(test, model_named(model), engine=engine)
    assert {state.memory["f"] for state in result.outcomes} == {0, 1}
    assert result.holds is None


BUFFERING = """PTX u
{{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 d = 0; }}
P0 @ cta 0 {{
  ld.relaxed.gpu.global.u32 r0, [x];
  ld.relaxed.gpu.global.u32 r1, [d];
  {}
}}
P1 @ cta 1 {{
  ld.relaxed.gpu.global.u32 r0, [y];
  st.relaxed.gpu.global.u32 [x], r0;
}}
exists (P0:r0 == 1 /\\ P1:r0 == 1)
"""
STORED = "st.relaxed.gpu.global.u32 [y], 1;"
OPPOSITE = f"@p {STORED} @q {STORED}"
INDEPENDENT = [
    f"ex2.approx.f32 c, r0; setp.eq.u32 p, c, c; @p {STORED}",
    f"ex2.approx.f32 c, r0; setp.lt.f32 p|q, c, 0f3F800000; {OPPOSITE}",
    f"ex2.approx.f32 c, r0; setp.lt.u32 p, c, 7; setp.ge.u32 q, c, 7; {OPPOSITE}",
    f"ex2.approx.f32 c, r0; setp.lt.u32 p, c, 7; setp.lt.u32 q, c, 7; xor.pred p, p, q; @!p {STORED}",
    f"setp.ne.u32 q, 1, 1; ex2.approx.f32 c, r0; setp.lt.and.f32 p, c, 0f3F800000, q; @!p {STORED}",
    f"ex2.approx.f32 c, r1; setp.lt.u32 p, c, 7; setp.eq.u32 q, r0, 1; @q setp.lt.u32 p, c, 7; @p {STORED}",
]


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
@pytest.mark.parametrize("body", INDEPENDENT)
def test_what_holds_rests_on_no_dependency_that_need_not_be(body: str, engine: str) -> None:
    """The same with a function that is worked out: the store depends on no read, so that both may read 1."""
    plain = body.replace("ex2.approx.f32 c, r0", "xor.b32 c, r0, 3").replace("ex2.approx.f32 c, r1", "xor.b32 c, r1, 3")
    plain = plain.replace("setp.lt.f32 p|q, c, 0f3F800000", "setp.lt.u32 p|q, c, 7")
    assert check(parse_one(BUFFERING.format(plain)), model_named("ptx-8.5"), engine=engine).holds
    assert check(parse_one(BUFFERING.format(body)), model_named("ptx-8.5"), engine=engine).holds is None


ENTANGLED = [
    "ex2.approx.f32 c, r1; setp.lt.u32 p, c, 7; setp.lt.u32 q, c, 7; selp.u32 v, r0, 0, p; selp.u32 w, r0, 0, q; "
    "sub.u32 v, v, w; add.u32 v, v, 1; st.relaxed.gpu.global.u32 [y], v;",
    "ex2.approx.f32 c, r1; setp.lt.f32 p, c, 0f00000000; selp.u32 v, r0, 1, p; st.relaxed.gpu.global.u32 [y], v;",
    "mov.u32 v, 1; ex2.approx.f32 c, r1; setp.lt.f32 p, c, 0f00000000; @p mov.u32 v, r0; "
    "st.relaxed.gpu.global.u32 [y], v;",
    f"ex2.approx.f32 c, r1; setp.lt.f32 p, c, 0f00000000; setp.eq.u32 q, r0, 1; and.pred p, p, q; @!p {STORED}",
]


@pytest.mark.parametrize("engine", ["z3", "enumerate", "both"])
@pytest.mark.parametrize("body", ENTANGLED)
def test_nothing_is_said_where_it_is_open_what_depends_on_what(body: str, engine: str) -> None:
    """With 2 to the power of it in its place the stored value does not depend on x: a power of 2 is never negative, and
    equal comparisons agree. Where nobody writes x, the value is of no matter."""
    test = parse_one(BUFFERING.format(body))
    found = check(test, model_named("ptx-8.5"), engine=engine)
    assert (found.holds, found.observation, found.conclusion) == (None, None, "inconclusive")
    alone = BUFFERING.format(body).replace("st.relaxed.gpu.global.u32 [x], r0;", "").replace("P0:r0 == 1", "P0:r0 == 9")
    assert check(parse_one(alone), model_named("ptx-8.5"), engine=engine).holds is False


@pytest.mark.parametrize("body", ENTANGLED[:3])
def test_nor_is_anything_said_of_races_then(body: str) -> None:
    assert races(parse_one(BUFFERING.format(body)), model_named("ptx-8.5")).race_free is None


@pytest.mark.parametrize("condition", ["forall (P1:r0 <= 1)", "exists (P1:r0 == 2)"])
def test_a_race_that_may_not_be_leaves_nothing_else_open(condition: str) -> None:
    test = parse_one(PROGRAM.format(WEAK, "ld.global.u32 r0, [e];", condition))
    result = check(test, model_named("ptx-8.5"), engine="both")
    assert (result.holds, result.flags, result.status) == (condition.startswith("forall"), (), "complete")
    result = check(test, model_named("ptx-8.5"), expectation=Expectation("holds", False))
    assert result.conclusion == ("expected" if condition.startswith("forall") else "contradicted")


def test_a_race_that_may_not_be_is_no_finding() -> None:
    test = parse_one(PROGRAM.format(WEAK, "ld.global.u32 r0, [e];", "exists (P1:r0 == 2)"))
    required = requirement(test, model_named("ptx-8.5"), Property.races, Limits())
    condition = test.condition
    assert condition is not None
    judged = judge(test, model_named("ptx-8.5"), replace(required, bad=condition.proposition), Limits())
    assert judged.holds is None


RACES = [
    (WEAK, "ld.global.u32 r0, [e];", None),
    (WEAK, "ld.global.u32 r0, [f];", True),
    (AROUND, "ld.global.u32 r0, [d];", False),
    (AROUND, "ld.global.u32 r0, [e];", True),
    ("@p bra L; bar.sync 0; L: bar.sync 0;", "bar.sync 0; ld.global.u32 r0, [e];", True),
    ("@p bra L; bar.sync 0, 32; L:", "bar.sync 0, 64; ld.global.u32 r0, [e];", None),
]


@pytest.mark.parametrize("first,second,free", RACES)
def test_races(first: str, second: str, free: bool | None) -> None:
    test = parse_one(PROGRAM.format(first, second, "exists (f == 0)"))
    found = races(test, model_named("ptx-8.5"))
    assert (found.race_free, bool(found.races)) == (free, free is False)
    assert found.status == ("inconclusive" if free is None else "complete")


def test_each_round_of_a_loop_may_go_another_way() -> None:
    body = """mov.u32 i, 0;
  L: ex2.approx.f32 r1, r1;
  setp.lt.f32 p, r1, 0f3F800000;
  @p red.relaxed.gpu.global.add.u32 [f], 1;
  add.u32 i, i, 1;
  setp.lt.u32 q, i, 3;
  @q bra L;"""
    for count, holds in (("f == 0", None), ("f == 3", None), ("f == 4", False)):
        test = parse_one(PROGRAM.format(body, "mov.u32 r0, 1;", f"exists ({count})"))
        assert check(test, model_named("ptx-8.5"), engine="both").holds is holds
    states = check(test, model_named("ptx-8.5"), engine="both").outcomes
    assert {state.memory["f"] for state in states} == {0, 1, 2, 3}


@pytest.mark.parametrize("analysis", [robust, progress])
def test_other_questions_are_refused(analysis: Callable[..., object]) -> None:
    test = parse_one(PROGRAM.format(GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 1)"))
    with pytest.raises(PtxmmError) as caught:
        analysis(test, model_named("ptx-8.5"))
    assert caught.value.message == OPAQUE


def test_scopes_say_what_is_open() -> None:
    test = parse_one(PROGRAM.format(GUARDED, "ld.relaxed.gpu.global.u32 r0, [f];", "exists (P1:r0 == 1)"))
    found = scopes(test, model_named("ptx-8.5"))
    assert {row.status for row in found.placements if row.impossible is None} == {"inconclusive"}
    assert [(item.kind, "line 6" in item.text) for item in found.notes] == [("open", True)]


ADDRESSED = ["mov.b32 r4, r1; cvt.u64.u32 a, r4; ld.global.u32 r5, [a];", "mov.b32 r4, r1; bar.sync r4;"]


@pytest.mark.parametrize("body", ADDRESSED)
@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_addresses_and_barriers_are_refused(body: str, engine: str) -> None:
    test = parse_one(PROGRAM.format(body, "mov.u32 r0, 1;", "exists (f == 0)"))
    with pytest.raises(PtxmmError) as caught:
        check(test, model_named("ptx-8.5"), engine=engine)
    assert caught.value.message == OPAQUE

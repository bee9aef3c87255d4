"""Races of writes of the same value, which a launch or a line of the source may allow (``program.same_value``)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from ptxmm.analysis.claims import RACES
from ptxmm.analysis.races import confirm_races, races
from ptxmm.analysis.result import Result
from ptxmm.analysis.told import Asked, verdict
from ptxmm.cat import parse_model
from ptxmm.cli.app import run
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.modules.allowances import allowances
from ptxmm.program.same_value import with_same_value
from ptxmm.program.test import Test
from tests.alike import check_alike
from tests.kernels import launched
from tests.mutants import mutants
from tests.mutants_exempt import KERNELS, exempt
from tests.support import ROOT, model_named, parse_one

ASSUME = 'assume = ["same-value-races"]'
OBJECTS = {"x": "{ type = 'u32', count = 4 }", "y": "{ type = 'u32', count = 2, init = [5, 5] }", "f": "'u32'"}
ONE = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1;\n"
"""The CTAs: %p0 in CTA 0, %p1 in CTA 1."""
OWN = ONE + "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; ld.global.u32 %r2, [%rd4];\n"
"""Each CTA reads its element of y into %r2."""
BOTH = "st.global.u32 [%rd0], {};"
MAYBE = "@%p0 ld.relaxed.gpu.global.u32 %r2, [%rd2]; @%p1 st.relaxed.gpu.global.u32 [%rd2], 1;"
"""CTA 0 reads 0 or 1 into %r2."""


def decided(body: str, launch: str = ASSUME) -> Result:
    """The verdict on freedom from races of two CTAs with ``body``."""
    made = launched(body, OBJECTS, 'races = "none"', launch=f"grid = 2\n// ptxmm: {launch}")
    (found,) = verdicts(made)
    return found


def verdicts(tests: Iterable[Test]) -> list[Result]:
    """What is told of freedom from races, by both engines."""
    limits, model = Limits(deadline=time.monotonic() + 60), model_named("ptx-8.5")
    found = [verdict(test, "ptx-8.5", model, limits, Asked("both"), claim=RACES) for test in tests]
    for result in found:
        check_alike(result)
    return found


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        (BOTH.format(7), True),
        (ONE + "@%p0 st.global.u32 [%rd0], 7; @%p1 st.global.u32 [%rd0], 8;", False),
        (ONE + "@%p0 st.global.u32 [%rd0], 7; @%p1 st.relaxed.cta.global.u32 [%rd0], 7;", True),
        (OWN + BOTH.format("%r2"), True),
        (OWN + "add.u32 %r2, %r2, %r1; " + BOTH.format("%r2"), False),
        # Another execution has other values.
        (ONE + "mov.u32 %r2, 1; " + MAYBE + BOTH.format("%r2"), False),
        (ONE + "mov.u32 %r2, 1; " + MAYBE + "and.b32 %r2, %r2, 2;" + BOTH.format("%r2"), True),
        (ONE + MAYBE + "@%p0 sub.u32 %r2, %r2, %r2; @%p1 mov.u32 %r2, 0;" + BOTH.format("%r2"), True),
        # Only while they race.
        (
            ONE
            + "@%p0 st.global.u32 [%rd0], 7; @%p0 st.release.gpu.global.u32 [%rd2], 1;"
            + "@%p1 ld.acquire.gpu.global.u32 %r2, [%rd2]; setp.ne.u32 %p2, %r2, 0; setp.eq.and.u32 %p3, %r1, 1, %p2;"
            + "@%p3 st.global.u32 [%rd0], 8;",
            True,
        ),
        # Reads race whatever they read, and atomics read.
        (ONE + "@%p0 st.global.u32 [%rd0], 0; @%p1 ld.global.u32 %r2, [%rd0]; st.global.u32 [%rd2], 3;", False),
        (ONE + "@%p0 st.global.u32 [%rd0], 1; @%p1 atom.relaxed.gpu.global.or.b32 %r2, [%rd0], 1;", False),
        # Elements of a vector are writes of their own.
        (ONE + "@%p0 st.global.v2.u32 [%rd0], {1, 2}; @%p1 st.global.v2.u32 [%rd0], {1, 2};", True),
        (ONE + "@%p0 st.global.v2.u32 [%rd0], {1, 2}; @%p1 st.global.u32 [%rd0+4], 2;", True),
        (ONE + "@%p0 st.global.v2.u32 [%rd0], {1, 2}; @%p1 st.global.v2.u32 [%rd0], {1, 3};", False),
    ],
)  # fmt: skip
def test_what_may_race(body: str, holds: bool | None) -> None:
    result = decided(body)
    assert (result.holds, result.test) == (holds, "k (assuming same-value-races)")


def test_without_it_in_the_model_they_race() -> None:
    (mutant,) = [m for m in mutants("ptx-8.5") if exempt(m) == KERNELS and m.part == "race"]
    (test,) = launched(BOTH.format(7), OBJECTS, 'races = "none"', launch=f"grid = 2\n// ptxmm: {ASSUME}")
    found = races(test, mutant.load(), limits=Limits())
    assert (mutant.name, found.race_free) == ("race without same-value", False)


@pytest.mark.parametrize("body", [BOTH.format(7), OWN + BOTH.format("%r2")])
def test_without_it_they_race(body: str) -> None:
    result = decided(body, launch="")
    assert (result.holds, result.test) == (False, "k")
    assert any(note.text.startswith("rests on same-value-races") for note in result.notes)


def test_it_is_no_help_where_values_differ() -> None:
    result = decided(OWN + "add.u32 %r2, %r2, %r1; " + BOTH.format("%r2"), launch="")
    assert not any("same-value-races" in note.text for note in result.notes)


def test_partial_overlap_is_no_race_of_the_same_value() -> None:
    result = decided(ONE + "@%p0 st.global.u32 [%rd0], 0; @%p1 st.global.u16 [%rd0], %rs1;")
    assert (result.holds, result.status) == (None, "undefined") or result.holds is False


SHARED = ".shared .align 16 .b8 s[64];\n"


@pytest.mark.parametrize(("other", "holds"), [(0, True), (4, False)])
def test_unknown_values_are_the_same_in_one_place_only(other: int, holds: bool) -> None:
    """Two threads store what shared memory holds that nobody wrote."""
    body = (
        "mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0; ld.shared.u32 %r2, [s];"
        f"@!%p0 ld.shared.u32 %r2, [s+{other}]; st.global.u32 [%rd0], %r2;"
    )
    launch = f"block = 64\n// ptxmm: threads = 'lane 0'\n// ptxmm: {ASSUME}"
    (found,) = verdicts(launched(body, OBJECTS, 'races = "none"', launch=launch, before=SHARED))
    assert found.holds is holds


@pytest.mark.parametrize(("other", "holds"), [(0, True), (16, False)])
def test_nor_if_copies_move_them(other: int, holds: bool) -> None:
    """No register ever has a byte of it, and who is last overwrites it."""
    body = (
        "mov.u32 %r1, %tid.x; setp.eq.u32 %p0, %r1, 0;\n"
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 16;\n"
        f"@!%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s+{other}], 16;\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
    launch = f"block = 64\n// ptxmm: threads = 'lane 0'\n// ptxmm: {ASSUME}"
    (found,) = verdicts(launched(body, OBJECTS, 'races = "none"', launch=launch, before=SHARED))
    assert found.holds is (holds or False)


def test_results_that_are_not_worked_out_are_left_open() -> None:
    body = OWN + "mov.b32 %f1, %r2; ex2.approx.f32 %f1, %f1; mov.b32 %r2, %f1; " + BOTH.format("%r2")
    result = decided(body)
    assert (result.holds, result.conclusion, result.status) == (None, "inconclusive", "inconclusive")
    assert any(
        "results that are not worked out decide whether they write the same value" in n.text for n in result.notes
    )


HOST = f"grid = 2\n// ptxmm: {ASSUME}"


@pytest.mark.parametrize(
    ("body", "host", "holds"),
    [
        ("mov.u32 %r2, 7;", 7, True),
        ("mov.u32 %r2, 7;", 8, False),
        ("cvt.rn.f32.u32 %f1, %r1; ex2.approx.f32 %f1, %f1; mov.b32 %r2, %f1;", 7, None),
    ],
)
def test_threads_of_the_host(body: str, host: int, holds: bool | None) -> None:
    thread = f'[host]\n// ptxmm: H0 = "st.u32 [x], {host};"'
    made = launched(
        ONE + body + "@%p0 st.global.u32 [%rd0], %r2;", OBJECTS, 'races = "none"', launch=HOST, others=thread
    )
    (found,) = verdicts(made)
    assert found.holds is holds


# -- at a line -----------------------------------------------------------------------------------------------------

ALLOW = '// ptxmm: allow(race: same-value, "both know it")'
LINES = f"""// ptxmm: grid = 2
// ptxmm: args = ["x"]
// ptxmm: [objects]
// ptxmm: x = "u32"
// ptxmm: [check]
// ptxmm: races = "none"
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d)
{{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [d];
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra OTHER;
  st.global.u32 [%rd1], 1; {ALLOW}
  ret;
OTHER:
  {ALLOW}

  st.global.u32 [%rd1], 1;
  ret;
}}
"""


def at_lines(text: str) -> Result:
    (found,) = verdicts(parse(text, "k.ptx"))
    return found


def told(result: Result) -> list[str]:
    return [note.text for note in result.notes if note.kind == "kernel"]


def test_lines_that_are_allowed() -> None:
    result = at_lines(LINES)
    assert (result.holds, result.test) == (True, "k")
    assert told(result) == [
        f"line {line}: writes of the same value race, which is allowed: both know it" for line in (19, 24)
    ]


def test_both_sides_have_to_be_allowed() -> None:
    result = at_lines(LINES.replace(f"1; {ALLOW}", "1;"))
    assert result.holds is False
    assert result.notes[0].text.startswith("line 24") or any(note.text.startswith("data race") for note in result.notes)


def test_other_values_race_all_the_same() -> None:
    result = at_lines(LINES.replace("1;\n  ret;\n}", "2;\n  ret;\n}"))
    assert (result.holds, told(result)) == (False, [])


def test_what_allows_nothing_is_told() -> None:
    result = at_lines(LINES.replace(f"1; {ALLOW}", "1;").replace("ret;\nOTHER", f"ret; {ALLOW}\nOTHER"))
    assert "line 20: no thread writes here, so that nothing is allowed: both know it" in told(result)
    apart = LINES.replace("  @%p1 bra OTHER;", "  @%p1 add.u64 %rd1, %rd1, 4;\n  @%p1 bra OTHER;").replace(
        'x = "u32"', 'x = { type = "u32", count = 2 }'
    )
    result = at_lines(apart)
    assert result.holds
    assert told(result) == [f"line {line}: no writes of the same value race here: both know it" for line in (20, 25)]


@pytest.mark.parametrize(
    ("comment", "width"),
    [
        ("allow", 5),
        ("allow(race)", 11),
        ("allow(race: same-value)", 23),
        ('allow(race: same-value, "")', 27),
        ('allow(race: any, "why")', 23),
        ('allow(deadlock: same-value, "why")', 34),
    ],
)
def test_what_is_no_allowance(comment: str, width: int) -> None:
    with pytest.raises(PtxmmError) as raised:
        parse(LINES.replace(f"1; {ALLOW}", f"1; // ptxmm: {comment}"), "k.ptx")
    error = raised.value
    assert (error.message, error.kind, error.line, error.column, error.width) == (
        "this allows nothing", "format", 19, 38, width,
    )  # fmt: skip
    assert error.source is not None and error.hint is not None


@pytest.mark.parametrize("comment", ['alow(race: same-value, "why")', "grid = 2", "Allow"])
def test_what_stands_behind_code(comment: str) -> None:
    """It is no launch, which stands on lines of its own."""
    with pytest.raises(PtxmmError, match="stands on a line of its own; behind code only `allow` does") as raised:
        allowances(f"a;\nb;  // ptxmm: {comment}\n", "k.cu")
    assert (raised.value.line, raised.value.column, raised.value.width) == (2, 15, len(comment))
    assert allowances(f"a;\n// ptxmm: {comment}\nb; // ptxmm: ignore[PTX101]\n", "k.cu") == ()


def test_of_which_line_a_comment_speaks() -> None:
    text = f"a;\n// no\n{ALLOW}\n// another comment\n\nb;\nc; {ALLOW}\n{ALLOW}\n"
    assert [item.line for item in allowances(text, "k.cu")] == [6, 7]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ALLOW}\na; {ALLOW}", [2]),  # said twice
        (f"/* {ALLOW}\n*/ a;", []),
        (f"/* a; {ALLOW} */ b;\n{ALLOW}\n/* this too\n*/\nc;", [5]),
        (f'a = "/*"; {ALLOW}\nb = "//"; {ALLOW}\nc = \'"\'; {ALLOW}\nd = 1\'000 / 2; {ALLOW}', [1, 2, 3, 4]),
        (f'a = "{ALLOW[:-1]}', []),
        (f"a; // as in {ALLOW}\nb;", []),
        (f"a;\r\n{ALLOW}\r\nb;\r\n", [3]),
    ],
)
def test_which_comments_count(text: str, lines: list[int]) -> None:
    """One that is commented out, or that another one quotes, allows nothing."""
    assert [item.line for item in allowances(text, "k.cu")] == lines


def test_the_row_and_its_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(LINES)
    with pytest.raises(SystemExit) as ended:
        run(["check", str(path)])
    out = capsys.readouterr().out
    assert (ended.value.code or 0, "which is allowed: both know it" in out) == (0, True)


# -- both engines, and what follows from constants ------------------------------------------------------------------


def program(rng: random.Random) -> str:
    """Two or three threads that store constants, in some order, with flags and fences between."""
    threads = []
    for _ in range(rng.choice((2, 2, 3))):
        rows = []
        for _ in range(rng.randint(1, 3)):
            rows.append(
                rng.choice(
                    (
                        f"st.weak.u32 [{rng.choice('xy')}], {rng.choice((1, 1, 1, 2))}",
                        f"st.weak.u32 [{rng.choice('xy')}], {rng.choice((1, 1, 1, 2))}",
                        f"st.weak.u32 [{rng.choice('xy')}], {rng.choice((1, 1, 1, 2))}",
                        f"st.release.gpu.u32 [f], {rng.choice((1, 1, 1, 2))}",
                        f"ld.acquire.gpu.u32 r{rng.choice((0, 1))}, [f]",
                        f"ld.weak.u32 r0, [{rng.choice('xy')}]",
                        f"st.weak.u32 [{rng.choice('xy')}], r0",
                        "fence.acq_rel.gpu",
                    )
                )
            )
        threads.append(rows)
    height = max(map(len, threads))
    lines = [" | ".join(f"P{i} @ cta {i}" for i in range(len(threads))) + " ;"]
    lines += [" | ".join(rows[n] if n < len(rows) else "" for rows in threads) + " ;" for n in range(height)]
    declared = ".global .u32 x = 0; .global .u32 y = 0; .global .u32 f = 0;"
    declared += "".join(f" .reg .u32 P{i}:r0 = 0;" for i in range(len(threads)))
    return "\n".join(["PTX t", f"{{ {declared} }}", *lines, "exists (x == 1)"]) + "\n"


def test_the_engines_agree_and_constants_decide() -> None:
    rng = random.Random(17)
    model = model_named("ptx-8.5")
    different = 0
    for _ in range(120):
        plain = parse_one(program(rng))
        allowed = with_same_value(plain, None)
        found, every = races(allowed, model), races(plain, model)
        assert confirm_races(allowed, model, found, Limits())
        if all("r0" not in str(race.first) + str(race.second) for race in every.races):
            left = [race for race in every.races if not _same(race.first.text, race.second.text)]
            assert {(r.first, r.second) for r in found.races} == {(r.first, r.second) for r in left}
        different += found.race_free is not every.race_free
    assert different >= 5


def _same(first: str, second: str) -> bool:
    return first.startswith("st.weak") and second.startswith("st.weak") and first.split()[-2:] == second.split()[-2:]


def test_the_part_of_the_model() -> None:
    text = (ROOT / "ptxmm" / "models" / "ptx-8.5.cat").read_text()
    changed = text.replace("precedes^-1 | ms | same-value)", "precedes^-1 | ms)")
    assert changed != text
    model = parse_model(changed, str(ROOT / "ptxmm" / "models" / "own.cat"))
    (test,) = launched(BOTH.format(7), OBJECTS, 'races = "none"', launch=f"grid = 2\n// ptxmm: {ASSUME}")
    assert races(test, model).race_free is False
    assert races(test, model_named("ptx-8.5")).race_free

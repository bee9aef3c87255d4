"""What ``fences`` and ``scopes`` say of kernels: an instruction of the source is judged and changed in all its threads.

The changes are made in the text of the source, which is read anew and must then have the property.
"""

from __future__ import annotations

import random
import shutil
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from ptxmm.analysis.fences import FencesResult, Repair, fences
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.property import judge, requirement
from ptxmm.analysis.scopes import scopes
from ptxmm.analysis.strength.changes import Change
from ptxmm.analysis.strength.sufficient import minimal_sets
from ptxmm.analysis.strength.superposition import superposition
from ptxmm.analysis.strength.units import names, units
from ptxmm.analysis.words import Property
from ptxmm.cat import Model
from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.strengths import Strengths
from ptxmm.formats.modules.read import parse_cuda, parse_ptx
from ptxmm.program.identity import Switch
from ptxmm.program.test import Test
from tests.support import model_named, parse_one

HEAD = """// ptxmm: args = ["x", "out"]
// ptxmm: {launch}
// ptxmm: [objects]
// ptxmm: x = {{ type = "u32", count = 4 }}
// ptxmm: out = {{ type = "u32", count = 4, init = [9, 9, 9, 9] }}
// ptxmm: [check]
// ptxmm: {claims}
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 po)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  .shared .align 4 .b8 s[16];
  ld.param.u64 %rd1, [px];
  ld.param.u64 %rd2, [po];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  and.b32 %r3, %r2, 1;
  shr.u32 %r2, %r2, 5;
  add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %r3;
  xor.b32 %r2, %r1, 1;
  mul.wide.u32 %rd3, %r1, 4;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd1, %rd4;
  add.u64 %rd7, %rd2, %rd3;
  mov.u32 %r3, s;
  mad.lo.u32 %r4, %r1, 4, %r3;
  mad.lo.u32 %r5, %r2, 4, %r3;
{body}
  ret;
}}
"""
"""Threads 0 and 1: ``x`` and ``s`` at their own number are at %rd5 and %r4, at that of the other at %rd6 and %r5, and
``out`` at %rd7."""

MODEL = "ptx-8.5"
TWO_CTAS, ONE_WARP = "grid = 2", "block = 2"
TWO_WARPS = 'block = 64\n// ptxmm: threads = "lane 0"'


def source(body: str, claims: str, launch: str = TWO_CTAS) -> str:
    return HEAD.format(body="\n".join(f"  {row.strip()}" for row in body.strip().splitlines()), claims=claims,
                       launch=launch)  # fmt: skip


def read(text: str) -> Test:
    (test,) = parse_ptx(text, "k.ptx")
    return test


def judged(text: str, most: int | None = 10, wanted: Property | None = None) -> FencesResult:
    return fences(read(text), model_named(MODEL), most=most, wanted=wanted)


def verdicts(result: FencesResult) -> list[tuple[str, str, str]]:
    return [(item.thread, item.text.split()[0], item.verdict) for item in result.items]


def changed(text: str, changes: tuple[Change, ...]) -> str | None:
    """``text`` with the changes made in it; None where one is at the end of some threads only."""
    rows = text.split("\n")
    # From the end, so that of several insertions in one place the first comes first.
    order = sorted(changes, key=lambda c: (c.line + c.after, c.kind != "insert"))
    for change in order[::-1]:
        row = rows[change.line - 1]
        match change.kind:
            case "insert":
                if change.index == len(read(text).threads[change.number].body):
                    return None
                rows.insert(change.line - 1 + change.after, f"  {change.new};")
            case "remove":
                rows[change.line - 1] = ""
            case "replace":
                assert change.old is not None and row.strip() == change.old + ";"
                rows[change.line - 1] = f"  {change.new};"
    return "\n".join(rows)


def holds(text: str, wanted: Property | None = None) -> bool | None:
    test = read(text)
    required = requirement(test, model_named(MODEL), wanted, Limits())
    return judge(test, model_named(MODEL), required, Limits()).holds


STORE_BUFFERING = """
st.relaxed.gpu.u32 [%rd5], 1;
fence.sc.gpu;
ld.relaxed.gpu.u32 %r6, [%rd6];
st.u32 [%rd7], %r6;
"""
NEVER = 'condition = "~exists (out[0] == 0 /\\\\ out[1] == 0)"'


def test_a_fence_of_the_source_is_judged_once() -> None:
    result = judged(source(STORE_BUFFERING, NEVER))
    assert result.holds
    assert verdicts(result) == [
        ("P0-P1", "st.relaxed.gpu.u32", "weaker"), ("P0-P1", "fence.sc.gpu", "needed"),
        ("P0-P1", "ld.relaxed.gpu.u32", "weaker"),
    ]  # fmt: skip


def test_a_missing_fence_is_added_for_all_threads() -> None:
    text = source(STORE_BUFFERING.replace("fence.sc.gpu;\n", ""), NEVER)
    result = judged(text)
    assert result.holds is False
    added = [[(c.kind, c.thread, c.new) for c in variant.changes] for variant in result.repairs]
    assert [("insert", "P0-P1", "fence.sc.gpu")] in added
    for variant in result.repairs:
        edited = changed(text, variant.changes)
        assert edited is not None and holds(edited)


ONE_WAY = """
setp.eq.u32 %p1, %r1, 0;
st.u32 [%rd5], 5;
fence.acq_rel.gpu;
st.relaxed.gpu.u32 [%rd5+8], 1;
@%p1 bra END;
ld.relaxed.gpu.u32 %r6, [%rd6+8];
fence.acq_rel.gpu;
ld.u32 %r7, [%rd6];
setp.eq.u32 %p2, %r6, 0;
@%p2 mov.u32 %r7, 5;
st.u32 [%rd7], %r7;
END:
"""


UNROLLED = """// ptxmm: grid = 2
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: [objects]
// ptxmm: data = { type = "u32", count = 2 }
// ptxmm: flag = { type = "u32", count = 2 }
// ptxmm: out = { type = "u32", count = 2 }
// ptxmm: [check]
// ptxmm: condition = "forall (out[0] == 1 /\\\\ out[1] == 2)"
"""
FLAGS = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 pd, .param .u64 pf, .param .u64 po)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [pd];
  ld.param.u64 %rd2, [pf];
  ld.param.u64 %rd3, [po];
  mov.u32 %r1, %ctaid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra TAKE;
  .loc 1 20 4
  st.u32 [%rd1], 1;
  .loc 1 21 4
  st.volatile.u32 [%rd2], 1;
  .loc 1 20 4
  st.u32 [%rd1+4], 2;
  .loc 1 21 4
  st.volatile.u32 [%rd2+4], 1;
  ret;
TAKE:
  .loc 1 24 4
  ld.volatile.u32 %r2, [%rd2];
  .loc 1 25 4
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra TAKE;
  .loc 1 26 4
  ld.u32 %r3, [%rd1];
  st.u32 [%rd3], %r3;
MORE:
  .loc 1 24 4
  ld.volatile.u32 %r4, [%rd2+4];
  .loc 1 25 4
  setp.eq.u32 %p3, %r4, 0;
  @%p3 bra MORE;
  .loc 1 26 4
  ld.u32 %r5, [%rd1+4];
  st.u32 [%rd3+4], %r5;
  ret;
}
.file 1 "flags.cu"
"""


def test_rounds_that_a_compiler_has_unrolled_change_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have other registers and offsets, but one place in the source."""
    monkeypatch.setattr(shutil, "which", lambda _: None)  # without nvcc the PTX beside it is taken
    (tmp_path / "flags.ptx").write_text(FLAGS)
    (test,) = parse_cuda(UNROLLED + "  // a line of the source\n" * 30, str(tmp_path / "flags.cu"))
    result = fences(test, model_named(MODEL))
    assert result.holds is False and result.repairs[0].cost == 4
    made = [(change.line, change.new) for change in result.repairs[0].changes]
    assert made == [(21, "st.release.sys.u32 [%rd2], 1"), (24, "ld.acquire.sys.u32 %r2, [%rd2]")]


SUM = """
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ONE;
st.shared.u32 [s], 1;
ONE:
bar.sync 0;
ld.shared.u32 %r6, [s];
@%p1 bra TWO;
st.shared.u32 [s], 2;
TWO:
bar.sync 0;
ld.shared.u32 %r7, [s];
add.u32 %r9, %r6, %r7;
st.u32 [%rd7], %r9;
"""


@pytest.mark.slow
def test_a_barrier_may_be_missing_after_an_access() -> None:
    """One thread goes on to a store, the other to a barrier of both: only after the load can it be said where."""
    text = source(SUM, 'condition = "forall (out[0] == 3 /\\\\ out[1] == 3)"', TWO_WARPS)
    (repair,) = judged(text, most=1).repairs
    (change,) = repair.changes
    assert (change.thread, change.new, change.after) == ("P0-P1", "barrier.cta.sync 1", True)
    assert change.line == text.split("\n").index("  ld.shared.u32 %r6, [s];") + 1
    edited = changed(text, repair.changes)
    assert edited is not None and holds(edited)


def test_what_one_thread_needs_is_needed() -> None:
    """Nobody looks at what thread 1 has stored: its own fence could go, but it is that of thread 0."""
    result = judged(source(ONE_WAY, 'condition = "forall (out[1] == 5)"'))
    assert result.holds
    assert verdicts(result)[:2] == [
        ("P0-P1", "fence.acq_rel.gpu", "needed"), ("P0-P1", "st.relaxed.gpu.u32", "needed")
    ]  # fmt: skip
    assert ("P1", "fence.acq_rel.gpu", "needed") in verdicts(result)


ROUNDS = """
mov.u32 %r8, 0;
LOOP:
st.u32 [%rd5], %r8;
st.release.gpu.u32 [%rd5+8], %r8;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p1, %r8, 3;
@%p1 bra LOOP;
ld.acquire.gpu.u32 %r6, [%rd6+8];
ld.u32 %r7, [%rd6];
sub.u32 %r9, %r7, %r6;
st.u32 [%rd7], %r9;
"""


def test_rounds_of_a_loop_change_together() -> None:
    test = read(source(ROUNDS, 'condition = "~exists (out[0] == -2)"'))
    assert len(test.threads[0].body) > 8
    result = fences(test, model_named(MODEL))
    assert [v for v in verdicts(result) if "release" in v[1]] == [("P0-P1", "st.release.gpu.u32", "needed")]


EXCHANGE = """
st.shared.u32 [%r4], 1;
ld.shared.u32 %r6, [%r5];
st.u32 [%rd7], %r6;
"""
BOTH = 'condition = "forall (out[0] == 1 /\\\\ out[1] == 1)"'


def test_a_missing_barrier_is_added_in_the_source() -> None:
    text = source(EXCHANGE, BOTH + '\n// ptxmm: races = "none"', TWO_WARPS)
    result = judged(text, most=1)
    assert result.required.endswith("and no data race") and result.holds is False
    (repair,) = result.repairs
    assert [(c.kind, c.thread, c.new) for c in repair.changes] == [("insert", "P0-P1", "barrier.cta.sync 0")]
    edited = changed(text, repair.changes)
    assert edited is not None and holds(edited)


def test_a_barrier_is_taken_away_in_all_threads() -> None:
    body = EXCHANGE.replace("ld.shared", "bar.sync 0;\nbar.sync 0;\nld.shared", 1)
    result = judged(source(body, BOTH, ONE_WARP))
    assert result.holds
    assert [(i.thread, i.text, i.verdict) for i in result.items] == [("P0-P1", "bar.sync 0 (P0-P1)", "removable")] * 2


UNEVEN = """
setp.eq.u32 %p1, %r1, 0;
st.shared.u32 [%r4], 1;
@!%p1 bra END;
ld.shared.u32 %r6, [%r5];
st.u32 [%rd7], %r6;
END:
"""


def test_who_does_not_come_to_the_barrier_has_it_at_its_end() -> None:
    result = judged(source(UNEVEN, 'condition = "forall (out[0] == 1)"', TWO_WARPS), most=1)
    (repair,) = result.repairs
    assert [(c.thread, c.new, c.index) for c in repair.changes] == [
        ("P0", "barrier.cta.sync 0", 1), ("P1", "barrier.cta.sync 0", 1)
    ]  # fmt: skip


COPY = """
cp.async.ca.shared.global [%r4], [%rd5], 4;
cp.async.commit_group;
ld.shared.u32 %r6, [%r4];
st.u32 [%rd7], %r6;
"""


def test_a_missing_wait_is_added_in_the_source() -> None:
    text = source(COPY, 'condition = "forall (out[0] == 7 /\\\\ out[1] == 7)"')
    text = text.replace("count = 4 }", "count = 4, init = [7, 7, 7, 7] }")
    result = judged(text, most=1)
    assert result.holds is False
    (repair,) = result.repairs
    assert [(c.kind, c.thread, c.new) for c in repair.changes] == [("insert", "P0-P1", "cp.async.wait_group 0")]
    edited = changed(text, repair.changes)
    assert edited is not None and holds(edited)


def test_a_wait_that_waits_for_more_says_for_what() -> None:
    body = COPY.replace("ld.shared", "cp.async.wait_group 1;\nld.shared", 1)
    text = source(body, 'condition = "forall (out[0] == 7 /\\\\ out[1] == 7)"')
    text = text.replace("count = 4 }", "count = 4, init = [7, 7, 7, 7] }")
    made = [variant.changes for variant in judged(text, most=3).repairs]
    assert ["cp.async.wait_group 0"] in [[c.new for c in changes if c.kind == "replace"] for changes in made]
    for changes in made:
        edited = changed(text, changes)
        assert edited is not None and holds(edited)


def test_the_claims_are_what_is_asked_for() -> None:
    body = STORE_BUFFERING.replace("st.relaxed.gpu.u32 [%rd5]", "st.u32 [%rd5]")
    claims = source(body, NEVER + '\n// ptxmm: races = "none"')
    assert judged(claims).holds is False
    assert judged(claims, wanted=Property.never).holds is True
    assert judged(source(body, 'races = "none"')).required == "no data race"
    assert judged(source(body, "robust = true")).required == "only the final states of sc"


def test_scopes_of_the_source() -> None:
    text = source(STORE_BUFFERING.replace(".gpu", ".sys"), NEVER)
    result = scopes(read(text), model_named(MODEL))
    assert [(n.instruction.thread, n.given, n.alone) for n in result.narrowings if n.given == "sys"] == [
        ("P0-P1", "sys", "cta"), ("P0-P1", "sys", "gpu"), ("P0-P1", "sys", "cta")
    ]  # fmt: skip
    assert len(result.joint) == 1 and len(result.joint[0]) == 3


def test_names_of_threads() -> None:
    test = parse_one("PTX t\n{ .global .u32 x; }\n" + "".join(f"P{n} {{ ld.u32 r0, [x]; }}\n" for n in range(6)))
    assert names(test, [0]) == "P0"
    assert names(test, [3, 1, 2]) == "P1-P3"
    assert names(test, [0, 1, 3, 5]) == "P0-P1,P3,P5"
    assert all(len(sites) == 1 for sites in units(test).sites.values())


# -- random kernels ------------------------------------------------------------------------------------------------

_STORES = ("st.u32", "st.relaxed.cta.u32", "st.relaxed.gpu.u32", "st.release.gpu.u32")
_LOADS = ("ld.u32", "ld.relaxed.cta.u32", "ld.relaxed.gpu.u32", "ld.acquire.gpu.u32")
_FENCES = ("fence.acq_rel.gpu;", "fence.sc.gpu;", "fence.acq_rel.cta;", "")


def random_kernel(seed: int) -> str:
    """Two threads that run the same two or three accesses, to their own place or to that of the other."""
    rng = random.Random(seed)
    shape = rng.choice(("SL", "LS", "SL", "SSL", "LLS", "SLL"))
    body: list[str] = []
    outputs: list[str] = []
    for number, kind in enumerate(shape):
        if body and rng.random() < 0.4:
            body.append(rng.choice(_FENCES))
        place = rng.choice(("%rd5", "%rd6", "%rd1"))
        if kind == "S":
            body.append(f"{rng.choice(_STORES)} [{place}], {rng.choice(('1', '2', '%r1'))};")
        else:
            body.append(f"{rng.choice(_LOADS)} %r{number + 6}, [{place}];")
            outputs.append(f"st.mmio.relaxed.sys.u32 [%rd7+{8 * len(outputs)}], %r{number + 6};")
    return source("\n".join((*body, *outputs)), 'condition = "forall (out[0] == out[0])"',
                  rng.choice((TWO_CTAS, TWO_CTAS, ONE_WARP)))  # fmt: skip


def with_condition(text: str, stronger: bool, rng: random.Random) -> str | None:
    """``text`` with a condition that fails and need not, or that holds and would not in the weakest program."""
    test, model = read(text), model_named(MODEL)
    weakest = superposition(test, model.coverage, stronger=False).program(frozenset())
    more, fewer = (test, model_named("sc")) if stronger else (weakest, model)
    states = [
        [o.memory for o in check(program, under, all_state=True).outcomes]
        for program, under in ((more, model), (test, fewer))
    ]
    found = [state for state in states[0] if state not in states[1]]
    if not found:
        return None
    condition = " /\\\\ ".join(f"{name} == {value}" for name, value in rng.choice(found).items() if name[0] in "xo")
    return text.replace("forall (out[0] == out[0])", f"~exists ({condition})")


def brute(test: Test, model: Model, stronger: bool) -> tuple[set[frozenset[Switch]], set[frozenset[Switch]]] | None:
    """The smallest sets that the search finds, and those that trying all combinations finds."""
    everything = superposition(test, model.coverage, stronger=stronger)
    options = [
        [frozenset(Switch(*site, step) for step in needs) for _, needs in everything.forms[site].forms]
        for site in everything.sites
    ]
    kept = everything.given if stronger else frozenset()
    total = 1
    for forms in options:
        total *= len(forms)
    if total > 1500:
        return None
    required = requirement(test, model, Property.never, Limits())
    strengths = Strengths(everything.test, model, everything.variations, required.unwanted, Limits())
    weights = dict.fromkeys(everything.switches - kept, 1)
    found = set(minimal_sets(weights, lambda on: strengths.find(kept | on) is None, Limits().check))
    known: list[frozenset[Switch]] = []
    for on in sorted({frozenset[Switch]().union(*choice) for choice in product(*options)}, key=len):
        if not kept <= on or any(least <= on - kept for least in known):
            continue
        if judge(everything.program(on), model, required, Limits()).holds:
            known.append(on - kept)
    return found, set(known)


def _variants_hold(text: str, variants: tuple[Repair, ...]) -> int:
    """How many of the changed programs were read from their changed source and have the property."""
    count = 0
    for variant in variants:
        edited = changed(text, variant.changes)
        if edited is not None:
            assert holds(edited), (text, variant.changes)
            count += 1
    return count


def _sweep(seeds: range, stronger: bool) -> tuple[int, int]:
    """How many kernels were compared, and how many changed sources were read."""
    kernels = sources = 0
    model = model_named(MODEL)
    for seed in seeds:
        text = with_condition(random_kernel(seed), stronger, random.Random(seed))
        if text is None:
            continue
        sets = brute(read(text), model, stronger)
        if sets is None:
            continue
        assert sets[0] == sets[1], text
        kernels += 1
        result = fences(read(text), model, most=5)
        assert result.holds is not stronger
        sources += _variants_hold(text, result.repairs)
    return kernels, sources


@pytest.mark.parametrize("stronger", [True, False], ids=["repairs", "reductions"])
def test_random_kernels(stronger: bool) -> None:
    kernels, sources = _sweep(range(20 if stronger else 12), stronger)
    assert kernels >= 1 and sources >= kernels


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("stronger", [True, False], ids=["repairs", "reductions"])
def test_many_random_kernels(stronger: bool, part: int) -> None:
    first = 1000 * (part + 1)
    kernels, sources = _sweep(range(first, first + 100), stronger)
    print(f"{kernels} kernels as brute force finds them, {sources} changed sources")
    assert kernels >= 10


def test_a_litmus_test_is_changed_one_instruction_at_a_time() -> None:
    test = replace(read(source(STORE_BUFFERING, NEVER)), claims=None)
    everything = superposition(test, model_named(MODEL).coverage, stronger=False)
    assert len(everything.sites) == len(everything.forms) == 6


def test_a_barrier_that_threads_may_need_that_do_not_run_is_not_removable() -> None:
    """It orders nothing of the threads that are in the test; where these are all it can go."""
    body = "st.u32 [%rd5], 1;\nbar.sync 0;\nst.u32 [%rd7], 1;"
    result = judged(source(body, 'races = "none"', TWO_WARPS))
    assert [(item.text.split()[0], item.verdict, item.why) for item in result.items] == [
        ("bar.sync", "unknown", "threads")
    ]
    assert result.status == "complete" and [note.text[:10] for note in result.notes if note.kind == "threads"] == [
        "62 threads"
    ]
    result = judged(source(body, 'races = "none"', ONE_WARP))
    assert [(item.text.split()[0], item.verdict) for item in result.items] == [("bar.sync", "removable")]
    assert not any(note.kind == "threads" for note in result.notes)

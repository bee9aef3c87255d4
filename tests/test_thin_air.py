"""No-Thin-Air is the models' own axiom: without it, or with less of it, more is allowed.

What no engine considers, whatever the model says, is a value that is made of itself.
"""

from __future__ import annotations

from functools import cache

import pytest

from ptxmm.cat import Model, load, parse_model
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import evaluate
from ptxmm.program.test import Test
from tests import reference
from tests.random_dependencies import seeded
from tests.reference_dependencies import TooSlow
from tests.support import ENGINES, ROOT, ask, parse_one
from tests.tally import Tally
from tests.test_reference import litmus

PTX = ("ptx-6.0", "ptx-7.5", "ptx-8.5")
AXIOM = "as No-Thin-Air"
DEPENDENCIES = 'let dep = addr | data | ctrl | (if "rmw-dep=on" then rmw else 0)'
NONE: frozenset[str] = frozenset()
ALL = reference.ALL_DEPENDENCIES


@cache
def weakened(model: str, dependencies: frozenset[str]) -> Model:
    """A shipped model in which only these relations are dependencies; without any there is no axiom either."""
    if dependencies == ALL - {"rmw"}:
        return load(model, {"rmw-dep": "off"})
    models = ROOT / "ptxmm" / "models"
    text = (models / f"{model}.cat").read_text()
    text = text.replace('include "ptx-common.cat"', (models / "ptx-common.cat").read_text())
    assert text.count(AXIOM) == text.count(DEPENDENCIES) == 1
    text = text.replace(DEPENDENCIES, f"let dep = {' | '.join(sorted(dependencies)) or '0'}")
    kept = [line for line in text.splitlines() if dependencies or AXIOM not in line]
    return parse_model("\n".join(kept), f"{model}.cat", load(model).readings)


COPY = "ld.rlx.g r0,x; st.rlx.g y,r0 @A"
GUARDED = "setp.eq.u32 p, r1, 1; @p st.global.u32 [x], 1 @B"
LOAD_1 = "ld.global.u32 r1, [y]; "

# (name, threads, shorthand, condition, declarations, the dependencies without one of which it is allowed; None: never)
CASES = [
    (
        "copies", "ld r0,x; st y,r0 @A || ld r1,y; st x,r1 @B", True, "P0:r0 == 1", "", None,
    ),
    (
        "data through a join",
        "ld.global.u32 r0, [x]; mov.u32 r2, 0; setp.eq.u32 p, r0, 1; @p mov.u32 r2, 1; st.global.u32 [y], r2 @A ||"
        " ld.global.u32 r1, [y]; st.global.u32 [x], r1 @B", False, "P0:r0 == 1 /\\ P1:r1 == 1", "", None,
    ),
    (
        "atomic addition of what it leads to",
        "atom.relaxed.gpu.global.add.u32 r0, [y], 0 @A || ld.global.u32 r1, [y]; st.global.u32 [y], r1 @B", False,
        "P0:r0 == 1", "", None,
    ),
    (
        "guards", "ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 1; @p st.global.u32 [y], 1 @A || " + LOAD_1 + GUARDED,
        False, "P0:r0 == 1 /\\ P1:r1 == 1", "", {"ctrl"},
    ),
    (
        "guards, with a constant in a register and a branch",
        "ld.global.u32 r0, [x]; mov.u32 r2, 1; setp.ne.u32 p, r0, 1; @p bra DONE; st.global.u32 [y], r2; DONE: exit @A"
        " || " + LOAD_1 + GUARDED, False, "P0:r0 == 1 /\\ P1:r1 == 1", "", {"ctrl"},
    ),
    (
        "copy and guard", "ld.global.u32 r0, [x]; st.global.u32 [y], r0 @A || " + LOAD_1 + GUARDED, False,
        "P0:r0 == 1 /\\ P1:r1 == 1", "", {"ctrl", "data"},
    ),
    (
        "address and guard",
        "ld.global.u64 rd0, [q]; mov.u64 rd1, v; add.u64 rd1, rd1, rd0; st.global.u64 [rd1], 1 @A ||"
        " ld.global.u64 rd2, [v+8]; setp.eq.u64 p, rd2, 1; @p st.global.u64 [q], 8 @B", False,
        "P0:rd0 == 8 /\\ P1:rd2 == 1", ".global .u64 q = 0; .global .u64 v[2] = {0, 0};", {"ctrl", "addr"},
    ),
    (
        "a pointer that is stored because of what it leads to",
        "ld.global.u64 rd0, [q]; ld.global.u64 rd3, [rd0]; setp.eq.u64 p, rd3, 7; mov.u64 rd1, w;"
        " @p st.global.u64 [m], rd1 @A || ld.global.u64 rd2, [m]; st.global.u64 [q], rd2 @B", False, "P0:rd3 == 7",
        ".global .u64 q = 0; .global .u64 m = 0; .global .u64 w = 7;", {"ctrl", "addr", "data"},
    ),
    (
        "a guard on an exchange",
        COPY + " || atom.exch.rlx.g r1,y,1 @B || ld.rlx.g r2,y; st.rlx.g x,r2 @C", True,
        "P0:r0 == 1 /\\ P1:r1 == 1 /\\ P2:r2 == 1", "", {"rmw", "data"},
    ),
    (
        "an exchange that reads a copy of what it writes",
        "ld.rlx.g r1,x; atom.exch.rlx.g r0,y,r1 @A || ld r2,y; st y,r2 @B || st.rlx.g x,1 @C", True,
        "P0:r0 == 1 /\\ P0:r1 == 1 /\\ P1:r2 == 1", "", {"rmw", "data"},
    ),
    (
        "a bitwise or whose result is all ones anyway",
        "ld.relaxed.gpu.global.u32 r0, [x]; st.relaxed.gpu.global.u32 [y], r0 @A ||"
        " atom.relaxed.gpu.global.or.b32 r1, [y], 0xffffffff @B ||"
        " ld.relaxed.gpu.global.u32 r2, [y]; st.relaxed.gpu.global.u32 [x], r2 @C", False,
        "P0:r0 == 0xffffffff /\\ P1:r1 == 0xffffffff", "", {"rmw", "data"},
    ),
    (
        "a compare-and-swap that succeeds because it succeeds",
        COPY + " || atom.cas.rlx.g r1,y,1,1 @B || ld.rlx.g r2,y; st.rlx.g x,r2 @C", True,
        "P0:r0 == 1 /\\ P1:r1 == 1 /\\ P2:r2 == 1", "", {"rmw+ctrl", "data"},
    ),
    (
        "a compare-and-swap with a copy of what it leads to",
        "ld.global.u32 r0, [x]; add.u32 r0, r0, 1; atom.relaxed.gpu.global.cas.b32 r2, [v], r0, 1 @A || "
        "ld.global.u32 r1, [v]; " + GUARDED, False,
        "P0:r0 == 2 /\\ P1:r1 == 1 /\\ P0:r2 == 2", ".global .u32 v = 2;", {"ctrl"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("model", PTX)
@pytest.mark.parametrize(
    ("threads", "shorthand", "condition", "declarations", "needed"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_derived_verdicts(
    threads: str, shorthand: bool, condition: str, declarations: str, needed: set[str] | None, model: str
) -> None:
    """Forbidden with the whole axiom, allowed without it and without each part that the cycle goes through."""
    test = parse_one(litmus(threads, condition, declarations, shorthand))
    for left_out in (NONE, ALL, *(frozenset((d,)) for d in sorted(ALL)), frozenset(("ctrl", "rmw"))):
        allowed = needed is not None and any(left_out >= set(part.split("+")) for part in needed)
        decide(test, model, ALL - left_out, allowed)


@pytest.mark.parametrize("model", PTX[1:])
def test_a_guard_on_the_own_store_through_an_alias(model: str) -> None:
    """Program order across aliases is not coherent, so only the control dependency keeps the load from the store."""
    threads = "ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 1; @p st.global.u32 [w], 1 @A"
    test = parse_one(litmus(threads, "P0:r0 == 1", "w @ generic aliases x;", shorthand=False))
    decide(test, model, ALL, False)
    decide(test, model, ALL - {"ctrl"}, True)
    decide(test, model, NONE, True)


WRITES = {
    "a constant": "st.global.u32 [@], 1",
    "a constant in a register": "mov.u32 r2, 1; st.global.u32 [@], r2",
    "a constant at an address in a register": "mov.u64 rd1, @; st.global.u32 [rd1], 1",
    "a compare-and-swap": "atom.relaxed.gpu.global.cas.b32 r2, [@], 0, 1",
    "an exchange": "atom.relaxed.gpu.global.exch.b32 r2, [@], 1",
    "an addition": "atom.relaxed.gpu.global.add.u32 r2, [@], 1",
}


@pytest.mark.parametrize("model", PTX)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_loops_end_because_of_what_follows_them_if_they_read_weakly(write: str, model: str) -> None:
    """What comes behind a loop does not depend on why it ended: both loops end although no value is there before.
    A strong load of the loop must have returned its value before, and each loop would wait for the other."""
    loop = "L: ld{}.global.u32 r0, [{}]; setp.eq.u32 p, r0, 0; @p bra L; "
    for first, second in (("", ""), ("", ".relaxed.gpu"), (".relaxed.gpu", "")):
        loads = loop.format(first, "x"), loop.format(second, "y")
        threads = f"{loads[0]}{write.replace('@', 'y')} @A || {loads[1]}{write.replace('@', 'x')} @B"
        test = parse_one(litmus(threads, "P0:r0 == 1 /\\ P1:r0 == 1", shorthand=False))
        decide(test, model, ALL, True)
    loads = loop.format(".relaxed.gpu", "x"), loop.format(".volatile", "y")
    threads = f"{loads[0]}{write.replace('@', 'y')} @A || {loads[1]}{write.replace('@', 'x')} @B"
    test = parse_one(litmus(threads, "P0:r0 == 1 /\\ P1:r0 == 1", shorthand=False))
    decide(test, model, ALL, False)
    decide(test, model, ALL - {"ctrl"}, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_values_reach_as_far_as_addresses_lead(engine: str) -> None:
    """Each thread stores through the pointer that the one before it stores, so that each address is known in turn."""
    cells, count = [f"q{i}" for i in range(6)], 5
    threads = [f"mov.u64 rd1, {cells[1]}; st.global.u64 [{cells[0]}], rd1"]
    for i in range(1, count):
        read, write = f"ld.global.u64 rd0, [{cells[i - 1]}]; setp.eq.u64 p, rd0, 0", "@!p st.global.u64 [rd0], rd1"
        threads.append(f"{read}; mov.u64 rd1, {cells[i + 1]}; {write}")
    threads.append(f"ld.global.u64 rd0, [{cells[count - 1]}]")
    declarations = " ".join(f".global .u64 {c} = 0;" for c in cells)
    placed = " || ".join(f"{t} @{'ABCD'[i % 4]}" for i, t in enumerate(threads))
    test = parse_one(litmus(placed, "P5:rd0 != 0", declarations, shorthand=False))
    # How many of the four pointers are found, one after the other, and whether the last load finds what they lead to.
    assert len(ask(engine, test, load("ptx-7.5")).states) == count + 1


def decide(test: Test, model: str, dependencies: frozenset[str], allowed: bool) -> None:
    """The reference's verdict is ``allowed``, and both engines have its final states."""
    assert test.condition is not None
    states = reference.states(test, model, dependencies=dependencies)
    found = any(evaluate(test.condition.proposition, s) for s in states)
    assert found == allowed, f"{model}, dependencies {sorted(dependencies)}"
    outcomes = reference.outcomes(test, model, dependencies=dependencies)
    for engine in ENGINES:
        answer = ask(engine, test, weakened(model, dependencies))
        assert answer.states == outcomes, f"{engine}, {model}, dependencies {sorted(dependencies)}"


def compare(seeds: range, tally: Tally, *, seconds: float) -> int:
    """Both engines and the reference on the programs with these numbers, under models with less of the axiom."""
    compared = unfinished = 0
    parts = [NONE, *(ALL - {d} for d in sorted(ALL)), frozenset(("ctrl",))]
    for seed in seeds:
        model = PTX[seed % 3]
        text = seeded(seed, model)
        for dependencies in (NONE, parts[seed // 3 % len(parts)]):
            chosen = weakened(model, dependencies)
            try:
                answers = {e: ask(e, parse_one(text), chosen, unroll=2, seconds=seconds) for e in ENGINES}
                states = {e: a.states for e, a in answers.items()}
                known = reference.outcomes(parse_one(text), model, dependencies=dependencies, unroll=2, seconds=seconds)
            except (Timeout, TooSlow):
                unfinished += 1
                continue
            except PtxmmError as error:
                assert error.kind == "unsupported", f"seed {seed}, {model}, {sorted(dependencies)}: {error}\n{text}"
                unfinished += 1
                continue
            if not all(a.complete for a in answers.values()):
                unfinished += 1
                continue
            states["reference"] = frozenset(known)
            assert len(set(states.values())) == 1, f"seed {seed}, {model}, {sorted(dependencies)}: {states}\n{text}"
            compared += 1
    tally.notes.append(f"dependencies: engines and reference agree {compared} times ({unfinished} left out as big)")
    return compared


def test_random_dependencies(tally: Tally) -> None:
    assert compare(range(40), tally, seconds=5) >= 70


@pytest.mark.slow
def test_many_random_dependencies(tally: Tally, shift: int) -> None:
    assert compare(range(1000 + shift, 2000 + shift), tally, seconds=20) >= 1600

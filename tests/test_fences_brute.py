"""Repairs and reductions are complete: on small random programs brute force over all strengths finds the same."""

from __future__ import annotations

import random
from itertools import product

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.property import Property, judge, requirement
from ptxmm.analysis.strength.sufficient import minimal_sets
from ptxmm.analysis.strength.superposition import Superposition, superposition
from ptxmm.engines.result import Limits
from ptxmm.engines.strengths import Strengths
from ptxmm.events.symbolic.variants import Switch
from ptxmm.program.test import Test
from tests.support import model_named, parse_one

MOST = 1000
"""Programs with more combinations of strengths are left out: brute force decides each of them."""

_LOADS = ("ld.global.u32", "ld.relaxed.cta.global.u32", "ld.relaxed.gpu.global.u32", "ld.acquire.gpu.global.u32")
_STORES = ("st.global.u32", "st.relaxed.cta.global.u32", "st.relaxed.gpu.global.u32", "st.release.gpu.global.u32")
_ATOMICS = ("atom.relaxed.gpu.global.exch.b32", "atom.acquire.gpu.global.exch.b32", "atom.acq_rel.gpu.global.add.u32")
_FENCES = ("fence.acq_rel.gpu", "fence.sc.gpu", "fence.acq_rel.cta", "fence.sc.cta")
_PLACES = (("cta 0", "cta 1", "cta 2"), ("cta 0", "cta 0", "cta 1"), ("cta 0", "cta 1", "cta 1"))


def program_text(seed: int) -> str:
    """Two or three threads of one or two accesses to x and y, in the shapes of small litmus tests."""
    rng = random.Random(seed)
    bodies: list[list[str]] = []
    shape = rng.choice((("xy", "yx"), ("xy", "yx"), ("xy", "yx"), ("xy", "xx"), ("x", "xy", "yx"), ("xx", "xx")))
    for places in shape:
        body: list[str] = []
        for register, place in enumerate(places):
            if body and rng.random() < 0.25:
                body.append(rng.choice(_FENCES))
            kind = rng.random()
            if kind < 0.45:
                body.append(f"{rng.choice(_LOADS)} r{register}, [{place}]")
            elif kind < 0.9:
                body.append(f"{rng.choice(_STORES)} [{place}], {rng.choice((1, 2))}")
            else:
                body.append(f"{rng.choice(_ATOMICS)} r{register}, [{place}], 1")
        bodies.append(body)
    lines = ["PTX random", "{", "  .global .u32 x = 0;", "  .global .u32 y = 0;", "}"]
    for number, (body, place) in enumerate(zip(bodies, rng.choice(_PLACES), strict=False)):
        lines += [f"P{number} @ {place} {{", *(f"  {item};" for item in body), "}"]
    return "\n".join(lines) + "\n"


def _program(seed: int, stronger: bool) -> Test | None:
    """A program with a condition: to be repaired, a final state that ptx-8.5 allows and sc does not; to be reduced, one
    that it forbids but not if every order is as weak as can be. None where there is none."""
    test, model = parse_one(program_text(seed)), model_named("ptx-8.5")
    weakest = superposition(test, model.coverage, stronger=False).program(frozenset())
    more, fewer = (test, model_named("sc")) if stronger else (weakest, model)
    states = [
        [{**o.registers, **o.memory} for o in check(program, under, all_state=True).outcomes]
        for program, under in ((more, model), (test, fewer))
    ]
    found = [state for state in states[0] if state not in states[1]]
    if not found:
        return None
    chosen = random.Random(seed).choice(found)
    condition = " /\\ ".join(f"{name} == {value}" for name, value in chosen.items())
    return parse_one(program_text(seed) + f"exists ({condition})\n")


def _combinations(everything: Superposition) -> int:
    total = 1
    for forms in everything.forms.values():
        total *= len(forms.forms)
    return total


def _brute(everything: Superposition, test: Test, candidates: frozenset[Switch], kept: frozenset[Switch], engine: str):
    """The smallest sets of switches beyond ``kept`` that suffice, every combination decided by an ordinary search."""
    required = requirement(test, model_named("ptx-8.5"), Property.never, Limits())
    sufficient: list[frozenset[Switch]] = []
    forms = [(site, [needs for _, needs in forms.forms]) for site, forms in everything.forms.items()]
    options = sorted(
        {
            frozenset((*site, step) for (site, _), needs in zip(forms, choice, strict=True) for step in needs)
            for choice in product(*(needs for _, needs in forms))
        },
        key=len,
    )
    for on in options:
        if not kept <= on or not on - kept <= candidates:
            continue
        if any(known <= on - kept for known in sufficient):
            continue
        if judge(everything.program(on), model_named("ptx-8.5"), required, Limits(), engine).holds:
            sufficient.append(on - kept)
    return set(sufficient)


def _agree(seed: int, stronger: bool) -> int:
    """Compare for one program; the number of smallest sets, or -1 where there are too many combinations."""
    model = model_named("ptx-8.5")
    test = _program(seed, stronger)
    if test is None:
        return -1
    everything = superposition(test, model.coverage, stronger=stronger)
    if _combinations(everything) > MOST:
        return -1
    required = requirement(test, model, Property.never, Limits())
    strengths = Strengths(everything.test, model, everything.variations, required.unwanted, Limits())
    kept = everything.given if stronger else frozenset()
    candidates = everything.switches - kept
    found = set(
        minimal_sets(
            dict.fromkeys(candidates, 1), lambda on: strengths.find(kept | on) is None, Limits().check
        )
    )
    engine = "z3" if seed % 2 else "enumerate"
    assert found == _brute(everything, test, candidates, kept, engine), program_text(seed)
    return len(found)


def _sweep(seeds: range, stronger: bool) -> tuple[int, int]:
    """How many programs were compared, and how many smallest sets they had."""
    counts = [count for seed in seeds if (count := _agree(seed, stronger)) >= 0]
    return len(counts), sum(counts)


@pytest.mark.parametrize("stronger", [True, False], ids=["repairs", "reductions"])
def test_smallest_sets(stronger: bool) -> None:
    programs, sets = _sweep(range(30), stronger)
    assert programs >= 3 and sets >= programs


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("stronger", [True, False], ids=["repairs", "reductions"])
def test_smallest_sets_of_many_programs(stronger: bool, part: int) -> None:
    programs, sets = _sweep(range(1000 * part + 100, 1000 * part + 600), stronger)
    print(f"{programs} programs with {sets} smallest sets, as brute force finds them")
    assert programs >= 40

"""Repairs and reductions are complete: on small random programs brute force over all strengths finds the same."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, product

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.property import Requirement, judge, requirement
from ptxmm.analysis.strength.changes import Costs
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.joint import Combined, combined
from ptxmm.analysis.strength.known import Executions, Met, Placed, placed
from ptxmm.analysis.strength.repairs import Repairs
from ptxmm.analysis.strength.structure import Step, strengthenings
from ptxmm.analysis.strength.sufficient import minimal_sets
from ptxmm.analysis.strength.superposition import ORDERED, Superposition, superposition
from ptxmm.analysis.strength.trials import Trials
from ptxmm.analysis.words import Property
from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.strengths import Strengths
from ptxmm.formats.patch import Rewrite, patched
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
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


def _brute(
    everything: Superposition, test: Test, candidates: frozenset[Switch], kept: frozenset[Switch], engine: str
) -> set[frozenset[Switch]]:
    """The smallest sets of switches beyond ``kept`` that suffice, every combination decided by an ordinary search."""
    required = requirement(test, model_named("ptx-8.5"), Property.never, Limits())
    sufficient: list[frozenset[Switch]] = []
    forms = [(site, [needs for _, needs in forms.forms]) for site, forms in everything.forms.items()]
    options = sorted(
        {
            frozenset(Switch(*site, step) for (site, _), needs in zip(forms, choice, strict=True) for step in needs)
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


def _trials(test: Test, everything: Superposition, required: Requirement) -> Trials:
    (program,) = combined(test, (), ())
    known = Executions()

    def made(on: Collection[Switch]) -> Placed:
        return placed(program, everything, everything.given.union(on))

    def asked(made: Placed) -> Met | None:
        shown = Family(made.test, {}, model_named("ptx-8.5"), required, Limits()).shown()
        return None if shown is None else known.add(made, shown)

    return Trials(made, known, asked)


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
        minimal_sets(dict.fromkeys(candidates, 1), lambda on: strengths.find(kept | on) is None, Limits().check)
    )
    engine = "z3" if seed % 2 else "enumerate"
    assert found == _brute(everything, test, candidates, kept, engine), program_text(seed)
    if stronger:
        # One of them is found from executions that are met; of the order of a new fence.sc these say nothing.
        named = [switch for switch in sorted(candidates) if everything.step(switch) != "sc"]
        random.Random(seed).shuffle(named)
        tried = _trials(test, everything, required).least(named)
        possible = {chosen for chosen in found if chosen <= set(named)}
        assert tried in possible or (tried is None and not possible), program_text(seed)
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
def test_smallest_sets_of_many_programs(stronger: bool, part: int, shift: int) -> None:
    first = 1000 * part + 100 + shift
    programs, sets = _sweep(range(first, first + 150), stronger)
    print(f"{programs} programs with {sets} smallest sets, as brute force finds them")
    assert programs >= 10


# -- barriers, waits and moves, together with each other and with strengths --

_SHARED = ("ld.shared.u32 r{0}, [s]", "ld.mmio.relaxed.sys.global.u32 r{0}, [x]", "st.shared.u32 [s], {1}",
           "st.mmio.relaxed.sys.global.u32 [x], {1}", "atom.relaxed.cta.shared.exch.b32 r{0}, [s], {1}")  # fmt: skip
_COPY = "cp.async.ca.shared.global [s], [x], 4"


def _structural_text(seed: int) -> str:
    """Threads of one CTA that share a location or two; one that copies asynchronously, with or without waiting; or two
    threads that a third one in another CTA learns of."""
    rng = random.Random(seed)
    bodies: list[list[str]] = []
    kind = rng.random()
    if kind < 0.35:
        flag, look = rng.choice((("", ""), ("relaxed.gpu.", "relaxed.gpu."), ("relaxed.gpu.", "acquire.gpu."),
                                 ("release.gpu.", "relaxed.gpu.")))  # fmt: skip
        first = [f"{rng.choice(('st.mmio.relaxed.sys.global.u32', 'st.relaxed.gpu.global.u32'))} [x], 1"]
        second = [f"st.{flag}global.u32 [f], 1"]
        if rng.random() < 0.3:
            first, second = first + second, ["ld.mmio.relaxed.sys.global.u32 r0, [f]"]
        bodies = [first, second, [f"ld.{look}global.u32 r0, [f]", "ld.mmio.relaxed.sys.global.u32 r1, [x]"]]
    elif kind < 0.6:
        before = ["st.global.u32 [x], 1"] if rng.random() < 0.5 else []
        after = rng.choice(([], ["cp.async.commit_group"], ["cp.async.commit_group", "cp.async.wait_group 0"],
                            ["cp.async.commit_group", "cp.async.wait_group 1"]))  # fmt: skip
        first = [*before, _COPY, *after, "ld.shared.u32 r0, [s]"]
        if "wait_group 0" in " ".join(after) and rng.random() < 0.7:
            first[-2:] = first[:-3:-1]
        bodies = [first, ["ld.shared.u32 r0, [s]"] if rng.random() < 0.3 else []]
    else:
        sizes = rng.choice(((1, 1), (2, 1), (2, 1), (2, 1), (3, 1)))
        for size in sizes:
            bodies.append([rng.choice(_SHARED).format(k, rng.choice((1, 2))) for k in range(size)])
    warp = ", warp 0" if rng.random() < 0.3 else ""
    lines = ["PTX random", "{", "  .shared .u32 s @ cta 0 = 0;", "  .global .u32 x = 7;", "  .global .u32 f = 0;", "}"]
    for number, body in enumerate(body for body in bodies if body):
        place = "cta 1" if kind < 0.35 and number == 2 else f"cta 0{warp}"
        lines += [f"P{number} @ {place} {{", *(f"  {item};" for item in body), "}"]
    return "\n".join(lines) + "\n"


def _structural_program(seed: int) -> Test | None:
    """The same with a condition that holds in some final state, but not with some steps and all strengths."""
    test, model, rng = parse_one(_structural_text(seed)), model_named("ptx-8.5"), random.Random(seed)
    steps = strengthenings(test, model.coverage, Costs())
    if not 2 <= len(steps) <= 9:
        return None
    # Two barriers more often than their share: they repair what one does not.
    chosen = tuple(sorted(rng.sample(range(len(steps)), rng.choice((1, 2, 2)))))
    programs = combined(test, steps, chosen)
    if not programs:
        return None
    everything = superposition(rng.choice(programs).test, model.coverage, stronger=True)
    strong = check(everything.program(everything.switches), model, all_state=True)
    if not strong.outcomes or "deadlock" in strong.flags:
        return None
    wanted = [{**o.registers, **o.memory} for o in strong.outcomes]
    found = [{**o.registers, **o.memory} for o in check(test, model, all_state=True).outcomes]
    bad = [state for state in found if state not in wanted]
    if not bad:
        return None
    if rng.random() < 0.5:
        terms = [" /\\ ".join(f"{name} == {value}" for name, value in state.items()) for state in bad]
        condition = " \\/ ".join(f"({term})" for term in terms)
    else:
        condition = " /\\ ".join(f"{name} == {value}" for name, value in rng.choice(bad).items())
    return parse_one(_structural_text(seed) + f"exists ({condition})\n")


_Repair = tuple[tuple[int, ...], frozenset[Switch]]
"""Steps and switches."""


class _Made(Struct, frozen=True):
    """A program of some steps and switches, as brute force makes it: ``strengths`` by what it is that has them."""

    steps: tuple[int, ...]
    program: Combined
    everything: Superposition
    added: frozenset[Switch]

    def strengths(self, other: Combined) -> set[tuple[object, ...]]:
        """The steps of instructions, each by the instruction; of fences that are added by the next instruction that can
        be ordered and that ``other`` has, too."""
        found: set[tuple[object, ...]] = set()
        for switch in self.added:
            place = self.everything.places[switch.site]
            name = self.everything.step(switch)
            thread, first = place.site
            origins = self.program.origins[thread]
            if not place.added:
                found.add((thread, origins[first].index, name))
                continue
            body = self.program.test.threads[thread].body
            for index in range(first, len(body)):
                if isinstance(body[index], ORDERED) and origins[index] in other.origins[thread]:
                    found.add((thread, "before", origins[index], place.rank, name))
                    break
        return found

    def smaller(self, other: _Made) -> bool:
        """Whether this one has fewer steps than ``other``, in the same order, and no strengths that it has not."""
        if len(self.steps) >= len(other.steps) or not set(self.steps) <= set(other.steps):
            return False
        if tuple(step for step in other.steps if step in self.steps) != self.steps:
            return False
        return self.strengths(self.program) <= other.strengths(self.program)


def _is_repair(program: Test, required: Requirement, engine: str = "z3") -> bool:
    decided = judge(program, model_named("ptx-8.5"), required, Limits(), engine)
    return bool(decided.holds) and not decided.vacuous and not decided.deadlock


def _all_made(test: Test, steps: Sequence[Step], required: Requirement, engine: str) -> set[_Repair] | None:
    """The smallest repairs with at most two steps, every combination of strengths decided by an ordinary search; that
    more strengths never hurt is made use of only where the strongest program is no repair. None: too many."""
    made: list[_Made] = []
    total = 0
    numbers = range(len(steps))
    for chosen in ((), *((n,) for n in numbers), *combinations(numbers, 2)):
        for program in combined(test, steps, chosen):
            everything = superposition(program.test, model_named("ptx-8.5").coverage, stronger=True)
            given, sufficient = everything.given, list[frozenset[Switch]]()
            if not _is_repair(everything.program(everything.switches), required):
                continue
            forms = [(site, [needs for _, needs in item.forms]) for site, item in everything.forms.items()]
            choices = product(*(needs for _, needs in forms))
            options = {
                frozenset(Switch(*site, step) for (site, _), needs in zip(forms, choice, strict=True) for step in needs)
                for choice in choices
            }
            total += len(options)
            if total > 4 * MOST:
                return None
            for on in sorted((on for on in options if given <= on), key=len):
                if any(known <= on for known in sufficient):
                    continue
                if _is_repair(everything.program(on), required, engine):
                    sufficient.append(on)
                    made.append(_Made(program.chosen, program, everything, on - given))
    least = [one for one in made if not any(other.smaller(one) for other in made)]
    return {(one.steps, one.added) for one in least}


def _agree_on_repairs(seed: int) -> tuple[int, int]:
    """Compare for one program; the number of repairs and of those with several steps, or one and strengths; or (-1, 0)
    where brute force is not possible."""
    model = model_named("ptx-8.5")
    test = _structural_program(seed)
    if test is None:
        return -1, 0
    required = requirement(test, model, Property.never, Limits())
    costs = Costs()
    steps = strengthenings(test, model.coverage, costs)
    expected = _all_made(test, steps, required, "enumerate" if seed % 4 == 0 else "z3")
    if expected is None:
        return -1, 0
    strict = replace(required, deadlock=True)

    def problem(number: int, program: Test, variations: Mapping[Site, Variation]) -> Family:
        return Family(program, variations, model, strict if number else required, Limits())

    repairs = Repairs(test, steps, model.coverage, costs, problem, Limits().check, most=2)
    found: set[_Repair] = set()
    last = 0
    while repairs.cost is not None:
        assert repairs.cost >= last
        last = repairs.cost
        repair = repairs.advance()
        if repair is not None and _is_repair(repair.program, required):
            assert repair.cost == last
            repairs.accept(repair)
            found.add((repair.chosen, repair.added))
            again = [Rewrite(c.number, c.index, c.kind == "insert", c.op) for c in repair.changes]
            assert patched(test, again, repair.program) is not None
    assert found == expected, test.text
    return len(found), sum(bool(chosen and (len(chosen) > 1 or added)) for chosen, added in found)


def _joint_sweep(seeds: range) -> tuple[int, int, int]:
    """How many programs were compared, how many repairs they had, and how many of these combine steps."""
    counts = [count for seed in seeds if (count := _agree_on_repairs(seed))[0] >= 0]
    return len(counts), sum(c[0] for c in counts), sum(c[1] for c in counts)


def test_joint_repairs() -> None:
    programs, repairs, joint = _joint_sweep(range(40, 56))
    assert programs >= 3 and repairs > joint > 0


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_joint_repairs_of_many_programs(part: int, shift: int) -> None:
    first = 200 * part + 100 + shift
    programs, repairs, joint = _joint_sweep(range(first, first + 80))
    print(f"{programs} programs with {repairs} repairs, {joint} that combine steps, as brute force does")
    assert programs >= 4 and repairs > joint > 0

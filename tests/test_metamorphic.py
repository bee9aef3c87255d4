"""Changes of a program of which the effect on its final states is known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxmm.formats.litmus
from ptxmm.engines.result import Observed
from ptxmm.program.test import Test
from tests import random_families, reference
from tests.random_programs import MODELS, STRONGER, Line, Program, programs, seeded
from tests.reference import Final, everything
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

SCOPES = ("cta", "cluster", "gpu", "sys")


def final_states(program: Program | Test, model: str, engine: str) -> frozenset[Final]:
    """All final states, from an engine or from the reference."""
    test = program if isinstance(program, Test) else parse_one(program.text())
    if engine == "reference":
        return frozenset(reference.outcomes(test, model, seconds=2))
    answer = ask(engine, test, model_named(model), seconds=5)
    if not answer.complete:
        raise reference.TooSlow
    return answer.states


def stronger(program: Program) -> Iterator[Program]:
    """Each way to give one instruction a stronger order (a weak one that becomes strong also a scope)."""
    for t, thread in enumerate(program.threads):
        for i, line in enumerate(thread):
            if line.family and line.sem:
                for sem in STRONGER[line.family].get(line.sem, ()):
                    for scope in (line.scope,) if line.scope else ("cta", "sys"):
                        yield program.change(t, i, replace(line, sem=sem, scope=scope))


def wider(program: Program, model: str) -> Iterator[Program]:
    """Each way to give one instruction a wider scope."""
    for t, thread in enumerate(program.threads):
        for i, line in enumerate(thread):
            if line.scope:
                scopes = SCOPES[:2] if line.head.startswith("mbarrier") else SCOPES
                for scope in scopes[scopes.index(line.scope) + 1 :]:
                    if scope != "cluster" or model in ("ptx-8.5", "sc"):
                        yield program.change(t, i, replace(line, scope=scope))


def fenced(program: Program, model: str) -> Iterator[Program]:
    """Each way to add one fence before an instruction."""
    fences = [Line("fence", "", sem, scope) for sem in ("acq_rel", "sc") for scope in ("cta", "gpu", "sys")]
    fences += [] if model == "ptx-6.0" else [Line("fence.proxy.alias")]
    if model in ("ptx-8.5", "sc") and not program.dialect:
        fences += [Line(f"fence.proxy.async{space}") for space in ("", ".global", ".shared::cta")]
        fences.append(Line("fence.mbarrier_init.release.cluster"))
    for t, thread in enumerate(program.threads):
        for i, line in enumerate(thread):
            for fence in fences:
                if line.head and not line.label:
                    yield program.change(t, i, fence, line)


def completed(program: Program) -> Iterator[Program]:
    """Each way to make a barrier release, to wait for more asynchronous operations, or for earlier grids."""
    waits = [Line("cp.async.wait_all"), Line("cp.async.bulk.wait_group", " 0"), Line("griddepcontrol.wait")]
    for t, thread in enumerate(program.threads):
        for i, line in enumerate(thread):
            if line.head == "barrier.cluster.arrive" and line.sem == "relaxed":
                yield program.change(t, i, replace(line, sem="release"))
            if line.head.endswith("wait_group.read"):
                yield program.change(t, i, replace(line, head=line.head.removesuffix(".read")))
            if "wait_group" in line.head and line.tail == " 1":
                yield program.change(t, i, replace(line, tail=" 0"))
            if line.head and not line.label:
                for wait in waits:
                    yield program.change(t, i, wait, line)
    for place in {p.partition("overlap")[0] for p in program.placements if "overlap" in p}:
        grid = place.partition("grid ")[2]
        placements = tuple(p.replace(f"grid {grid}overlap", f"grid {grid}") for p in program.placements)
        yield replace(program, placements=placements)


def strengthened(program: Program, model: str) -> list[Program]:
    """All programs that are stronger in one place."""
    return [*stronger(program), *wider(program, model), *fenced(program, model)]


def by_name(test: Test, states: frozenset[Final], rename: Callable[[str], str]) -> set[frozenset[object]]:
    """Final states as sets of (what, value), with names as ``rename`` gives them and threads by their name.

    Tensor maps are left out: an address is in them, which may change with the names.
    """
    observed: Observed = everything(test)
    names: list[object] = [(test.threads[t.thread].name, rename(t.register)) for t in observed.registers]
    names += [None if test.objects[t.key].tensormap else (rename(t.key), t.index) for t in observed.memory]
    return {frozenset((n, v) for n, v in zip(names, state, strict=True) if n is not None) for state in states}


@dataclass(frozen=True, slots=True)
class Share:
    """Some random programs: of a family, or of scalar accesses; those with these numbers, for ``budget`` seconds."""

    family: str | None
    seeds: range
    engine: str
    budget: float

    def programs(self, tally: Tally, what: str) -> Iterator[tuple[int, Program, str]]:
        """The programs with their numbers and models, until the time is up; the count goes to the summary."""
        stop, count = time.monotonic() + self.budget, 0
        for seed in self.seeds:
            if time.monotonic() > stop:
                break
            if self.family is None:
                model = MODELS[seed % len(MODELS)]
                yield seed, seeded(seed, model), model
            else:
                yield seed, random_families.seeded(self.family, seed), "ptx-8.5"
            count += 1
        name = f"{self.family}, " if self.family else ""
        tally.notes.append(f"metamorphic: {name}{what}, {self.engine}: {count} programs")


def check_strengthening(share: Share, tally: Tally) -> None:
    for seed, program, model in share.programs(tally, "stronger orders, wider scopes, more fences"):
        rng = random.Random(seed)
        try:
            before = final_states(program, model, share.engine)
            options = strengthened(program, model)
            more = list(completed(program)) if share.family else []
            for changed in [*rng.sample(options, min(3, len(options))), *rng.sample(more, min(2, len(more)))]:
                after = final_states(changed, model, share.engine)
                texts = f"{model}\n{program.text()}\n{changed.text()}"
                assert after <= before, f"{texts}\nnew: {sorted(after - before)[:5]}"
        except reference.TooSlow:
            continue


TABLE = {"x": "alpha", "y": "beta", "z": "gamma", "a": "delta", "s": "sigma", "t": "tau"}
OTHERS = {"f": "phi", "g": "kappa", "b": "omega", "c": "chi"}


def rename_scalar(name: str) -> str:
    return TABLE.get(name) or ("q" + name if name[0] == "p" else name[:-1] + "7" + name[-1])


def rename_family(name: str) -> str:
    """As ``random_families.renamed`` does; variables may have the name of their CTA before their own."""
    path, colon, own = name.rpartition(":")
    return path + colon + ((TABLE | OTHERS).get(own) or f"{own[0]}7{own[1:]}")


def check_same(share: Share, tally: Tally) -> None:
    """Renaming, permuting threads, and printing and reading again."""
    for seed, program, model in share.programs(tally, "renaming, permuting, printing"):
        rng, test = random.Random(seed), parse_one(program.text())
        order = list(range(len(program.names)))
        # lanes of a warp are numbered in the order of the threads
        if not any(i.head == "bar.warp.sync" and i.tail != " 0xffffffff" for t in program.threads for i in t):
            rng.shuffle(order)
        rename = rename_family if share.family else rename_scalar
        other_names = random_families.renamed(program, TABLE | OTHERS) if share.family else program.rename(rename)
        try:
            before = final_states(test, model, share.engine)
            named = by_name(test, before, lambda n: n)
            other = parse_one(program.permute(order).text())
            assert by_name(other, final_states(other, model, share.engine), lambda n: n) == named, program.text()
            renamed = parse_one(other_names.text())
            after = by_name(renamed, final_states(renamed, model, share.engine), lambda n: n)
            assert after == by_name(test, before, rename), other_names.text()
            printed = ptxmm.formats.litmus.write(test)
            assert final_states(parse_one(printed), model, share.engine) == before, f"{program.text()}\n{printed}"
        except reference.TooSlow:
            continue


def check_sc(share: Share, tally: Tally) -> None:
    """Sequentially consistent executions are executions of every model.

    It holds for all programs that every model covers: choose for co the order in which the writes are performed, and
    for Fence-SC that of the fences; barriers synchronize in that order as well. Only the models' own order of initial
    writes and of atomicity is asked for, and SC has both.
    """
    for _seed, program, own in share.programs(tally, "sc is a subset"):
        model = own if own != "sc" else "ptx-7.5"
        try:
            test = parse_one(program.text())
            allowed = final_states(test, model, share.engine)
            sc = final_states(test, "sc", share.engine)
        except reference.TooSlow:
            continue
        assert sc <= allowed, f"{model}\n{program.text()}\nonly sc: {sorted(sc - allowed)[:5]}"


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_printing_is_a_fixpoint(model: str, data: st.DataObject) -> None:
    """What is printed reads as the same test, and prints as the same text."""
    test = parse_one(data.draw(programs(model)).text())
    printed = ptxmm.formats.litmus.write(test)
    again = parse_one(printed)
    assert ptxmm.formats.litmus.write(again) == printed
    assert everything(again) == everything(test)


@pytest.mark.parametrize("name", random_families.NAMES)
def test_printing_families_is_a_fixpoint(name: str) -> None:
    for seed in range(30_000, 30_050):
        test = parse_one(random_families.seeded(name, seed).text())
        printed = ptxmm.formats.litmus.write(test)
        again = parse_one(printed)
        assert ptxmm.formats.litmus.write(again) == printed
        assert everything(again) == everything(test)


CHECKS = {"strengthening": check_strengthening, "same": check_same, "sc": check_sc}


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
@pytest.mark.parametrize("check", CHECKS)
def test_metamorphic(check: str, engine: str, tally: Tally) -> None:
    CHECKS[check](Share(None, range(20_000, 20_060), engine, 8), tally)


@pytest.mark.parametrize("name", random_families.NAMES)
@pytest.mark.parametrize(("check", "engine"), [("strengthening", "enumerate"), ("same", "solve"), ("sc", "enumerate")])
def test_metamorphic_families(check: str, engine: str, name: str, tally: Tally) -> None:
    CHECKS[check](Share(name, range(20_000, 20_040), engine, 2), tally)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["solve", "enumerate", "reference"])
@pytest.mark.parametrize("check", CHECKS)
def test_metamorphic_many(check: str, engine: str, tally: Tally) -> None:
    CHECKS[check](Share(None, range(30_000, 31_000), engine, 1200), tally)


@pytest.mark.slow
@pytest.mark.parametrize("name", random_families.NAMES)
@pytest.mark.parametrize("engine", ["solve", "enumerate", "reference"])
@pytest.mark.parametrize("check", CHECKS)
def test_metamorphic_families_many(check: str, engine: str, name: str, tally: Tally) -> None:
    CHECKS[check](Share(name, range(30_000, 30_200), engine, 150), tally)

"""Changes of a program of which the effect on its final states is known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxmm.formats.litmus
from ptxmm.engines.result import Observed
from ptxmm.program.test import Test
from tests import reference
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
                for scope in SCOPES[SCOPES.index(line.scope) + 1 :]:
                    if scope != "cluster" or model in ("ptx-8.5", "sc"):
                        yield program.change(t, i, replace(line, scope=scope))


def fenced(program: Program, model: str) -> Iterator[Program]:
    """Each way to add one fence before an instruction."""
    fences = [Line("fence", "", sem, scope) for sem in ("acq_rel", "sc") for scope in ("cta", "gpu", "sys")]
    fences += [] if model == "ptx-6.0" else [Line("fence.proxy.alias")]
    for t, thread in enumerate(program.threads):
        for i, line in enumerate(thread):
            for fence in fences:
                if line.head and not line.label:
                    yield program.change(t, i, fence, line)


def strengthened(program: Program, model: str) -> list[Program]:
    """All programs that are stronger in one place."""
    return [*stronger(program), *wider(program, model), *fenced(program, model)]


def by_name(test: Test, states: frozenset[Final], rename: Callable[[str], str]) -> set[frozenset[object]]:
    """Final states as sets of (what, value), with names as ``rename`` gives them and threads by their name."""
    observed: Observed = everything(test)
    names: list[object] = [(test.threads[t.thread].name, rename(t.register)) for t in observed.registers]
    names += [(rename(t.key), t.index) for t in observed.memory]
    return {frozenset(zip(names, state, strict=True)) for state in states}


def chosen(seeds: range, tally: Tally, engine: str, what: str, budget: float) -> Iterator[tuple[int, Program, str]]:
    """Programs of a test, the models in turn, until the time is up; the count goes to the summary."""
    stop, count = time.monotonic() + budget, 0
    for seed in seeds:
        if time.monotonic() > stop:
            break
        model = MODELS[seed % len(MODELS)]
        yield seed, seeded(seed, model), model
        count += 1
    tally.notes.append(f"metamorphic: {what}, {engine}: {count} programs")


def check_strengthening(seeds: range, engine: str, tally: Tally, budget: float) -> None:
    for seed, program, model in chosen(seeds, tally, engine, "stronger orders, wider scopes, more fences", budget):
        rng = random.Random(seed)
        try:
            before = final_states(program, model, engine)
            for changed in rng.sample(options := strengthened(program, model), min(3, len(options))):
                after = final_states(changed, model, engine)
                texts = f"{model}\n{program.text()}\n{changed.text()}"
                assert after <= before, f"{texts}\nnew: {sorted(after - before)[:5]}"
        except reference.TooSlow:
            continue


def check_same(seeds: range, engine: str, tally: Tally, budget: float) -> None:
    """Renaming, permuting threads, and printing and reading again."""
    table = {"x": "alpha", "y": "beta", "z": "gamma", "a": "delta", "s": "sigma", "t": "tau"}

    def rename(name: str) -> str:
        return table.get(name) or ("q" + name if name[0] == "p" else name[:-1] + "7" + name[-1])

    for seed, program, model in chosen(seeds, tally, engine, "renaming, permuting, printing", budget):
        rng, test = random.Random(seed), parse_one(program.text())
        order = list(range(len(program.names)))
        rng.shuffle(order)
        try:
            before = final_states(test, model, engine)
            named = by_name(test, before, lambda n: n)
            other = parse_one(program.permute(order).text())
            assert by_name(other, final_states(other, model, engine), lambda n: n) == named, program.text()
            renamed = parse_one(program.rename(rename).text())
            after = by_name(renamed, final_states(renamed, model, engine), lambda n: n)
            assert after == by_name(test, before, rename), program.rename(rename).text()
            printed = ptxmm.formats.litmus.write(test)
            assert final_states(parse_one(printed), model, engine) == before, f"{program.text()}\n{printed}"
        except reference.TooSlow:
            continue


def check_sc(seeds: range, engine: str, tally: Tally, budget: float) -> None:
    """Sequentially consistent executions are executions of every model.

    It holds for all programs that every model covers: choose for co the order in which the writes are performed, and
    for Fence-SC that of the fences; barriers synchronize in that order as well. Only the models' own order of initial
    writes and of atomicity is asked for, and SC has both.
    """
    for _seed, program, own in chosen(seeds, tally, engine, "sc is a subset", budget):
        model = own if own != "sc" else "ptx-7.5"
        try:
            test = parse_one(program.text())
            allowed = final_states(test, model, engine)
            sc = final_states(test, "sc", engine)
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


CHECKS = {"strengthening": check_strengthening, "same": check_same, "sc": check_sc}


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
@pytest.mark.parametrize("check", CHECKS)
def test_metamorphic(check: str, engine: str, tally: Tally) -> None:
    CHECKS[check](range(20_000, 20_060), engine, tally, 8)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["solve", "enumerate", "reference"])
@pytest.mark.parametrize("check", CHECKS)
def test_metamorphic_many(check: str, engine: str, tally: Tally) -> None:
    CHECKS[check](range(30_000, 31_000), engine, tally, 1200)

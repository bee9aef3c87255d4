"""Changes of a program of which the effect on its final states is known."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

import ptxmm.formats.litmus
from ptxmm.engines.result import Observed
from ptxmm.errors import PtxmmError
from ptxmm.program.shared.undetermined import writers
from ptxmm.program.shared.windows import in_window
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import unknown_bytes
from tests import random_families, reference
from tests.random_programs import MODELS, STRONGER, Line, Program, programs, seeded
from tests.reference import Final, everything
from tests.reference_dependencies import TooSlow
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

SCOPES = ("cta", "cluster", "gpu", "sys")


def final_states(program: Program | Test, model: str, engine: str) -> frozenset[Final]:
    """All final states, from an engine or from the reference; ``TooSlow`` if they are many, or too many for it."""
    test = program if isinstance(program, Test) else parse_one(program.text())
    if engine == "reference":
        return reference.outcomes(test, model, seconds=2)
    try:
        answer = ask(engine, test, model_named(model), seconds=2, most=300)
    except PtxmmError as error:
        if error.kind not in ("unsupported", "timeout"):
            raise
        raise TooSlow from error
    if not answer.complete:
        raise TooSlow
    return answer.states


def stronger(program: Program) -> Iterator[Program]:
    """Each way to give one instruction a stronger order (a weak one that becomes strong also a scope)."""
    for t, thread in enumerate(program.threads):
        for i, line in enumerate(thread):
            private = any(space in line.tail for space in (".local", ".const", ".param"))  # weak accesses only
            if line.family and line.sem and not private:
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

    An address in a register is taken as a place: where variables lie may change with the order of the threads; a torn
    one as bytes of a place, and an unknown byte as what it is of. Tensor maps, which have addresses in them, are left
    out.
    """
    unknown = unknown_bytes(test)
    # Who writes unknown bytes: a thread, and which of its instructions of the kind it is.
    made = [w.name.partition(" line ")[0] for w in writers(test.threads, test.objects)]
    who = {w.name: (made[n], made[:n].count(made[n])) for n, w in enumerate(writers(test.threads, test.objects))}

    def part(byte: int) -> object:
        name, offset = unknown.get(byte, ("", byte))
        return (rename(name) if name in test.objects else who.get(name), offset)

    def place(value: int) -> object:
        found = test.locate(value)
        if found is not None:
            return rename(found[0].key), found[1]
        inside = in_window(test.objects, value)
        if inside is not None:
            return "window", rename(inside[0].name), inside[1]
        content = value.to_bytes((value.bit_length() + 7) // 8, "little")
        if any(byte in unknown for byte in content):
            return tuple(map(part, content))
        mask = int.from_bytes(bytes(0xFF if byte else 0 for byte in content), "little")
        torn = frozenset(place(address) for address in addresses if value and address & mask == value)
        return (torn, mask) if torn else value

    shown = {value for state in states for value in state}
    addresses = [v for v in shown if test.locate(v) is not None or in_window(test.objects, v) is not None]
    observed: Observed = everything(test)
    names: list[object] = [(test.threads[t.thread].name, rename(t.register)) for t in observed.registers]
    names += [None if test.objects[t.key].tensormap else (rename(t.key), t.index) for t in observed.memory]
    return {frozenset((n, place(v)) for n, v in zip(names, state, strict=True) if n is not None) for state in states}


class Subject(Struct, frozen=True):
    """A random program and who is asked about it; ``family`` is None if it has scalar accesses only."""

    program: Program
    model: str
    engine: str
    family: str | None
    rng: random.Random

    def states(self, program: Program | Test, model: str | None = None) -> frozenset[Final]:
        """All final states of the program or of a changed one; ``TooSlow`` if they are many."""
        return final_states(program, model or self.model, self.engine)


def check_strengthening(subject: Subject) -> None:
    """Stronger orders, wider scopes and more fences take final states away and add none."""
    before = subject.states(subject.program)
    options = strengthened(subject.program, subject.model)
    more = list(completed(subject.program)) if subject.family else []
    check_stronger(subject, before, [*sample(subject, options, 3), *sample(subject, more, 2)])


def sample(subject: Subject, options: list[Program], most: int) -> list[Program]:
    return subject.rng.sample(options, min(most, len(options)))


def check_stronger(subject: Subject, before: frozenset[Final], changes: list[Program]) -> None:
    for changed in changes:
        after = subject.states(changed)
        texts = f"{subject.model}\n{subject.program.text()}\n{changed.text()}"
        assert after <= before, f"{texts}\nnew: {sorted(after - before)[:5]}"


TABLE = {"x": "alpha", "y": "beta", "z": "gamma", "a": "delta", "s": "sigma", "t": "tau"}
OTHERS = {"f": "phi", "g": "kappa", "b": "omega", "c": "chi"}


def rename_scalar(name: str) -> str:
    return TABLE.get(name) or ("q" + name if name[0] == "p" else name[:-1] + "7" + name[-1])


def rename_family(name: str) -> str:
    """As ``random_families.renamed`` does; variables may have the name of their CTA before their own."""
    path, colon, own = name.rpartition(":")
    register = re.fullmatch(r"[rpktdq][0-9]+", own)
    return path + colon + ((TABLE | OTHERS).get(own) or (f"{own[0]}7{own[1:]}" if register else own))


NUMBERED = ("bar.warp.sync", "shfl", "vote", "match", "redux", "elect", "activemask")
"""Instructions for which the lanes of a warp have numbers: in the order of the threads."""


def permuted(subject: Subject) -> list[int]:
    """An order of the threads that changes no meaning."""
    order = list(range(len(subject.program.names)))
    lines = [line for thread in subject.program.threads for line in thread]
    if not any(i.head.startswith(NUMBERED) and i.tail != " 0xffffffff" for i in lines):
        subject.rng.shuffle(order)
    return order


def renamings(subject: Subject) -> tuple[Program, Callable[[str], str]]:
    """The program with other names, and what each name becomes."""
    if subject.family:
        return random_families.renamed(subject.program, TABLE | OTHERS), rename_family
    return subject.program.rename(rename_scalar), rename_scalar


def check_same(subject: Subject) -> None:
    """Renaming, permuting threads, and printing and reading again change nothing."""
    test = parse_one(subject.program.text())
    renamed, rename = renamings(subject)
    before = subject.states(test)
    named = by_name(test, before, lambda n: n)
    other = parse_one(subject.program.permute(permuted(subject)).text())
    assert by_name(other, subject.states(other), lambda n: n) == named, subject.program.text()
    changed = parse_one(renamed.text())
    assert by_name(changed, subject.states(changed), lambda n: n) == by_name(test, before, rename), renamed.text()
    printed = ptxmm.formats.litmus.write(test)
    assert subject.states(parse_one(printed)) == before, f"{subject.program.text()}\n{printed}"


def check_sc(subject: Subject) -> None:
    """Sequentially consistent executions are executions of every model.

    It holds for all programs that every model covers: choose for co the order in which the writes are performed, and
    for Fence-SC that of the fences; barriers synchronize in that order as well. Only the models' own order of initial
    writes and of atomicity is asked for, and SC has both.
    """
    model = subject.model if subject.model != "sc" else "ptx-7.5"
    test = parse_one(subject.program.text())
    allowed, sc = subject.states(test, model), subject.states(test, "sc")
    assert sc <= allowed, f"{model}\n{subject.program.text()}\nonly sc: {sorted(sc - allowed)[:5]}"


def check_all(subject: Subject) -> None:
    """One change of each sort: made stronger; renamed, permuted, printed and read again; sequentially consistent."""
    test = parse_one(subject.program.text())
    before = subject.states(test)
    options = [*strengthened(subject.program, subject.model), *completed(subject.program)]
    check_stronger(subject, before, sample(subject, options, 1))
    renamed, rename = renamings(subject)
    changed = parse_one(ptxmm.formats.litmus.write(parse_one(renamed.permute(permuted(subject)).text())))
    assert by_name(changed, subject.states(changed), lambda n: n) == by_name(test, before, rename), renamed.text()
    sc = subject.states(test, "sc")
    assert sc <= before, f"{subject.program.text()}\nonly sc: {sorted(sc - before)[:5]}"


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


CHECKS: dict[str, Callable[[Subject], None]] = {
    "strengthening": check_strengthening,
    "same": check_same,
    "sc": check_sc,
    "all": check_all,
}


class Share(Struct, frozen=True):
    """Some random programs: of a family, or of scalar accesses; those with these numbers, until ``budget`` is
    up, in seconds."""

    family: str | None
    seeds: range
    engines: tuple[str, ...]
    budget: float = inf

    def subjects(self) -> Iterator[Subject]:
        """The programs until the time is up; the engines take turns."""
        stop, seen = time.monotonic() + self.budget, set()
        for seed in self.seeds:
            model = MODELS[seed % len(MODELS)] if self.family is None else "ptx-8.5"
            made = random_families.seeded(self.family, seed) if self.family else seeded(seed, model)
            if time.monotonic() > stop:
                break
            if made not in seen:
                seen.add(made)
                yield Subject(made, model, self.engines[seed % len(self.engines)], self.family, random.Random(seed))

    def check(self, name: str, tally: Tally) -> int:
        """How many programs have passed the check ``name``; the count goes to the summary."""
        count = big = 0
        for subject in self.subjects():
            try:
                CHECKS[name](subject)
            except TooSlow:
                big += 1
            else:
                count += 1
        who = f"{self.family or 'scalar'}, {name}, {' and '.join(self.engines)}"
        tally.notes.append(f"metamorphic: {who}: {count} programs ({big} left out as big)")
        return count


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
@pytest.mark.parametrize("check", ["strengthening", "same", "sc"])
def test_metamorphic(check: str, engine: str, tally: Tally) -> None:
    assert Share(None, range(20_000, 20_030), (engine,)).check(check, tally) >= 20


@pytest.mark.share(2)
@pytest.mark.parametrize("name", random_families.NAMES)
@pytest.mark.parametrize(("check", "engine"), [("strengthening", "enumerate"), ("same", "solve"), ("sc", "enumerate")])
def test_metamorphic_families(check: str, engine: str, name: str, tally: Tally) -> None:
    assert Share(name, range(20_000, 20_004), (engine,)).check(check, tally)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["solve", "enumerate", "reference"])
@pytest.mark.parametrize("check", ["strengthening", "same", "sc"])
def test_metamorphic_many(check: str, engine: str, tally: Tally, shift: int) -> None:
    assert Share(None, range(30_000 + shift, 30_100 + shift), (engine,)).check(check, tally) >= 50


@pytest.mark.slow
@pytest.mark.parametrize("name", random_families.NAMES)
def test_metamorphic_families_many(name: str, tally: Tally, shift: int) -> None:
    """All properties of 60 programs of each family, or of those that are different among as many."""
    share = Share(name, range(30_000 + shift, 30_060 + shift), ("enumerate", "enumerate", "solve"))
    assert share.check("all", tally) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("name", random_families.NAMES)
@pytest.mark.parametrize("check", ["strengthening", "same", "sc"])
def test_metamorphic_families_of_the_reference(check: str, name: str, tally: Tally, shift: int) -> None:
    assert Share(name, range(30_000 + shift, 30_010 + shift), ("reference",)).check(check, tally) >= 3

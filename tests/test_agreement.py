"""The two engines and the reference on random programs: the same final states, every one of them confirmed."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator
from types import ModuleType

import pytest
from msgspec import Struct

from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.test import Test
from tests import random_families, reference, reference_cases, reference_cases_warps
from tests.random_programs import MODELS, seeded
from tests.reference_dependencies import TooSlow
from tests.support import Answer, ask, model_named, parse_one, straight
from tests.tally import Tally

MANY = 400  # programs with more final states than this are left to the slow run


def answers(test: Test, model: str, bounds: Bounds) -> dict[str, Answer]:
    """What both engines say, or nothing if one does not finish; one may refuse a program that is too big for it."""
    result = {}
    for engine in ("solve", "enumerate"):
        try:
            answer = ask(engine, test, model_named(model), seconds=bounds.seconds, most=bounds.many)
        except Timeout:
            return {}
        except PtxmmError as error:
            if error.kind != "unsupported":
                raise
            return {}
        if not answer.complete:
            return {}
        result[engine] = answer
    return result


def difference(text: str, model: str, states: dict[str, frozenset[reference.Final]]) -> str:
    """A report of which states only some of the three have."""
    test = parse_one(text)
    what = reference.everything(test)
    names = [f"P{t.thread}:{t.register}" for t in what.registers] + [f"{t.key}[{t.index}]" for t in what.memory]
    lines = [f"{model}: the final states differ ({', '.join(names)})", text]
    for who, mine in states.items():
        for other, theirs in states.items():
            if mine - theirs:
                lines.append(f"{who} has, {other} has not: {sorted(mine - theirs)[:5]} ({len(mine - theirs)} in all)")
    return "\n".join(lines)


Item = tuple[str, str, str]
"""What a program is called in a report, its text, the model."""


def plain(seeds: range) -> Iterator[Item]:
    """Programs of scalar accesses, the models in turn."""
    for seed in seeds:
        model = MODELS[seed % len(MODELS)]
        yield f"seed {seed}", seeded(seed, model).text(), model


OLDER = {(name, 3): "ptx-7.5" for name in ("vectors", "mixed_sizes", "warps", "grids")} | {("warps", 11): "ptx-6.0"}
"""Families of which an older model covers all: every sixteenth program is for it."""


def family(name: str, seeds: range) -> Iterator[Item]:
    """Different programs of a family, some for the models beside ptx-8.5."""
    seen: set[str] = set()
    for seed in seeds:
        text = random_families.seeded(name, seed).text()
        if text not in seen:
            seen.add(text)
            model = "sc" if seed % 8 == 7 else OLDER.get((name, seed % 16), "ptx-8.5")
            yield f"{name} {seed}", text, model


class Bounds(Struct, frozen=True):
    """``seconds`` for each engine on one program, ``budget`` in all; a program with more than ``many`` final states is
    left out. It ends with ``enough`` programs."""

    seconds: float
    budget: float
    many: int = 10**9
    enough: int = 10**9


def compare(what: str, items: Iterable[Item], tally: Tally, bounds: Bounds) -> int:
    """Compare on ``items`` until the time is up; the number of programs compared in full."""
    compared = unfinished = confirmed = 0
    stop = time.monotonic() + bounds.budget
    for name, text, model in items:
        if time.monotonic() > stop or compared == bounds.enough:
            break
        test = parse_one(text)
        engines = answers(test, model, bounds)  # first, as they know soonest what is too big
        if not engines:
            unfinished += 1
            continue
        try:
            found, flags = reference.flagged(test, model, seconds=bounds.seconds)
            more = reference.unfinished(test, model, seconds=bounds.seconds)
        except TooSlow:
            unfinished += 1
            continue
        states = {engine: answer.states for engine, answer in engines.items()} | {"reference": frozenset(found)}
        assert len(set(states.values())) == 1, f"{name}: " + difference(text, model, states)
        solved = engines["solve"]
        one, other = solved.comparable(), engines["enumerate"].comparable()
        assert one[1:] == other[1:], f"{name}, {model}: {one[1:]} != {other[1:]}\n{text}"
        if more is not None:
            mine = frozenset(flags | more[0]), more[1]
            assert mine == (solved.flags, solved.undefined), f"{name}, {model}: {mine} != {one[-2:]}\n{text}"
        else:  # an execution that does not end may have others
            all_end = straight(test) and not (solved.deadlock or solved.undefined)
            assert flags == solved.flags if all_end else flags <= solved.flags, f"{name}, {model}: {flags}\n{text}"
        compared += 1
        confirmed += sum(len(answer.states) for answer in engines.values())
    tally.notes.append(
        f"random programs, {what}: solve = enumerate = reference on {compared} "
        f"({confirmed} outcomes confirmed, {unfinished} left out as big)"
    )
    return compared


def test_random_programs(tally: Tally) -> None:
    """A share for every run."""
    count = compare("scalar", plain(range(70)), tally, Bounds(2, 60, MANY))
    assert count >= 35


@pytest.mark.parametrize("name", random_families.NAMES)
def test_random_families(name: str, tally: Tally) -> None:
    """A share of each family for every run."""
    count = compare(name, family(name, range(9)), tally, Bounds(1, 20, MANY))
    assert count >= 4


@pytest.mark.usefixtures("lazy")
@pytest.mark.parametrize("name", ["scalar", "fences", "atomics"])
def test_what_is_not_written_out(name: str, tally: Tally) -> None:
    items = plain(range(200, 225)) if name == "scalar" else family(name, range(25))
    assert compare(f"{name}, not written out", items, tally, Bounds(2, 60, MANY)) >= 12


@pytest.mark.slow
@pytest.mark.usefixtures("lazy")
@pytest.mark.parametrize("name", ["scalar", "fences", "atomics", "torn", "mbarriers"])
def test_much_that_is_not_written_out(name: str, tally: Tally, shift: int) -> None:
    """1,250 programs in all."""
    seeds = range(200_000 + shift, 202_000 + shift)
    items = plain(seeds) if name == "scalar" else family(name, seeds)
    assert compare(f"{name}, not written out", items, tally, Bounds(2, 5_000, 1000, enough=250)) == 250


@pytest.mark.parametrize("model", ["ptx-8.5", "sc"])
@pytest.mark.parametrize("cases", [reference_cases, reference_cases_warps], ids=["memory", "warps"])
def test_rare_programs(cases: ModuleType, model: str, tally: Tally) -> None:
    items = [(name, f"PTX case\n{textwrap.dedent(text).strip()}\n", model) for name, text in cases.CASES.items()]
    assert compare(f"by hand, {model}", items, tally, Bounds(20, 600)) == len(items)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_many_random_programs(share: int, tally: Tally, shift: int) -> None:
    """2,400 programs in all."""
    first = 100_000 + share * 5_000 + shift
    items = plain(range(first, first + 5_000))
    assert compare("scalar", items, tally, Bounds(2, 20_000, 1000, enough=600)) == 600


@pytest.mark.slow
@pytest.mark.parametrize("name", random_families.NAMES)
def test_many_random_families(name: str, tally: Tally, shift: int) -> None:
    items = family(name, range(10_000 + shift, 12_000 + shift))
    assert compare(name, items, tally, Bounds(1, 5_000, 1000, enough=250)) == 250

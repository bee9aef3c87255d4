"""The two engines and the reference on random programs: the same final states, every one of them confirmed."""

from __future__ import annotations

import time

import pytest

from ptxmm.errors import PtxmmError, Timeout
from tests import reference
from tests.random_programs import MODELS, seeded
from tests.support import Answer, ask, model_named, parse_one
from tests.tally import Tally

MANY = 400  # programs with more final states than this are left to the slow run


def answers(text: str, model: str, seconds: float) -> dict[str, Answer]:
    """What the engines say, as far as they finish; an engine may refuse a program that is too big for it."""
    test, result = parse_one(text), {}
    for engine in ("solve", "enumerate"):
        try:
            answer = ask(engine, test, model_named(model), seconds=seconds)
        except Timeout:
            continue
        except PtxmmError as error:
            if error.kind != "unsupported":
                raise
            continue
        if answer.complete:
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


def compare(seeds: range, tally: Tally, *, with_reference: bool, seconds: float, budget: float, many: int) -> int:
    """Compare on the programs with these numbers, the models in turn; the number of programs compared in full."""
    compared = unfinished = confirmed = 0
    stop = time.monotonic() + budget
    for seed in seeds:
        if time.monotonic() > stop:
            break
        model = MODELS[seed % len(MODELS)]
        text = seeded(seed, model).text()
        states: dict[str, frozenset[reference.Final]] = {}
        if with_reference:
            try:
                states["reference"] = frozenset(reference.outcomes(parse_one(text), model, seconds=seconds))
            except reference.TooSlow:
                unfinished += 1
                continue
            if len(states["reference"]) > many:
                unfinished += 1
                continue
        engines = answers(text, model, seconds)
        if len(engines) < 2:
            unfinished += 1
            continue
        states |= {engine: answer.states for engine, answer in engines.items()}
        assert len(set(states.values())) == 1, f"seed {seed}: " + difference(text, model, states)
        one, other = engines["solve"].comparable(), engines["enumerate"].comparable()
        assert one[1:] == other[1:], f"seed {seed}, {model}: {one[1:]} != {other[1:]}\n{text}"
        compared += 1
        confirmed += sum(len(answer.states) for answer in engines.values())
    who = "solve = enumerate = reference" if with_reference else "solve = enumerate"
    tally.notes.append(
        f"random programs: {who} on {compared} ({confirmed} outcomes confirmed, {unfinished} programs left out as big)"
    )
    return compared


def test_random_programs(tally: Tally) -> None:
    """A share for every run."""
    count = compare(range(300), tally, with_reference=True, seconds=2, budget=60, many=MANY)
    assert count >= 100


@pytest.mark.slow
def test_many_random_programs_with_the_reference(tally: Tally) -> None:
    count = compare(range(10_000, 12_300), tally, with_reference=True, seconds=10, budget=10_000, many=3000)
    assert count >= 2000


@pytest.mark.slow
def test_very_many_random_programs(tally: Tally) -> None:
    count = compare(range(100_000, 110_400), tally, with_reference=False, seconds=20, budget=20_000, many=10**9)
    assert count >= 10_000

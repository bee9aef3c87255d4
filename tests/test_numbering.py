"""Interchangeable threads that are numbered by their atomic operations: the final states are those of all orders."""

from __future__ import annotations

import random
from itertools import repeat

import pytest

from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.symbolic.numbering import known_before
from ptxmm.engines.symbolic.problem import Problem, read_as
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.events.symbolic.machine import Known
from ptxmm.events.symbolic.symmetry import interchangeable
from ptxmm.program.test import Test
from ptxmm.relations.formula import TRUE
from tests import reference
from tests.benchmarks import programs
from tests.reference_dependencies import TooSlow
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

MODELS = ("ptx-8.5", "ptx-8.5", "ptx-7.5", "ptx-6.0", "sc")
SCOPES = ("cta", "gpu", "gpu", "sys")


def body(rng: random.Random, length: int) -> list[str]:
    """The instructions of a thread: atomic operations on two locations, other accesses, loops that wait."""
    lines: list[str] = []
    for n in range(length):
        roll, place, scope = rng.random(), rng.choice("ccx"), rng.choice(SCOPES)
        value = rng.choice(["1", "2", *(f"r{k}" for k in range(n))])
        guard = f"@p{rng.randrange(n)} " if n and rng.random() < 0.2 else ""
        if roll < 0.55:
            op = rng.choice(("add", "add", "add", "exch", "max", "cas"))
            operands = f"{rng.randrange(2)}, {value}" if op == "cas" else value
            sem = rng.choice(("relaxed", "relaxed", "acquire", "release", "acq_rel"))
            kind = "b32" if op in ("exch", "cas") else "u32"
            lines.append(f"{guard}atom.{sem}.{scope}.global.{op}.{kind} r{n}, [{place}], {operands}")
        elif roll < 0.65:
            how = rng.choice(("weak", f"relaxed.{scope}", f"release.{scope}"))
            lines.append(f"{guard}st.{how}.global.u32 [{place}], {value}")
            lines.append(f"mov.u32 r{n}, {rng.randrange(2)}")
        elif roll < 0.75:
            lines.append(f"fence.{rng.choice(('sc', 'acq_rel'))}.{scope}")
            lines.append(f"mov.u32 r{n}, {rng.randrange(2)}")
        elif roll < 0.9:
            how = rng.choice(("weak", f"relaxed.{scope}", f"acquire.{scope}"))
            lines.append(f"{guard}ld.{how}.global.u32 r{n}, [{place}]")
        else:
            lines.append(f"L{n}: ld.acquire.{scope}.global.u32 r{n}, [{place}]")
            lines.append(f"setp.lt.u32 p{n}, r{n}, {rng.randrange(1, 3)}")
            lines.append(f"@p{n} bra L{n}")
        if not lines[-1].endswith(f"bra L{n}"):
            lines.append(f"setp.eq.u32 p{n}, r{n}, {rng.randrange(3)}")
    return lines


def program(seed: int) -> str:
    """Two to four threads with one code, in most programs another one, in places of their own or in one CTA."""
    rng = random.Random(f"numbering/{seed}")
    count = rng.choice((2, 2, 2, 3, 3, 4))
    threads = [body(rng, {2: rng.randint(1, 3), 3: rng.randint(1, 2), 4: 1}[count])] * count
    if rng.random() < 0.6:
        threads.append(body(rng, rng.randint(1, 2)))
    ctas = rng.random() < 0.7
    names = [f"P{i} @ cta {i if ctas else 0}" for i in range(len(threads))]
    height = max(map(len, threads))
    columns = [[*lines, *repeat("", height - len(lines))] for lines in threads]
    rows = [names, *(list(row) for row in zip(*columns, strict=True))]
    table = "".join(f" {' | '.join(row)} ;\n" for row in rows)
    return f"PTX numbered\n{{ .global .u32 c = 0; .global .u32 x = 0; }}\n{table}exists (c == 1)\n"


def known(test: Test, model: str) -> Known:
    """What is known beforehand of the executions of ``test``."""
    loaded = model_named(model)
    return known_before(test, loaded, read_as(loaded.readings, 3), interchangeable(test, ()), lambda: None)


def compare(seeds: range, seconds: float) -> tuple[int, int]:
    """Compare the final states of memory, and the flags; how many programs, and how many were numbered."""
    compared = numbered = 0
    for seed in seeds:
        text, model = program(seed), MODELS[seed % len(MODELS)]
        test = parse_one(text)
        whole = reference.everything(test)
        memory = Observed((), whole.memory)
        try:
            answers = [
                ask(e, test, model_named(model), seconds=seconds, observed=memory) for e in ("solve", "enumerate")
            ]
            every = ask("solve", test, model_named(model), seconds=seconds)
            if not all(a.complete for a in (*answers, every)):
                continue
            found, _ = reference.flagged(test, model, seconds=seconds)
        except (TooSlow, Timeout):
            continue
        except PtxmmError as error:  # some depend on reads in more ways than can be written down
            assert error.kind == "unsupported"
            continue
        expected = {state[len(whole.registers) :] for state in found}
        about = f"seed {seed}, {model}\n{text}"
        assert expected == answers[0].states, about
        assert answers[0].comparable() == answers[1].comparable(), about
        assert every.comparable()[1:] == answers[0].comparable()[1:], about
        compared += 1
        numbered += bool(known(test, model).never)
    return compared, numbered


@pytest.mark.usefixtures("lazy")
def test_random_programs(tally: Tally) -> None:
    compared, numbered = compare(range(60), 1)
    tally.notes.append(f"interchangeable threads: {compared} programs, {numbered} numbered beforehand")
    assert compared > 30
    assert numbered > 10


@pytest.mark.slow
@pytest.mark.usefixtures("lazy")
def test_many_random_programs(shift: int) -> None:
    compared, numbered = compare(range(10_000 + shift, 10_800 + shift), 3)
    assert compared > 600
    assert numbered > 200


def test_a_chain_of_atomic_operations_has_one_order() -> None:
    """Each reads from the one before it, so that its value is known."""
    test = parse_one(programs.counter(12).ptx())
    problem = Problem(test, model_named("ptx-8.5"), Observed((), reference.everything(test).memory), Limits())
    events = problem.program.events
    [readers] = problem.program.rf.values()
    for number, sources in readers.items():
        read = events[number]
        assert list(sources.values()) == [TRUE]
        assert dict(read.value) == {read.thread: TRUE}


def test_a_lock_with_tickets() -> None:
    """The tickets are known; who is served when follows from them."""
    test = parse_one(programs.ticket_lock(7).ptx())
    model = model_named("ptx-8.5")
    answer = ask("solve", test, model, observed=Observed((), reference.everything(test).memory))
    assert answer.states == {(7, 7, 7)}
    assert not answer.flags

"""Random programs that are mostly barriers: counts, named barriers, divergent warps, exits and misuse."""

from __future__ import annotations

import random

import pytest

from tests.support import ask, model_named, parse_one

MODELS = ("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc")


def instruction(rng: random.Random, thread: int) -> str:
    """One instruction, or a load with the predicate that it decides."""
    kind = rng.random()
    if kind < 0.55:
        count = rng.choice(("", ", 64", ", 64", ", 96", ", 32"))
        form = rng.choice(("sync", "sync", "arrive"))
        if form == "arrive" and not count:
            count = ", 64"
        return f"{rng.choice(('', '', '', '@p '))}bar.{form} {rng.choice((0, 0, 1))}{count}"
    if kind < 0.75:
        return f"st.relaxed.cta.global.u32 [{rng.choice('xy')}], 1"
    if kind < 0.95:
        load = f"ld.relaxed.cta.global.u32 r{thread}, [{rng.choice('xy')}]"
        return f"{load};\n setp.eq.u32 p, r{thread}, {rng.choice((0, 1))}"
    return "@p exit"


def program(seed: int) -> str:
    """Two or three threads of one CTA, some of them lanes of one warp."""
    rng = random.Random(f"barriers/{seed}")
    threads = []
    for t in range(rng.choice((2, 3, 3))):
        lines = [instruction(rng, t) for _ in range(rng.randint(1, 3))]
        if any("@p" in line for line in lines):
            lines.insert(0, f"ld.relaxed.cta.global.u32 r{t}, [x];\n setp.eq.u32 p, r{t}, 1")
        warp = rng.choice(("", "", ", warp 0"))
        threads.append(f"P{t} @ cta 0{warp} {{\n " + ";\n ".join(lines) + ";\n}\n")
    return "PTX barriers\n{ .global .u32 x = 0; .global .u32 y = 0; }\n" + "".join(threads) + "exists (x == 1)\n"


def compare(seeds: range) -> None:
    """Both engines say the same of each program, and every outcome is confirmed."""
    for seed in seeds:
        text, model = program(seed), MODELS[seed % len(MODELS)]
        one, other = (ask(engine, parse_one(text), model_named(model)) for engine in ("solve", "enumerate"))
        assert one.complete and other.complete
        assert one.comparable() == other.comparable(), f"seed {seed}, {model}\n{text}"


def test_barrier_programs() -> None:
    """A share for every run."""
    compare(range(200))


@pytest.mark.slow
def test_many_barrier_programs() -> None:
    compare(range(1000, 6000))

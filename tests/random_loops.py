"""Random kernels of two or three CTAs, one of which waits in loops that look at several flags in a round, at vectors,
or at what they have found before, for whole launches (``test_whole``)."""

from __future__ import annotations

import random

from tests.random_looks import BRANCHES, FENCE, HEAD


def _look(rng: random.Random, into: str, at: int = 0, odd: float = 0.1) -> str:
    sem = rng.choice(("acquire", "acquire", "relaxed"))
    scope = rng.choice(("gpu", "gpu", "sys")) if rng.random() >= odd else "cta"
    return f"ld.{sem}.{scope}.global.u32 {into}, [%d2+{at}];"


def _given(rng: random.Random, at: int, value: int) -> str:
    kind = rng.random()
    if kind < 0.5:
        return f"st.release.gpu.global.u32 [%d2+{at}], {value};"
    if kind < 0.7:
        return f"{FENCE} st.relaxed.gpu.global.u32 [%d2+{at}], {value};"
    if kind < 0.8:
        return f"red.release.gpu.global.add.u32 [%d2+{at}], {value};"
    if kind < 0.9 and at == 0:
        return f"{rng.choice((FENCE, ''))} st.relaxed.gpu.global.v2.u32 [%d2], {{{value}, {rng.randrange(3)}}};"
    return f"st.relaxed.gpu.global.u32 [%d2+{at}], {value};"


def _test(rng: random.Random, register: str, label: str = "L") -> str:
    how = rng.choice((("eq", 0), ("eq", 0), ("lt", 1), ("lt", 2), ("ne", 1), ("ne", 2)))
    return f"setp.{how[0]}.u32 %p2, {register}, {how[1]}; @%p2 bra {label};"


def _waits(rng: random.Random) -> str:
    """A loop that waits."""
    one, other = (0, 4) if rng.random() < 0.8 else rng.choice(((4, 0), (0, 0)))
    first, second = _look(rng, "%r3", one), _look(rng, "%r4", other)
    combined = rng.choice(("and", "and", "or", "min", "add"))
    type_ = "b32" if combined in ("and", "or") else "u32"
    both = f"{combined}.{type_} %r5, %r3, %r4; "
    fence = rng.choice((FENCE, "", ""))
    match rng.randrange(9):
        case 0:
            return f"L: {first} {second} {both} {_test(rng, '%r5')}"
        case 1:
            return f"L: {first} {_test(rng, '%r3')} {second} {_test(rng, '%r4')}"
        case 2:  # two loops, the second one goes back to the first one
            return f"L: {first} {_test(rng, '%r3')} M: {second} {_test(rng, '%r4', rng.choice('LM'))}"
        case 3:
            how = rng.choice(("relaxed.gpu", "volatile"))
            load = f"ld.{how}.global.v2.u32 {{%r3, %r4}}, [%d2];"
            used = rng.choice((both, "mov.u32 %r5, %r3;", "mov.u32 %r5, %r4;"))
            return f"L: {load} {used} {_test(rng, '%r5')} {fence}"
        case 4:  # waits for another value than that before
            return f"{first} L: {_look(rng, '%r4', one)} setp.eq.u32 %p2, %r3, %r4; @%p2 bra L; {fence}"
        case 5:  # the same, until it is the right one
            inner = f"M: {_look(rng, '%r4', one)} setp.eq.u32 %p2, %r3, %r4; @%p2 bra M;"
            return f"{first} bra N; L: {inner} {first} N: {_test(rng, '%r3')} {fence}"
        case 6:  # one of both
            return f"L: {first} setp.ne.u32 %p2, %r3, 0; @%p2 bra D; {second} {_test(rng, '%r4')} D: {fence}"
        case 7:  # counts its rounds
            least = rng.randrange(1, 4)
            tried = f"add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, {least}; @%p3 bra L;"
            counted = rng.choice((tried, "add.u32 %r6, %r6, 1;"))
            return f"mov.u32 %r6, 0; L: {first} {counted} {_test(rng, '%r3')} {fence}"
        case _:
            again = f"@%p2 bra L; {second} {_test(rng, '%r4')}"
            return f"L: {first} {second} setp.ne.u32 %p2, %r3, %r4; {again} {fence}"


def loops(seed: int) -> str:
    """CTA 0 writes data and gives flags, so does CTA 2 if there is one, and CTA 1 waits for them in some way."""
    rng = random.Random(f"loops/{seed}")
    grid = rng.choice((2, 2, 3))
    values = rng.choice((1, 1, 2)), rng.choice((1, 1, 2))
    given = [_given(rng, 0, values[0]), _given(rng, 4, values[1])]
    write = ["st.global.u32 [%d1], 1;", "st.global.u32 [%d1+4], 1;"]
    if grid == 2:
        first = [write[0], given[0], *([write[1]] if rng.random() < 0.4 else []), given[1]]
        if rng.random() < 0.2:
            first[1], first[-1] = first[-1], first[1]
        if rng.random() < 0.2:
            first.append(_given(rng, rng.choice((0, 4)), rng.randrange(3)))
        third = []
    else:
        first = [write[0], given[0]]
        third = [write[1], given[1]]
        if rng.random() < 0.2:
            third.append(_given(rng, 0, 1))
    uses = ["ld.global.u32 %r9, [%d1];", "ld.global.u32 %r9, [%d1+4];", "st.global.u32 [%d1], 2;"]
    use = " ".join(rng.sample(uses, rng.choice((1, 1, 2))))
    waits = _waits(rng)
    if rng.random() < 0.15:
        use = f"setp.gt.u32 %p5, {rng.choice(('%r3', '%r4', '%r6'))}, 1; @%p5 {use}"
    if rng.random() < 0.2:
        use += " " + _given(rng, 8, 1)
    parts = [*first, "ret;", "B:", waits, rng.choice(("", "", FENCE)), use, "ret;", "C:", *third, "ret;"]
    body = "\n".join(part for part in parts if part).replace("; ", ";\n").replace(": ", ":\n")
    return HEAD.format(grid=grid, d=2, f=4) + BRANCHES + body + "\n}\n"

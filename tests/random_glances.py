"""Random kernels of two or three CTAs that look at flags once, or wait for one of several values, and do something or
not, for whole launches (``test_whole_glances``)."""

from __future__ import annotations

import random

from tests.random_looks import BRANCHES, FENCE, HEAD


def _given(rng: random.Random, at: int) -> str:
    value = rng.choice((1, 1, 1, 2))
    kind = rng.random()
    if kind < 0.6:
        return f"st.release.gpu.global.u32 [%d2+{at}], {value};"
    if kind < 0.8:
        return f"{FENCE} st.relaxed.gpu.global.u32 [%d2+{at}], {value};"
    if kind < 0.9:
        return f"red.release.gpu.global.add.u32 [%d2+{at}], {value};"
    return f"st.relaxed.gpu.global.u32 [%d2+{at}], {value};"


def _does(rng: random.Random, cells: int = 2) -> str:
    cell = 4 * rng.randrange(cells)
    kind = rng.random()
    if kind < 0.5:
        return f"ld.global.u32 %r9, [%d1+{cell}];"
    if kind < 0.8:
        return f"st.global.u32 [%d1+{cell}], 2;"
    if kind < 0.9:
        return _given(rng, rng.choice((4, 8)))
    return f"ld.global.u32 %r9, [%d1+{cell}]; add.u32 %r9, %r9, 1; st.relaxed.gpu.global.u32 [%d2+8], %r9;"


def _glance(rng: random.Random, label: str, depth: int = 0) -> str:
    """Looks at a flag, or at two, and does something if they are as they should be."""
    at = rng.choice((0, 0, 0, 4, 8))
    sem = rng.choice(("acquire", "acquire", "acquire", "relaxed"))
    look = f"ld.{sem}.gpu.global.u32 %r3, [%d2+{at}];"
    if rng.random() < 0.2:
        other = f"ld.acquire.gpu.global.u32 %r4, [%d2+{rng.choice((0, 4))}];"
        look += f" {other} {rng.choice(('and', 'or', 'xor'))}.b32 %r3, %r3, %r4;"
    test = f"setp.{rng.choice(('eq', 'eq', 'ne', 'lt'))}.u32 %p2, %r3, {rng.choice((0, 0, 1))};"
    fence = rng.choice((FENCE, "")) if sem == "relaxed" else ""
    inner = " ".join(_does(rng) for _ in range(rng.choice((1, 1, 2))))
    if depth == 0 and rng.random() < 0.25:
        inner += " " + _glance(rng, label + "N", 1)
    other = _does(rng) if rng.random() < 0.15 else ""
    text = f"{look} {test} @%p2 bra {label}; {fence} {inner} bra {label}E; {label}: {other} {label}E:"
    return text if rng.random() < 0.7 else f"{text} {_does(rng)}"


def glances(seed: int) -> str:
    """CTA 0 writes data and gives flags, the others look at them, wait for them, or give some."""
    rng = random.Random(f"glances/{seed}")
    grid = rng.choice((2, 2, 3))
    first = ["st.global.u32 [%d1], 1;", _given(rng, 0)]
    if rng.random() < 0.3:
        first += [rng.choice(("st.global.u32 [%d1+4], 1;", _glance(rng, "X")))]
    if rng.random() < 0.1:
        first[0], first[1] = first[1], first[0]
    second = [_glance(rng, "D")]
    if rng.random() < 0.2:
        second.append(_glance(rng, "F", 1))
    wait = "M: ld.acquire.gpu.global.u32 %r5, [%d2]; setp.eq.u32 %p3, %r5, 0; @%p3 bra M;"
    third = [rng.choice((_glance(rng, "G"), wait + " " + _does(rng), _does(rng), _given(rng, 4)))] if grid == 3 else []
    parts = [*first, "ret;", "B:", *second, "ret;", "C:", *third, "ret;"]
    body = "\n".join(parts).replace("; ", ";\n").replace(": ", ":\n")
    return HEAD.format(grid=grid, d=2, f=4) + BRANCHES + body + "\n}\n"


def look_backs(seed: int) -> str:
    """Three tiles of a scan by decoupled look-back, with one fault or two in most of them: each gives its own number
    (1), then the sum of all up to it (2); the last one goes back until it finds a sum."""
    rng = random.Random(f"look-backs/{seed}")
    faulty = rng.random() < 0.6

    def part(right: str, *wrong: str) -> str:
        return rng.choice(wrong) if faulty and rng.random() < 0.2 else right

    def gives(tile: int, value: int) -> str:
        if rng.random() < 0.5:
            order = part("release.gpu", "relaxed.gpu", "release.cta")
            return f"st.{order}.global.u32 [%d2+{4 * tile}], {value};"
        return f"{part(FENCE, 'fence.acq_rel.cta;', '')} st.relaxed.gpu.global.u32 [%d2+{4 * tile}], {value};"

    def finds(tile: int, label: str) -> str:
        order, fence = rng.choice((("acquire", ""), ("relaxed", part(FENCE, ""))))
        look = f"ld.{part(order, 'relaxed')}.gpu.global.u32 %r4, [%d2+{4 * tile}];"
        return f"{label}: {look} setp.eq.u32 %p3, %r4, 0; @%p3 bra {label}; {fence}"

    first = f"st.global.u32 [%d1], 1; {gives(0, 2)}"
    own, back = "st.global.u32 [%d1+4], 2;", "ld.global.u32 %r10, [%d1]; add.u32 %r9, %r9, %r10;"
    second = f"{own} {gives(1, 1)} {finds(0, 'L')} mov.u32 %r9, 2; {back} st.global.u32 [%d1+12], %r9; {gives(1, 2)}"
    found = part("eq.u32 %p2, %r4, 2", "ne.u32 %p2, %r4, 2", "ge.u32 %p2, %r4, 1")
    third = f"{finds(1, 'M')} setp.{found}; @%p2 bra S; ld.global.u32 %r9, [%d1+4]; {finds(0, 'N')} {back} bra E;"
    third += " S: ld.global.u32 %r9, [%d1+12]; E: st.global.u32 [%d1+8], %r9;"
    parts = [first, "ret;", "B:", second, "ret;", "C:", third, "ret;"]
    body = "\n".join(parts).replace("; ", ";\n").replace(": ", ":\n")
    return HEAD.format(grid=3, d=4, f=4) + BRANCHES + body + "\n}\n"

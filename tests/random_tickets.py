"""Random kernels in which threads draw numbers that pick what they work on, for whole launches
(``test_whole_tickets``): by atomic operations of one counter, handed on by memory, by shuffles and by flags."""

from __future__ import annotations

import random

HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: block = {block}
// ptxmm: threads = "all"
// ptxmm: args = ["d", "f", "n"]
// ptxmm: [objects]
// ptxmm: d = {{ type = "u32", count = 16 }}
// ptxmm: f = {{ type = "u32", count = 16 }}
// ptxmm: n = "u32"
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 pd, .param .u64 pf, .param .u64 pn)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<12>;
    .shared .u32 next;
    ld.param.u64 %d1, [pd];
    ld.param.u64 %d2, [pf];
    ld.param.u64 %d3, [pn];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %p1, %r2, 0;
    setp.eq.u32 %p0, %r1, 0;
"""
"""A launch with words ``d``, flags ``f`` and a counter ``n``."""


def tickets(seed: int) -> str:
    """A kernel of two or three CTAs of one thread."""
    rng = random.Random(seed)
    grid = rng.choice((2, 3))
    order = rng.choice(("relaxed.gpu", "relaxed.gpu", "acq_rel.gpu", "relaxed.cta"))
    change = rng.choice(
        ("add.u32 {}, [%d3], 1", "add.u32 {}, [%d3], 1", "inc.u32 {}, [%d3], 7", "add.u32 {}, [%d3], 2")
    )
    change = change if rng.random() < 0.85 else rng.choice(("exch.b32 {}, [%d3], %r2", "max.u32 {}, [%d3], %r2"))
    draw = f"atom.{order}.global.{change.format('%r3')};"
    steps = [_place(rng, "%r3"), *(_work(rng) for _ in range(rng.choice((1, 2))))]
    if rng.random() < 0.2:
        steps += [f"atom.{order}.global.{change.format('%r3')};", _place(rng, "%r3"), _work(rng)]
    if rng.random() < 0.25:
        steps.insert(1, f"setp.{rng.choice(('eq', 'lt', 'ge'))}.u32 %p2, %r3, {rng.choice((0, 1, 2, 9))}; @%p2 bra E;")
    if rng.random() < 0.15:  # who draws the first one draws once more
        steps.insert(0, f"setp.eq.u32 %p4, %r3, {rng.choice((0, 0, 1))}; @%p4 {draw}")
    if rng.random() < 0.15:  # CTA 1 draws after CTA 0 has, or after who has drawn the first one
        tells = rng.choice(("", "setp.eq.u32 %p5, %r3, 0; @%p5 ", "@%p1 "))
        steps.insert(0, f"{tells}st.{rng.choice(('relaxed', 'release'))}.gpu.global.u32 [%d2+32], 1;")
        look = f"ld.{rng.choice(('relaxed', 'acquire'))}.gpu.global.u32 %r8, [%d2+32];"
        draw = f"setp.ne.u32 %p6, %r2, 1; @%p6 bra M; K: {look} setp.eq.u32 %p7, %r8, 0; @%p7 bra K; M: {draw}"
    takes = " ".join((draw, *steps))
    if rng.random() < 0.4:  # CTA 0 gives the others what they wait for
        makes = []
        for item in range(grid - 1):
            given = rng.choice(("st.release.gpu", "st.release.gpu", "st.relaxed.gpu"))
            makes.append(f"st.global.u32 [%d1+{4 * item}], 1; {given}.global.u32 [%d2+{4 * item}], 1;")
        look = f"ld.{rng.choice(('acquire', 'acquire', 'relaxed'))}.gpu.global.u32 %r5, [%d7];"
        wait = f"L: {look} setp.eq.u32 %p3, %r5, 0; @%p3 bra L;"
        makes[0] += "" if rng.random() < 0.8 else " st.global.u32 [%d1], 2;"
        takes = f"{draw} {_place(rng, '%r3', True)} {wait} ld.global.u32 %r6, [%d6]; {' '.join(steps[1:])}"
        return f"{HEAD.format(grid=grid, block=1)} @!%p1 bra T; {' '.join(makes)} bra E;\nT: {takes}\nE: ret;\n}}\n"
    return f"{HEAD.format(grid=grid, block=1)} {takes}\nE: ret;\n}}\n"


def handed(seed: int) -> str:
    """A kernel in which thread 0 of a CTA draws a number for both of its threads, once or in a loop."""
    rng = random.Random(seed)
    grid = rng.choice((1, 1, 2))
    draw = "atom.relaxed.gpu.global.add.u32 %r3, [%d3], 1;"
    first, second = (rng.choice(("bar.sync 0;", "bar.sync 0;", "bar.sync 0;", "")) for _ in range(2))
    if rng.random() < 0.6:
        hand = f"@%p0 {draw} @%p0 st.shared.u32 [next], %r3; {first} ld.shared.u32 %r3, [next]; {second}"
    else:
        lane = rng.choice((0, 0, 0, 1))
        hand = f"mov.u32 %r3, 5; @%p0 {draw} shfl.sync.idx.b32 %r3, %r3, {lane}, 31, 3; {second}"
    work = (
        f"{_place(rng, '%r3', rng.random() < 0.8, own=True)} {' '.join(_work(rng) for _ in range(rng.choice((1, 2))))}"
    )
    if rng.random() < 0.5:
        text = f"L: {hand} setp.ge.u32 %p2, %r3, {rng.choice((1, 2))}; @%p2 bra E; {work} bra L;"
    else:
        text = f"{hand} {work}"
    return f"{HEAD.format(grid=grid, block=2)} {text}\nE: ret;\n}}\n"


def _place(rng: random.Random, number: str, plain: bool = False, own: bool = False) -> str:
    """The addresses of a word and a flag that a number picks; ``own``: one for each thread of the CTA."""
    how = rng.choice(("and.b32 %r4, {}, 7;", "and.b32 %r4, {}, 7;", "and.b32 %r4, {}, 1;", "and.b32 %r4, {}, 6;"))
    how = "and.b32 %r4, {}, 7;" if plain else how
    thread = rng.choice(("mad.lo.u32 %r4, %r4, 2, %r1;", "mad.lo.u32 %r4, %r4, 2, %r1;", "add.u32 %r4, %r4, %r1;", ""))
    more = thread if own else ""
    return f"{how.format(number)} {more} mul.wide.u32 %d5, %r4, 4; add.u64 %d6, %d1, %d5; add.u64 %d7, %d2, %d5;"


def _work(rng: random.Random) -> str:
    return rng.choice(
        (
            "st.global.u32 [%d6], 1;",
            "st.global.u32 [%d6], %r3;",
            "ld.global.u32 %r6, [%d6]; add.u32 %r6, %r6, 1; st.global.u32 [%d6], %r6;",
            "ld.global.u32 %r6, [%d6];",
            "ld.global.u32 %r6, [%d6+4];",
            "st.global.u32 [%d6+4], 1;",
            "atom.relaxed.gpu.global.add.u32 %r7, [%d7+16], 1;",
        )
    )

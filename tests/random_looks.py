"""Random kernels of two or three CTAs that hand on data by flags, which they look at in loops, after loops and without
any, for whole launches (``test_whole``)."""

from __future__ import annotations

import random
import re

HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: threads = "all"
// ptxmm: args = ["d", "f"]
// ptxmm: [objects]
// ptxmm: d = {{ type = "u32", count = {d} }}
// ptxmm: f = {{ type = "u32", count = {f} }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 pd, .param .u64 pf)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [pd];
    ld.param.u64 %d2, [pf];
    mov.u32 %r2, %ctaid.x;
"""
"""The launch of so many CTAs with arrays of so many words, and what each thread knows of itself."""
BRANCHES = """\
    setp.eq.u32 %p1, %r2, 1;
    setp.eq.u32 %p4, %r2, 2;
    @%p1 bra B;
    @%p4 bra C;
"""
FENCE = "fence.acq_rel.gpu;"


def _look(rng: random.Random, sem: str, into: str = "%r3", at: int = 0) -> str:
    scope = rng.choice(("gpu", "gpu", "gpu", "gpu", "sys", "cta"))
    return f"ld.{sem}.{scope}.global.u32 {into}, [%d2+{at}];"


def _loop(rng: random.Random, sem: str, label: str, at: int = 0) -> str:
    return f"{label}: {_look(rng, sem, at=at)} setp.eq.u32 %p2, %r3, 0; @%p2 bra {label};"


def _given(rng: random.Random, at: int, value: int = 1) -> str:
    """Gives a flag a value, mostly with what makes that a release."""
    kind = rng.random()
    if kind < 0.5:
        return f"st.release.gpu.global.u32 [%d2+{at}], {value};"
    if kind < 0.7:
        return f"{FENCE} st.relaxed.gpu.global.u32 [%d2+{at}], {value};"
    if kind < 0.8:
        return f"atom.exch.release.gpu.global.b32 %r8, [%d2+{at}], {value};"
    return f"st.relaxed.gpu.global.u32 [%d2+{at}], {value};"


def _waits(rng: random.Random, use: str, both: bool) -> str:
    """Waits for the flags, or looks at them, and uses the data; ``both``: the second one will be set."""
    sem = rng.choice(("acquire", "acquire", "relaxed"))
    other = rng.choice(("acquire", "acquire", "relaxed"))
    kind = rng.randrange(9)
    match kind if both else kind % 6:
        case 0:
            return f"{_loop(rng, sem, 'L')} {use}"
        case 1:
            return f"{_loop(rng, 'relaxed', 'L')} {rng.choice((FENCE, 'fence.acq_rel.cta;'))} {use}"
        case 2:
            return f"{_loop(rng, 'relaxed', 'L')} {_look(rng, other, '%r4', rng.choice((0, 0, 0, 4)))} {use}"
        case 3:
            first = f"{_look(rng, sem)} setp.ne.u32 %p2, %r3, 0; @%p2 bra D;"
            return f"{first} {_loop(rng, other, 'L')} D: {use}"
        case 4:
            return f"{_loop(rng, 'relaxed', 'L')} atom.exch.{other}.gpu.global.b32 %r4, [%d2], 0; {use}"
        case 5:
            return f"{_look(rng, other, '%r4')} {_loop(rng, 'relaxed', 'L')} {use}"
        case 6:
            looked = f"{_look(rng, sem)} {_look(rng, other, '%r4', 4)} {rng.choice(('and', 'or'))}.b32 %r3, %r3, %r4;"
            return f"L: {looked} setp.eq.u32 %p2, %r3, 0; @%p2 bra L; {use}"
        case 7:
            first = f"L: {_look(rng, sem)} setp.eq.u32 %p2, %r3, 0; @%p2 bra L;"
            return f"{first} {_look(rng, other, '%r4', 4)} setp.eq.u32 %p2, %r4, 0; @%p2 bra L; {use}"
        case _:
            tested = f"{_look(rng, sem)} setp.{rng.choice(('ne', 'eq', 'eq'))}.u32 %p2, %r3, 1; @%p2 bra D;"
            return f"{tested} {use} D:"


def looks(seed: int) -> str:
    """CTA 0 writes data and gives flags, CTA 1 waits for them in some way and perhaps passes on what it has read, CTA 2
    gives the same flags, perhaps depending on that."""
    rng = random.Random(f"looks/{seed}")
    first = [
        rng.choice(("", "", "", "st.relaxed.gpu.global.u32 [%d2], 1;")),
        "st.global.u32 [%d1], 1;",
        _given(rng, 0),
        rng.choice(("", _given(rng, 4), "st.global.u32 [%d1+4], 1;")),
    ]
    if rng.random() < 0.3:
        first[1], first[3] = first[3], first[1]
    use = rng.choice(("ld.global.u32 %r9, [%d1];", "ld.global.u32 %r9, [%d1];", "st.global.u32 [%d1], 2;"))
    passes = rng.random() < 0.5
    second = [_waits(rng, use, any("%d2+4" in part for part in first))]
    if passes:
        second.append("add.u32 %r9, %r9, 1; st.relaxed.gpu.global.u32 [%d2+8], %r9;")
    grid = 3 if passes or rng.random() < 0.3 else 2
    third = []
    if passes and rng.random() < 0.7:
        third.append("M: ld.relaxed.gpu.global.u32 %r5, [%d2+8]; setp.eq.u32 %p2, %r5, 0; @%p2 bra M;")
        third.append(f"setp.eq.u32 %p3, %r5, {rng.choice((1, 1, 2))}; @!%p3 bra E;")
    third.append(rng.choice((_given(rng, 0), _given(rng, 0), _given(rng, 4), "ld.global.u32 %r9, [%d1+4];")))
    parts = [*first, "ret;", "B:", *second, "ret;", "C:", *(third if grid == 3 else ()), "E:", "ret;"]
    body = "\n".join(part for part in parts if part).replace("; ", ";\n")
    return HEAD.format(grid=grid, d=2, f=4) + BRANCHES + body + "\n}\n"


_LOAD = re.compile(r"ld\.(acquire|relaxed)\.(cta|gpu|sys)\.global\.u32 (%r\d+), (\[%d2[^]]*\]);")
_KEEPS = ("add.u32", "or.b32", "xor.b32", "max.u32", "cas.b32")


def by_atomics(text: str, seed: int) -> str:
    """The same kernel with atomic operations that change nothing in the place of some loads of flags."""
    rng = random.Random(f"by atomics/{seed}")

    def put(load: re.Match[str]) -> str:
        if rng.random() < 0.4:
            return load[0]
        op, compared = rng.choice(_KEEPS), rng.choice((0, 1, 2))
        operands = f"{compared}, {compared}" if op == "cas.b32" else "0"
        return f"atom.{load[1]}.{load[2]}.global.{op} {load[3]}, {load[4]}, {operands};"

    return _LOAD.sub(put, text)

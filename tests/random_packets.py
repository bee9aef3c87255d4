"""Random kernels of two or three CTAs that hand on data by packets, vectors with a flag in them, for whole launches
(``test_whole_packets``)."""

from __future__ import annotations

import random

from tests.random_looks import BRANCHES, FENCE

HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: threads = "all"
// ptxmm: args = ["d", "f", "c", "x"]{assumes}
// ptxmm: [objects]
// ptxmm: d = {{ type = "u32", count = 2 }}
// ptxmm: f = {{ type = "u32", count = 4, align = 16 }}
// ptxmm: c = {{ type = "u64", count = 2, init = ["x", 0] }}
// ptxmm: x = {{ type = "u32", count = 4 }}
// ptxmm: [check]
// ptxmm: races = "none"
// ptxmm: condition = "{condition}"
.visible .entry k(.param .u64 pd, .param .u64 pf, .param .u64 pc, .param .u64 px)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    ld.param.u64 %d1, [pd];
    ld.param.u64 %d2, [pf];
    ld.param.u64 %d3, [pc];
    ld.param.u64 %d4, [px];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r10, 0;
"""
_WORDS = {2: ("%r3", "%r4"), 4: ("%r3", "%r4", "%r5", "%r6")}


def _sent(rng: random.Random, size: int, flag: int) -> str:
    """A packet is written, mostly in one piece; its second word is the flag."""
    data = rng.choice((4, 4, 5))
    sem = rng.choice(("relaxed.gpu", "relaxed.gpu", "volatile", "relaxed.sys", "release.gpu"))
    words = [data, flag, data + 1, flag][:size]
    given = ", ".join(map(str, words))
    match rng.randrange(9):
        case 0:
            return f"st.{sem}.global.u32 [%d2], {data}; st.{sem}.global.u32 [%d2+4], {flag};"
        case 1 if size == 4:
            return f"st.{sem}.global.v2.u32 [%d2], {{4, {flag}}}; st.{sem}.global.v2.u32 [%d2+8], {{5, {flag}}};"
        case 2 if size == 2:
            return f"st.{sem}.global.u64 [%d2], {data + (flag << 32)};"
        case 3:
            return f"{FENCE} st.{sem}.global.v{size}.u32 [%d2], {{{given}}};"
        case 4:
            return f"st.global.v{size}.u32 [%d2], {{{given}}};"
        case _:
            return f"st.{sem}.global.v{size}.u32 [%d2], {{{given}}};"


def _got(rng: random.Random, size: int, label: str = "L") -> str:
    """Waits for a packet, or looks whether it is there."""
    sem = rng.choice(("relaxed.gpu", "relaxed.gpu", "acquire.gpu", "volatile", "relaxed.cta"))
    look = f"ld.{sem}.global.v{size}.u32 {{{', '.join(_WORDS[size])}}}, [%d2];"
    test = f"setp.{rng.choice(('eq', 'eq', 'lt'))}.u32 %p2, %r4, {rng.choice((1, 1, 2))};"
    test = test.replace("eq", "ne")
    if size == 4 and rng.random() < 0.6:
        test += " setp.ne.u32 %p3, %r6, 1; or.pred %p2, %p2, %p3;"
    again = f"@%p2 bra {label};"
    stops = ""
    if rng.random() < 0.3:  # gives up where it is told to
        stops = (
            "add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 3; @%p5 bra S; mov.u32 %r10, 0; ld.global.u64 %d5, [%d3]; "
            f"ld.{rng.choice(('volatile', 'relaxed.gpu'))}.global.u32 %r11, [%d5]; setp.ne.u32 %p6, %r11, 0; "
            "@%p6 bra D; S:"
        )
    elif rng.random() < 0.2:
        again = "@%p2 bra D;"
    return f"{label}: {look} {stops} {test} {again}"


def _used(rng: random.Random, size: int) -> str:
    """Does something with what has come."""
    return rng.choice(
        (
            "st.global.u32 [%d4+4], %r3;",
            "st.global.u32 [%d4+4], %r3;",
            "ld.global.u32 %r9, [%d1];",
            f"{FENCE} ld.global.u32 %r9, [%d1]; st.global.u32 [%d4+4], %r9;",
            "setp.eq.u32 %p4, %r3, 4; @!%p4 bra D; st.global.u32 [%d4+4], 4;",
            "setp.eq.u32 %p4, %r3, 5; @!%p4 bra D; st.global.u32 [%d1], 1;",
            "and.b32 %r8, %r3, 1; mul.wide.u32 %d6, %r8, 4; add.u64 %d6, %d6, %d1; st.global.u32 [%d6], 1;",
            f"add.u32 %r8, %r3, %r{3 if size == 2 else 5}; st.global.u32 [%d4+4], %r8;",
        )
    )


def packets(seed: int) -> str:
    """CTA 0 writes data and sends a packet, CTA 1 gets it, CTA 2 sends one, too, stops the other, or reads the data."""
    rng = random.Random(f"packets/{seed}")
    size = rng.choice((2, 2, 4))
    first = [
        rng.choice(("", "st.global.u32 [%d1], 1;")),
        _sent(rng, size, 1),
        rng.choice(("", "", _sent(rng, size, 1))),
    ]
    second = [_got(rng, size), _used(rng, size), "D:"]
    grid = rng.choice((2, 2, 3))
    third = [rng.choice((_sent(rng, size, 1), _sent(rng, size, 2), "st.relaxed.gpu.global.u32 [%d4], 1;",
                         "st.global.u64 [%d3], %d4;", "ld.global.u32 %r9, [%d1];"))]  # fmt: skip
    parts = [*first, "ret;", "B:", *second, "ret;", "C:", *(third if grid == 3 else ()), "E:", "ret;"]
    body = "\n".join(part for part in parts if part).replace("; ", ";\n")
    assumes = '\n// ptxmm: assume = ["vector=whole"]' if rng.random() < 0.8 else ""
    condition = rng.choice(("forall (x[1] == 4)", "forall (x[1] == 4)", "exists (x[1] == 0)", "forall (x[1] == 9)"))
    return HEAD.format(grid=grid, assumes=assumes, condition=condition) + BRANCHES + body + "\n}\n"

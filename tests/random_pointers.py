"""Random kernels of two threads that find in memory where they write and whether they do: pointers in a table, and
words that branches are taken by. Some of them are overwritten, by name, by an index that depends on what was read, or
by way of a pointer."""

from __future__ import annotations

import random

_HEAD = """.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: args = ["tab", "sel", "x"]
// ptxmm: [objects]
// ptxmm: tab = {{ type = "u64", count = 2, init = ["x", "{second}"] }}
// ptxmm: sel = {{ type = "u32", count = 2, init = [{first}, 1] }}
// ptxmm: x = {{ type = "u32", count = 2 }}
// ptxmm: y = "u32"
// ptxmm: [check]
// ptxmm: condition = "exists (y == 5)"
.visible .entry k(.param .u64 pt, .param .u64 ps, .param .u64 px)
{{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %d<40>;
  ld.param.u64 %d1, [pt]; ld.param.u64 %d2, [ps]; ld.param.u64 %d3, [px];
  mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra OTHER;
"""


def _thread(rng: random.Random, name: str) -> list[str]:
    rows = ["ld.u64 %d10, [%d1];", f"ld.u32 %r10, [%d{rng.choice((2, 3, 3))}+{rng.choice((0, 4))}];"]
    for step in range(rng.choice((3, 4))):
        p, r = f"%d{11 + step}", f"%r{11 + step}"
        label = f"{name}{step}"
        kind = rng.choice((0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 6))
        if kind == 0:
            rows += [f"ld.u64 {p}, [%d1+{rng.choice((0, 8))}];", f"st.u32 [{p}], {rng.choice((1, 5))};"]
        elif kind == 1:
            offset = rng.choice((0, 4))
            rows += [f"ld.u32 {r}, [%d2+{offset}];", f"setp.eq.u32 %p2, {r}, {rng.choice((0, 1))};"]
            rows += [f"@%p2 bra {label};", f"st.u32 [%d3+{rng.choice((0, 4))}], 5;", f"{label}:"]
        elif kind == 2:
            rows += [
                f"and.b32 {r}, %r10, 1;",
                f"mad.wide.u32 {p}, {r}, 4, %d{rng.choice((2, 2, 3))};",
                f"st.u32 [{p}], 2;",
            ]
        elif kind == 3:
            rows += [f"st.u64 [%d1+{rng.choice((0, 8))}], %d{rng.choice((2, 3))};"]
        elif kind == 4:
            rows += [
                f"ld.u64 {p}, [%d1+8];",
                f"sub.s64 {p}, {p}, %d10;",
                f"add.s64 {p}, {p}, %d3;",
                f"st.u32 [{p}], 3;",
            ]
        elif kind == 5:
            rows += [f"atom.add.u32 {r}, [%d2+{rng.choice((0, 4))}], 1;", f"st.u32 [%d3], {r};"]
        else:
            rows += [f"ld.u32 {r}, [%d3];", f"setp.eq.u32 %p3, {r}, 5;", f"@%p3 st.u32 [%d2], {rng.choice((0, 2))};"]
    return rows


def module(number: int) -> str:
    """The module with this number."""
    rng = random.Random(number)
    rows = [_HEAD.format(second=rng.choice(("y", "x+4", "sel", "sel")), first=rng.choice((0, 1)))]
    rows += [f"  {row}" for row in _thread(rng, "A")] + ["  ret;", "OTHER:"]
    rows += [f"  {row}" for row in _thread(rng, "B")] + ["  ret;", "}", ""]
    return "\n".join(rows)

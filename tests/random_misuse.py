"""Random kernels of two or three threads of which many misuse a barrier of their CTA: other counts or reductions in one
phase, two arrivals of one warp, barriers that only some come to; with strong accesses before and behind."""

from __future__ import annotations

import random

_HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = {block}
// ptxmm: threads = "cta 0 thread {threads}"
// ptxmm: args = ["g"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 1 }}
// ptxmm: [check]
// ptxmm: barriers = "convergent"
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<4>;
    .reg .b64 %d;
    ld.param.u64 %d, [p];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
"""


def kernel(seed: int) -> str:
    """A module with its launch."""
    rng = random.Random(f"misuse/{seed}")
    block = rng.choice((2, 3, 33, 34))
    lines: list[str] = []

    def guard() -> str:
        if rng.random() < 0.25:
            return ""
        comparison, number = rng.choice(("eq", "ne", "lt", "gt")), rng.randrange(min(block, 3))
        lines.append(f"    setp.{comparison}.u32 %p1, %r1, {number};")
        return rng.choice(("@%p1 ", "@!%p1 "))

    for _ in range(rng.randrange(3, 9)):
        where, name = guard(), rng.randrange(2)
        if rng.random() < 0.3:
            lines.append(f"    {where}st.relaxed.gpu.global.u32 [%d], {rng.randrange(1, 4)};")
        elif rng.random() < 0.3:
            lines.append(f"    {where}ld.relaxed.gpu.global.u32 %r{rng.choice((2, 3))}, [%d];")
        else:
            step = rng.randrange(6 if block < 4 else 4)
            lines.append(f"    {where}{_barrier(step, name, rng.choice((32, 64)))};")
    threads = ",".join(map(str, range(block))) if block < 4 else "0,1,32"
    return _HEAD.format(block=block, threads=threads) + "\n".join(lines) + "\n    ret;\n}\n"


def _barrier(step: int, name: int, count: int) -> str:
    return (
        f"barrier.sync {name}", f"barrier.sync {name}", f"barrier.sync {name}, {count}",
        f"barrier.arrive {name}, {count}", f"barrier.red.popc.u32 %r2, {name}, %p1",
        f"barrier.red.and.pred %p2, {name}, %p1",
    )[step]  # fmt: skip

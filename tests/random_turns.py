"""Random kernels whose threads take turns by ``cas``, in loops that try until it succeeds (``test_whole_turns``)."""

from __future__ import annotations

import random

HEAD = """.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: args = ["f", "d"]
// ptxmm: [objects]
// ptxmm: f = {{ type = "u32", count = 2, init = {first} }}
// ptxmm: d = {{ type = "u32", count = 2 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 p, .param .u64 q)
{{
    .reg .pred %p<9>; .reg .b32 %r<29>; .reg .b64 %d<9>;
    ld.param.u64 %d1, [p]; ld.param.u64 %d2, [q]; mov.u32 %r1, %ctaid.x; mov.u32 %r9, 0;
"""
_FENCES = ("fence.acq_rel.gpu;", "fence.sc.gpu;", "fence.acq_rel.sys;")


class _Turns:
    """The statements of each thread; ``odd``: how often something is left out or another one."""

    def __init__(self, rng: random.Random, threads: int, odd: float) -> None:
        self.rng, self.odd, self.labels = rng, odd, 0
        self.lines: list[list[str]] = [[] for _ in range(threads)]

    def data(self, thread: int) -> None:
        cell = self.rng.choice((0, 0, 0, 4))
        self.lines[thread].append(self.rng.choice(
            (f"ld.global.u32 %r20, [%d2+{cell}];", f"st.global.u32 [%d2+{cell}], {thread};")
        ))  # fmt: skip

    def turn(self, thread: int, word: int, compared: int, new: int) -> None:
        """A thread waits until a word is ``compared``, and makes it ``new``."""
        rng, out = self.rng, self.lines[thread]
        self.labels += 1
        odd = rng.random() < self.odd
        sem = rng.choice(("acq_rel", "acq_rel", "relaxed")) if odd else rng.choice(("acq_rel", "relaxed"))
        fenced = sem == "relaxed" and not (odd and rng.random() < 0.5)
        if odd:
            sem, compared = rng.choice((sem, "acquire", "release")), rng.choice((compared, compared, 1 - compared))
        scope = "cta" if odd and rng.random() < 0.2 else rng.choice(("gpu", "gpu", "sys"))
        ends = rng.choice((compared, compared, new)) if odd and rng.random() < 0.3 else compared
        given = rng.random() < 0.3
        operands = "%r10, %r11" if given else f"{compared}, {new}"
        if fenced:
            out.append(rng.choice(_FENCES))
        out.append(f"W{self.labels}:")
        out += [f"mov.u32 %r10, {compared};", f"mov.u32 %r11, {new};"] if given else []
        if odd and rng.random() < 0.2:
            out.append("add.u32 %r9, %r9, 1;")
        out.append(f"atom.global.{sem}.{scope}.cas.b32 %r8, [%d1+{4 * word}], {operands};")
        if fenced and rng.random() < 0.2:
            out.append("fence.acq_rel.gpu;")
        out += [f"setp.ne.u32 %p1, %r8, {ends};", f"@%p1 bra W{self.labels};"]
        if fenced:
            out.append(rng.choice(_FENCES))

    def text(self) -> str:
        lines = []
        for thread, own in enumerate(self.lines):
            lines += [f"setp.ne.u32 %p2, %r1, {thread};", f"@%p2 bra T{thread};", *own, f"T{thread}:"]
        return "\n".join(line if line.endswith(":") else f"    {line}" for line in lines)


def turns(seed: int) -> str:
    """Threads that hand a word, and what it guards, to each other."""
    rng = random.Random(f"turns/{seed}")
    threads = rng.choice((2, 2, 2, 3))
    body = _Turns(rng, threads, rng.choice((0.0, 0.0, 0.15, 0.4)))
    first = rng.choice((0, 0, 0, 1))
    for word in range(rng.choice((1, 1, 2))):
        value, there = first if word == 0 else 0, 0
        for _ in range(rng.randint(2, 4)):
            thread = rng.choice([t for t in range(threads) if t != there] if rng.random() < 0.9 else [there])
            new = (value + 1) % rng.choice((2, 2, 3))
            if rng.random() < 0.7:
                body.data(thread)
            body.turn(thread, word, value, new)
            if rng.random() < 0.5:
                body.data(thread)
            value, there = new, thread
        if rng.random() < body.odd:
            other = rng.choice(
                (
                    f"st.relaxed.gpu.global.u32 [%d1+{4 * word}], 1;",
                    f"ld.relaxed.gpu.global.u32 %r21, [%d1+{4 * word}];",
                )
            )
            body.lines[rng.randrange(threads)].insert(0, other)
    return HEAD.format(grid=threads, first=[first, 0]) + body.text() + "\n    ret;\n}\n"
